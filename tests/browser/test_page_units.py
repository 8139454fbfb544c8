"""The page's pure modules, each alone, in a real browser and without a backend."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import Page, sync_playwright

from tests import requirements

STATIC = requirements.REPOSITORY / "functions" / "web" / "static"
BLANK = b"<!doctype html><title>units</title>"
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class StaticFiles(SimpleHTTPRequestHandler):
    """The static folder, and an empty page at the root for modules to be imported into."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".js": "text/javascript"}

    def do_GET(self) -> None:
        if self.path != "/":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(BLANK)))
        self.end_headers()
        self.wfile.write(BLANK)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(StaticFiles, directory=str(STATIC)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def page(origin: str) -> Iterator[Page]:
    chromium = requirements.need_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        page = browser.new_page()
        page.goto(origin)
        yield page
        browser.close()


def call(page: Page, module: str, body: str, argument: Any = None) -> Any:
    """Run `body` with the module as `m` and the argument as `a`."""
    return page.evaluate(f"async (a) => {{ const m = await import('/{module}'); {body} }}", argument)


def parse_events(page: Page, pieces: list[str]) -> list[str]:
    body = "const p = new m.EventStreamParser(); return a.flatMap((piece) => p.push(piece)).map((event) => event.data);"
    return call(page, "sse.js", body, pieces)


def render(page: Page, text: str, known: tuple[int, ...] = (), how: str = "renderMarkdown") -> str:
    body = """
        const drawMark = (number) => Object.assign(document.createElement("button"), { textContent: number });
        const node = document.createElement("div");
        node.append(m[a.how](a.text, { known: new Set(a.known), drawMark }));
        return node.innerHTML;
    """
    return call(page, "markdown.js", body, {"text": text, "known": list(known), "how": how})


STREAM = (
    '\ufeff: ping\r\n\r\ndata: {"text":\r\ndata: "é😀"}\r\n\r\nevent: x\nid: 7\ndata:second\n\n'
    ": ping\rdata: third\r\rdata\n\ndata: unfinished"
)
EVENTS = ['{"text":\n"é😀"}', "second", "third", ""]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 1000])
def test_an_event_stream_reads_the_same_wherever_it_is_cut(page: Page, size: int) -> None:
    """WEB-3"""
    pieces = [STREAM[at : at + size] for at in range(0, len(STREAM), size)]
    assert parse_events(page, pieces) == EVENTS


def test_an_empty_piece_between_cr_and_lf_changes_nothing(page: Page) -> None:
    assert parse_events(page, ["data: a\r", "", "\ndata: b\r", "", "\n\r", "\n"]) == ["a\nb"]


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("one\ntwo\n\nthree", "<p>one<br>two</p><p>three</p>"),
        (
            "**bold** and *slanted* and `a*b*`",
            "<p><strong>bold</strong> and <em>slanted</em> and <code>a*b*</code></p>",
        ),
        ("**a *b* c**", "<p><strong>a <em>b</em> c</strong></p>"),
        ("2 * 3 * 4, snake_case_name, **open", "<p>2 * 3 * 4, snake_case_name, **open</p>"),
        ("# Title #\n### Minor", '<h3>Title</h3><h3 class="minor">Minor</h3>'),
        ("- a\n  - b\n- c", "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>"),
        ("3. c\n4. d", '<ol start="3"><li>c</li><li>d</li></ol>'),
        ("> said", "<blockquote><p>said</p></blockquote>"),
        ("```py\n*x*\n```\nafter", "<pre><code>*x*</code></pre><p>after</p>"),
        (
            "| a | b |\n|---|--:|\n| 1 | 2 \\| 3 |",
            '<div class="table" tabindex="0" role="group"><table><thead><tr><th>a</th><th>b</th></tr></thead>'
            "<tbody><tr><td>1</td><td>2 | 3</td></tr></tbody></table></div>",
        ),
        ("a | b\nno table", "<p>a | b<br>no table</p>"),
        ("", ""),
    ],
    ids=[
        "paragraphs",
        "emphasis",
        "nested",
        "no-emphasis",
        "headings",
        "list",
        "start",
        "quote",
        "fence",
        "table",
        "pipe",
        "empty",
    ],
)
def test_markdown_becomes_nodes(page: Page, text: str, html: str) -> None:
    assert render(page, text) == html


@pytest.mark.parametrize(
    "text",
    [
        "<img src=x onerror=alert(1)>",
        "<script>alert(1)</script>",
        "[click](javascript:alert(1))",
        "![x](https://example.org/x.png)",
        "`<b>`",
        "| <i>a</i> |\n|--|\n| <a href=x>b</a> |",
    ],
)
def test_nothing_in_an_answer_becomes_active(page: Page, text: str) -> None:
    """WEB-3"""
    tags = set(re.findall(r"<(\w+)", render(page, text)))
    assert tags <= {"p", "code", "div", "table", "thead", "tbody", "tr", "th", "td"}


def test_marks_of_known_sources_become_buttons_and_others_stay_text(page: Page) -> None:
    """WEB-4"""
    html = render(page, "So it is [1][2, 3]. Not [7], nor `[1]`.", known=(1, 2, 3))
    buttons = "<button>1</button><button>2</button><button>3</button>"
    assert html == f'<p>So it <span class="unbroken">is {buttons}</span>. Not [7], nor <code>[1]</code>.</p>'


def test_verbatim_text_keeps_its_signs_and_has_marks(page: Page) -> None:
    """CHAT-6"""
    html = render(page, "# 5 *stars* | a_b_\n- x [1]\n\nnext", known=(1,), how="renderVerbatim")
    assert html == (
        '<p class="verbatim"># 5 *stars* | a_b_\n- <span class="unbroken">x <button>1</button></span></p>'
        '<p class="verbatim">next</p>'
    )


@pytest.mark.parametrize("piece", ["**", "`", "*a", "_", "[1", "| - ", "> ", "- ", "#"])
def test_repeated_signs_are_drawn_in_reasonable_time(page: Page, piece: str) -> None:
    page.set_default_timeout(10_000)
    assert len(render(page, piece * 20_000)) > 0


@pytest.mark.parametrize(
    ("text", "start", "end", "parts"),
    [
        ("abcdef", 2, 4, ["ab", "cd", "ef"]),
        ("a😀b😀c", 2, 4, ["a😀", "b😀", "c"]),
        ("abc", 1, 99, ["a", "bc", ""]),
        ("abc", 3, 1, ["abc", "", ""]),
    ],
    ids=["plain", "astral", "beyond", "reversed"],
)
def test_offsets_count_characters_not_utf_16_units(
    page: Page, text: str, start: int, end: int, parts: list[str]
) -> None:
    """WEB-4"""
    assert (
        call(page, "offsets.js", "return m.cutAt(a.text, a.start, a.end);", {"text": text, "start": start, "end": end})
        == parts
    )


@pytest.mark.parametrize(
    ("bands", "found"), [([600], 0.6), ([300, 800], 0.3), ([], None)], ids=["one", "first", "none"]
)
def test_the_highlight_is_found_on_the_page_image(page: Page, bands: list[int], found: float | None) -> None:
    """WEB-4"""
    body = """
        const canvas = Object.assign(document.createElement("canvas"), { width: 700, height: 1000 });
        const context = canvas.getContext("2d");
        const paint = (colour, ...box) => { context.fillStyle = colour; context.fillRect(...box); };
        paint("white", 0, 0, 700, 1000);
        paint("#234", 60, 100, 400, 9);
        for (const top of a) paint("rgb(255 214 10)", 100, top, 300, 14);
        const image = new Image();
        image.src = canvas.toDataURL();
        await image.decode();
        return m.findHighlight(image);
    """
    share = call(page, "highlight.js", body, bands)
    assert share == (None if found is None else pytest.approx(found, abs=0.01))


def read_words(page: Page) -> dict[str, dict[str, Any]]:
    english = call(page, "words_en.js", "return m.en;")
    return {"en": english, "fr": call(page, "words_fr.js", "return m.fr;")}


def placeholders(words: Any) -> set[str]:
    return set(re.findall(r"\{\w+\}", json.dumps(words)))


def test_both_languages_say_the_same_things(page: Page) -> None:
    """WEB-1"""
    words = read_words(page)
    translated_errors = {key for key in words["fr"] if key.startswith("error.")}
    assert words["en"].keys() - words["fr"].keys() == set()
    assert words["fr"].keys() - words["en"].keys() <= translated_errors
    differing = [key for key in words["en"] if placeholders(words["en"][key]) != placeholders(words["fr"][key])]
    assert differing == []


def test_every_key_the_page_asks_for_has_words(page: Page) -> None:
    source = "\n".join(path.read_text() for path in STATIC.glob("*.js") if not path.name.startswith("words_"))
    asked = set(re.findall(r'\bt\("([\w.]+)"', source))
    asked |= set(re.findall(r'data-i18n(?:-\w+)?="([\w.]+)"', (STATIC / "index.html").read_text()))
    assert asked - read_words(page)["en"].keys() == set()


def test_the_page_needs_no_inline_code_and_no_other_host() -> None:
    """WEB-1"""
    html = re.sub(r"<!--.*?-->", "", (STATIC / "index.html").read_text(), flags=re.DOTALL)
    assert re.findall(r"<style|\sstyle=|\son\w+=|<script(?![^>]* src=)|https?://", html) == []


def test_data_never_goes_in_as_html() -> None:
    """WEB-1"""
    unsafe = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function")
    assert [path.name for path in STATIC.glob("*.js") if unsafe.search(path.read_text())] == []


def test_every_module_is_asked_for_at_once() -> None:
    """Modules found only by following imports would cost a round trip a level."""
    preloaded = set(re.findall(r'"modulepreload" href="/static/([\w.]+)"', (STATIC / "index.html").read_text()))
    assert preloaded | {"app.js"} == {path.name for path in STATIC.glob("*.js")}
