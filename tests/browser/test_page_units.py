"""Modules of the page that need no server, each tested alone in a real browser."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID

import pytest
from playwright.sync_api import Page, sync_playwright

from tests.support import requirements

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
    """Serves the static folder, and at the root an empty page that imports modules."""

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
    return call(page, "shared/sse.js", body, pieces)


def render(page: Page, text: str, known: tuple[int, ...] = (), how: str = "renderMarkdown") -> str:
    body = """
        const drawMark = (number) => Object.assign(document.createElement("button"), { textContent: number });
        const node = document.createElement("div");
        node.append(m[a.how](a.text, { known: new Set(a.known), drawMark }));
        return node.innerHTML;
    """
    return call(page, "chat/markdown.js", body, {"text": text, "known": list(known), "how": how})


STREAM = (
    '\ufeff: ping\r\n\r\ndata: {"text":\r\ndata: "é😀"}\r\n\r\nevent: x\nid: 7\ndata:second\n\n'
    ": ping\rdata: third\r\rdata\n\ndata: unfinished"
)
EVENTS = ['{"text":\n"é😀"}', "second", "third", ""]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 1000])
def test_an_event_stream_is_read_the_same_wherever_it_is_split(page: Page, size: int) -> None:
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
def test_markdown_is_rendered_as_nodes(page: Page, text: str, html: str) -> None:
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


def test_marks_of_known_citations_become_buttons_and_others_stay_text(page: Page) -> None:
    """WEB-4"""
    html = render(page, "So it is [1][2, 3]. Not [7], nor `[1]`.", known=(1, 2, 3))
    buttons = "<button>1</button><button>2</button><button>3</button>"
    assert html == f'<p>So it <span class="unbroken">is {buttons}</span>. Not [7], nor <code>[1]</code>.</p>'


def test_verbatim_text_keeps_its_characters_and_has_citation_marks(page: Page) -> None:
    """CHAT-6"""
    html = render(page, "# 5 *stars* | a_b_\n- x [1]\n\nnext", known=(1,), how="renderVerbatim")
    assert html == (
        '<p class="verbatim"># 5 *stars* | a_b_\n- <span class="unbroken">x <button>1</button></span></p>'
        '<p class="verbatim">next</p>'
    )


@pytest.mark.parametrize("piece", ["**", "`", "*a", "_", "[1", "| - ", "> ", "- ", "#"])
def test_repeated_markdown_characters_are_rendered_in_reasonable_time(page: Page, piece: str) -> None:
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
        call(
            page,
            "source/offsets.js",
            "return m.cutAt(a.text, a.start, a.end);",
            {"text": text, "start": start, "end": end},
        )
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
    box = call(page, "source/highlight.js", body, bands)
    expected = {"top": found, "left": 100 / 700, "right": 400 / 700}
    assert box == (None if found is None else pytest.approx(expected, abs=0.01))


HEALTH: dict[str, Any] = {
    "pages_without_text": [],
    "ocr": None,
    "tables": 0,
    "hidden_text": [],
    "warnings": {},
    "languages": {"en": 4},
    "chunks": 4,
    "chunks_not_embedded": 0,
    "running_lines": [],
    "chunking_strategy": "fixed",
    "self_retrieval": None,
}
CLEAN: dict[str, Any] = {
    "words": 900,
    "unlikely_words": 0.03,
    "broken_sentences": 0.0,
    "split_words": 0.0,
    "garbled_pages": [],
}
USUAL = ["All 12 pages have text.", "Written in English.", "4 passages (each embedded on its own)."]


def describe_health(page: Page, **found: Any) -> list[str]:
    """The sentences of the report, without those that every document of the tests has."""
    document = {"file_type": "pdf", "page_count": 12}
    body = "return m.describeHealth(a.health, a.document).map(({ text }) => text);"
    sentences = call(page, "library/health.js", body, {"health": HEALTH | found, "document": document})
    return [sentence for sentence in sentences if sentence not in USUAL]


@pytest.mark.parametrize(
    ("found", "sentences"),
    [
        ({}, []),
        ({"pages_without_text": [9, 4, 8, 10]}, ["4 of 12 pages have no text: 4, 8–10."]),
        (
            {"ocr": {"pages": 1, "confidence": 91.4, "lowest": {"page": 3, "confidence": 91.4}}},
            ["1 page was read by OCR, with 91% confidence."],
        ),
        (
            {"ocr": {"pages": 3, "confidence": 88.5, "lowest": {"page": 4, "confidence": 61.2}}},
            ["3 pages were read by OCR, with 89% confidence. Page 4 has the lowest confidence, 61%."],
        ),
        ({"tables": 5}, ["5 tables were found."]),
        (
            {"hidden_text": [{"page": 2, "characters": 1200}, {"page": 5, "characters": 34}]},
            ["1,234 characters that a reader cannot see were skipped. Pages 2, 5."],
        ),
        (
            {"warnings": {"ocr_unavailable": [7], "no_text": [7], "new_code": [1, 2]}},
            ["OCR is not installed, so text in images could not be read. Page 7.", "new code Pages 1–2."],
        ),
        (
            {"running_lines": ["bottom: page #", "top: annual report"]},
            ["Repeated headers and footers were skipped: “page #”, “annual report”."],
        ),
        ({"languages": {"fr": 1, "en": 3}}, ["Written in English 75%, French 25%."]),
        (
            {"chunks_not_embedded": 2, "chunking_strategy": "late"},
            [
                "4 passages (each embedded with its context)."
                " 2 of them have no vector, so only keyword search finds them."
            ],
        ),
        (
            {"self_retrieval": {"sentences": 10, "found": 9, "score": 0.9}},
            ["Search check: 9 of 10 sample sentences found"],
        ),
        ({"quality": {"rating": "good", "reasons": {}}, "text": CLEAN}, ["This document was read well."]),
        (
            {
                "quality": {"rating": "check", "reasons": {"garbled_pages": "check"}},
                "text": CLEAN | {"garbled_pages": [2, 3], "unlikely_words": 0.07},
            },
            [
                "Check this document before you rely on it: parts of it may be missing or wrong.",
                "7% of the words look garbled. Export the file again, or upload a scan of it, which OCR can read."
                " Pages 2–3.",
            ],
        ),
        (
            {
                "quality": {"rating": "bad", "reasons": {"broken_sentences": "bad", "split_words": "check"}},
                "text": CLEAN | {"broken_sentences": 9.5, "split_words": 4.2},
            },
            [
                "This document was read badly: much of it is missing or wrong.",
                "Sentences run into each other, as when the lines of two columns are mixed."
                " Export the file again with its columns in order.",
                "Words are cut at the ends of lines without a hyphen, so search does not find them."
                " Export the file again without hyphenation.",
            ],
        ),
        (
            {"warnings": {"reading_failed": [7], "chunking_failed": [8]}},
            [
                "An error in Ibid kept this from being read, so no search finds it. Page 7.",
                "An error in Ibid kept this from being indexed, so no search finds it. Page 8.",
            ],
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_the_health_report_is_written_in_sentences(page: Page, found: dict[str, Any], sentences: list[str]) -> None:
    """LIB-10, WEB-2"""
    assert describe_health(page, **found) == sentences


@pytest.mark.parametrize(("rating", "tone"), [("good", "good"), ("check", "warn"), ("bad", "bad")])
def test_a_figure_has_the_tone_of_its_rating(page: Page, rating: str, tone: str) -> None:
    """LIB-10"""
    reasons = {} if rating == "good" else {"self_retrieval": rating}
    found = {"quality": {"rating": rating, "reasons": reasons}, "self_retrieval": {"sentences": 10, "found": 4}}
    body = "return Object.fromEntries(m.describeHealth(a, {}).map(({ key, tone }) => [key, tone]));"
    tones = call(page, "library/health.js", body, HEALTH | found)
    assert (tones["quality"], tones["self_retrieval"]) == (tone, tone)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([], ""),
        ([3], "3"),
        ([5, 1, 2, 3], "1–3, 5"),
        (list(range(1, 40, 2)), "1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, …"),
    ],
    ids=["none", "one", "ranges", "many"],
)
def test_page_numbers_are_joined_to_ranges(page: Page, numbers: list[int], words: str) -> None:
    assert call(page, "library/health.js", "return m.pageRanges(a);", numbers) == words


AUTOSAVE = """
    const log = [];
    const fields = { title: "", content: "", notebook_id: null };
    const note = { id: "n", ...fields, content: a.content, updated_at: "2026-01-01", trashed_at: null };
    const refuse = (status) => { throw Object.assign(new Error(), { status }); };
    let answers = [...a.answers];
    const answer = async (kind, body) => {
        log.push([kind, body?.content ?? null]);
        await new Promise((resolve) => setTimeout(resolve, 5));
        const next = answers.shift() ?? {};
        if (next.status) refuse(next.status);
        return { ...note, ...body, ...next };
    };
    const api = {
        get: () => answer("get"),
        post: (path, body) => answer("post", body),
        patch: (path, body) => answer("patch", body),
    };
    const states = [];
    const saver = new m.Autosave({ api, note, read: () => fields, onState: (state) => states.push(state) });
    const type = (text) => { fields.content = text; saver.scheduleSave(); };
"""


def run_autosave(page: Page, steps: str, *answers: dict[str, Any], content: str = "") -> dict[str, Any]:
    """The requests sent to a server with these answers, the last state, and whether changes are unsaved."""
    body = f"{AUTOSAVE}\n{steps}\nreturn {{ log, state: states.at(-1) ?? null, dirty: saver.isDirty }};"
    return call(page, "notes/autosave.js", body, {"answers": answers, "content": content})


def test_text_typed_during_a_save_is_saved_next(page: Page) -> None:
    """WEB-2"""
    done = run_autosave(page, 'type("a"); const first = saver.flush(); type("ab"); type("abc"); await first;')
    assert done == {"log": [["patch", "a"], ["patch", "abc"]], "state": "saved", "dirty": False}


def test_a_save_whose_response_was_lost_is_no_conflict(page: Page) -> None:
    """WEB-2"""
    done = run_autosave(page, 'type("a"); await saver.flush();', {"status": 409}, {"content": "a"})
    assert done == {"log": [["patch", "a"], ["get", None]], "state": "saved", "dirty": False}


@pytest.mark.parametrize(
    ("found", "state"),
    [({"content": "theirs"}, "conflict"), ({"trashed_at": "2026-01-01"}, "trashed"), ({"status": 404}, "gone")],
    ids=["changed", "trashed", "gone"],
)
def test_saving_stops_when_the_note_was_changed_trashed_or_deleted_elsewhere(
    page: Page, found: dict[str, Any], state: str
) -> None:
    """WEB-2"""
    steps = 'type("a"); await saver.flush(); type("ab"); await saver.flush();'
    assert run_autosave(page, steps, {"status": 409}, found) == {
        "log": [["patch", "a"], ["get", None]],
        "state": state,
        "dirty": True,
    }


def test_showing_a_note_with_other_line_endings_does_not_change_it(page: Page) -> None:
    """A text area converts line endings to LF."""
    done = run_autosave(page, 'fields.content = "a\\nb\\nc"; await saver.flush();', content="a\r\nb\rc")
    assert done == {"log": [], "state": None, "dirty": False}


def test_a_note_that_the_server_rejects_is_saved_with_the_next_change(page: Page) -> None:
    steps = 'type("a"); await saver.flush(); type("ab"); await saver.flush();'
    done = run_autosave(page, steps, {"status": 400})
    assert done == {"log": [["patch", "a"], ["patch", "ab"]], "state": "saved", "dirty": False}


def test_an_older_answer_does_not_end_the_watch_of_a_note_saved_since(page: Page) -> None:
    """WEB-2: the answer about the text of before arrives after that of saving the new one"""
    steps = """
        const noteAt = (status, updated_at) => ({ id: "n", status, updated_at });
        const answers = [noteAt("indexed", "2026-01-01T00:00:00.1Z"), noteAt("indexed", "2026-01-01T00:00:00.2Z")];
        const seen = [];
        const api = { get: () => new Promise((resolve) => setTimeout(() => resolve(answers.shift()), 20)) };
        const watch = new m.StatusWatch({
            api, path: "/notes", maxPolls: 1, isInProgress: ({ status }) => status === "queued",
            onChange: ({ updated_at }) => seen.push(updated_at),
        });
        watch.follow(noteAt("queued", "2026-01-01T00:00:00.1Z"));
        watch.follow(noteAt("queued", "2026-01-01T00:00:00.2Z"));
        for (let tries = 0; tries < 100 && !seen.includes("2026-01-01T00:00:00.2Z"); tries++)
            await new Promise((resolve) => setTimeout(resolve, 50));
        return seen;
    """
    assert call(page, "shared/lists/watch.js", steps) == ["2026-01-01T00:00:00.2Z"]


def test_french_punctuation_has_no_break_spaces(page: Page) -> None:
    """WEB-1"""
    body = 'await m.setLanguage("fr"); const words = m.t("note.deleteNamed", a); m.setLanguage("en"); return words;'
    words = call(page, "language/i18n.js", body, {"name": "A : b"})
    assert words == "Supprimer définitivement «\u00a0A : b\u00a0»"


def read_words(page: Page) -> dict[str, dict[str, Any]]:
    english = call(page, "language/words_en.js", "return m.en;")
    return {"en": english, "fr": call(page, "language/words_fr.js", "return m.fr;")}


def placeholders(words: Any) -> set[str]:
    return set(re.findall(r"\{\w+\}", json.dumps(words)))


def test_both_languages_have_the_same_keys_and_placeholders(page: Page) -> None:
    """WEB-1"""
    words = read_words(page)
    translated_errors = {key for key in words["fr"] if key.startswith("error.")}
    assert words["en"].keys() - words["fr"].keys() == set()
    assert words["fr"].keys() - words["en"].keys() <= translated_errors
    differing = [key for key in words["en"] if placeholders(words["en"][key]) != placeholders(words["fr"][key])]
    assert differing == []


def read_sources() -> str:
    """The HTML and every module except the texts."""
    modules = [path.read_text() for path in STATIC.rglob("*.js") if not path.name.startswith("words_")]
    return "\n".join([*modules, (STATIC / "index.html").read_text()])


def test_every_key_that_the_page_uses_has_a_text(page: Page) -> None:
    asked = set(re.findall(r'(?:\bt\(|data-i18n(?:-\w+)?=)"([\w.]+)"', read_sources()))
    assert asked - read_words(page)["en"].keys() == set()


def test_every_text_is_used(page: Page) -> None:
    """A key is used by name, or by a template like `check.${kind}.why`."""
    source = read_sources()
    named = set(re.findall(r'"([\w.]+)"', source))
    templates = [
        re.sub(r"\$\{\w+(?:\.\w+)*\}", r"\\w+", found)
        for found in re.findall(r"`((?:\w|\$\{)[\w.${}]*\.[\w.${}]+)`", source)
    ]
    unnamed = read_words(page)["en"].keys() - named
    assert {key for key in unnamed if not any(re.fullmatch(template, key) for template in templates)} == set()


def test_the_page_has_no_inline_code_and_no_other_host() -> None:
    """WEB-1"""
    html = re.sub(r"<!--.*?-->", "", (STATIC / "index.html").read_text(), flags=re.DOTALL)
    assert re.findall(r"<style|\sstyle=|\son\w+=|<script(?![^>]* src=)|https?://", html) == []


def test_data_is_never_inserted_as_html() -> None:
    """WEB-1"""
    unsafe = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function")
    assert [path.name for path in STATIC.rglob("*.js") if unsafe.search(path.read_text())] == []


def test_only_a_complete_link_is_followed(page: Page) -> None:
    """WEB-4"""
    some = str(UUID(int=7))
    place = {"document_id": some, "page_start": 1, "start_offset": 0, "end_offset": 0}
    expected = {
        f"#d={some}&page=3&start=4&end=9": {
            "source": "document",
            **place,
            "page_start": 3,
            "start_offset": 4,
            "end_offset": 9,
        },
        f"#d={some}&page=0": {"source": "document", **place},
        f"#n={some}": {"source": "note", **place},
        f"#d={some}&page=3&start=4": None,
        f"#d={some}/text": None,
        "#d=../me&page=1": None,
        "#c=1": None,
    }
    read = call(page, "source/page_link.js", "return a.map(m.readLink);", list(expected))
    assert dict(zip(expected, read, strict=True)) == expected


LIST = "He brings what follows to the office:\n• the signed lease\n• the keys"
TABLE = "Country Signed Paid\nAlgeria 6.19 5.10\nEgypt 6.60 4.20"
HEADING = "Notice period\nThe tenant gives notice three months ahead."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "The tenant pays the rent on \nthe first of the month.",
            "The tenant pays the rent on the first of the month.",
        ),
        ("The inter-\nnational lease of self-\nemployed people", "The international lease of self-employed people"),
        ("Le locataire a-\nt-il payé le loyer de la\nmaison ?", "Le locataire a-t-il payé le loyer de la maison ?"),
        (
            "Packages keep their data in /opt/\n<package>, as the standard says.",
            "Packages keep their data in /opt/<package>, as the standard says.",
        ),
        (HEADING, HEADING),
        (LIST, LIST),
        (TABLE, TABLE),
    ],
    ids=["wrapped", "hyphens", "french", "path", "heading", "list", "table"],
)
def test_the_lines_of_a_page_are_joined_but_not_those_of_lists_and_tables(page: Page, text: str, shown: str) -> None:
    """WEB-4"""
    assert call(page, "language/unwrap.js", "return m.unwrap(a);", text) == shown


def test_a_passage_keeps_its_words_when_the_lines_around_it_are_joined(page: Page) -> None:
    """WEB-4"""
    parts = ["The boiler burns", "\nwood and inter-", "\nnational coal in the winter."]
    joined = ["The boiler burns", " wood and inter", "national coal in the winter."]
    assert call(page, "language/unwrap.js", "return m.unwrapParts(a);", parts) == joined


WIDE = 3000


@pytest.mark.parametrize(
    "text",
    ["|a" * 10_000, f"{'|a' * WIDE}\n{'|-' * WIDE}\n" + "|\n" * WIDE, f"{'|a' * 50}\n{'|-' * 50}\n" + "|\n" * 7000],
    ids=["one-line", "wide", "many-rows"],
)
def test_the_cost_of_a_table_depends_on_its_text_alone(page: Page, text: str) -> None:
    """WEB-3: it is drawn and laid out in seconds, however many columns and rows it has."""
    page.set_default_timeout(10_000)
    body = """
        const begun = performance.now();
        document.body.replaceChildren(m.renderMarkdown(a));
        return document.body.offsetHeight && performance.now() - begun;
    """
    took = call(page, "chat/markdown.js", body, text)
    page.evaluate("document.body.replaceChildren()")
    assert took < 3000


def test_a_long_line_that_streams_in_small_pieces_is_announced_in_linear_time(page: Page) -> None:
    """WEB-3"""
    page.set_default_timeout(10_000)
    page.evaluate("document.body.append(Object.assign(document.createElement('div'), { id: 'spoken' }))")
    body = """
        const speech = new m.Speech();
        for (const piece of [...a, "end. "]) speech.add(piece);
        return document.getElementById("spoken").textContent.length;
    """
    spoken = call(page, "chat/asking/speech.js", body, ["| a "] * 5_000)
    page.evaluate("document.body.replaceChildren()")
    assert spoken > 5_000


WEB = """document.body.replaceChildren(m.renderMarkdown(a, { web: true }));
    return [document.body.textContent, [...document.links].map((a) => [a.getAttribute("href"), a.target, a.rel])];"""
REL = ["_blank", "noopener noreferrer nofollow"]


@pytest.mark.parametrize(
    ("text", "shown", "addresses"),
    [
        ("See https://example.org/a?b=1.", "See https://example.org/a?b=1.", ["https://example.org/a?b=1"]),
        ("[us](mailto:a@example.org)", "us", ["mailto:a@example.org"]),
        ("[x](javascript:alert(1))", "[x](javascript:alert(1))", []),
        ("[x](data:text/html,y) ![z](http:/e)", "[x](data:text/html,y) ![z](http:/e)", []),
        ("xhttps://example.org", "xhttps://example.org", []),
    ],
    ids=["address", "mail", "javascript", "data", "inside a word"],
)
def test_only_web_and_mail_addresses_become_links(page: Page, text: str, shown: str, addresses: list[str]) -> None:
    """WEB-1"""
    assert call(page, "chat/markdown.js", WEB, text) == [shown, [[address, *REL] for address in addresses]]


PRINTED = {
    "1,234.5": 1234.5,
    "1 234,5 €": 1234.5,
    "1,234": 1234,
    "3,5 %": 3.5,
    "(12)": -12,
    "−7": -7,
    "1.234.567": 1_234_567,
}


@pytest.mark.parametrize("text", list(PRINTED))
def test_the_numbers_of_a_table_are_read_as_printed(page: Page, text: str) -> None:
    """WEB-3"""
    assert call(page, "chat/reading/tables.js", "return m.readNumber(a);", text) == PRINTED[text]


SORT = """document.body.replaceChildren(m.renderMarkdown(a));
    const { equipTables } = await import("/chat/reading/tables.js");
    equipTables(document.body);
    const column = () => [...document.querySelectorAll("td:first-child")].map((cell) => cell.textContent);
    const sort = document.querySelector(".sort");
    return [0, 1, 2, 3].map((times) => (times && sort.click(), column().join(" ")));"""


def test_a_table_is_sorted_up_down_and_as_it_was(page: Page) -> None:
    """WEB-3"""
    table = "| n | name |\n|---|---|\n| 10 | b |\n| 9 | a |\n| 1,200 | c |"
    assert call(page, "chat/markdown.js", SORT, table) == ["10 9 1,200", "9 10 1,200", "1,200 10 9", "10 9 1,200"]


def test_the_figure_that_carries_an_extract_is_bold_where_it_stands_alone(page: Page) -> None:
    """WEB-3, CHAT-6"""
    body = """
        const node = document.createElement("div");
        const section = { text: "Of 120 pages, 20 are lost <b>now</b>.", citations: [], emphasis: a };
        node.append(m.renderExtracts([section], new Map(), () => ""));
        return node.innerHTML;
    """
    expected = '<p class="verbatim">Of 120 pages, {} are lost &lt;b&gt;now&lt;/b&gt;.</p>'
    shown = [call(page, "chat/extracts.js", body, emphasis) for emphasis in ("20", "", "2", "<i>")]
    assert shown == [expected.format(found) for found in ("<strong>20</strong>", "20", "20", "20")]


MARK_OF_TABLE = """document.body.replaceChildren(m.renderMarkdown(a, { known: new Set([1, 2]), drawMark: (number) =>
        Object.assign(document.createElement("button"), { textContent: number, className: "citation" }) }));
    const { equipTables } = await import("/chat/reading/tables.js");
    equipTables(document.body);
    return [...document.querySelectorAll(".table + *, .table + * ~ *")].map((node) => node.textContent);"""


def test_the_marks_of_a_table_stand_before_the_buttons_that_copy_it(page: Page) -> None:
    """WEB-3"""
    table = "| n |\n|---|\n| 10 |\n\n[1][2]\n\nAfter."
    assert call(page, "chat/markdown.js", MARK_OF_TABLE, table) == ["12Copy tableCopy as CSV", "After."]


@pytest.mark.parametrize(
    ("quote", "line"),
    [
        ("a mechanism during the\ndevelopment", "a mechanism during the development"),
        ("| 06 Aug 2020 | 3.2.3 |    | 31 |", "06 Aug 2020 · 3.2.3 · 31"),
        ("| a \\| b | c |", "a | b · c"),
    ],
)
def test_the_words_of_a_markdown_file_are_read_on_one_line(page: Page, quote: str, line: str) -> None:
    """WEB-3"""
    citation = {"source": "document", "file_type": "md", "quote": quote}
    assert call(page, "chat/extracts.js", "return m.quoteLine(a);", citation) == line
