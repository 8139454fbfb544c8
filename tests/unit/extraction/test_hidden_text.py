"""Hidden text is found, and visible text is not mistaken for it."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen import canvas

from functions.core.extraction.pdf import hidden_text
from functions.core.extraction.pdf.reader import PdfPages, open_pdf, open_text_page, read_layer
from tests.support import requirements

WIDTH, HEIGHT = 612.0, 792.0
Colour = tuple[float, float, float]
BLACK, WHITE, GREY, NAVY = (0, 0, 0), (1, 1, 1), (0.93, 0.93, 0.93), (0, 0, 0.4)
Draw = Callable[[canvas.Canvas], None]


def draw_page(path: Path, *steps: Draw, rotation: int = 0) -> Path:
    """A page with a visible line at (72, 700), on which the steps then draw."""
    size = (HEIGHT, WIDTH) if rotation in (90, 270) else (WIDTH, HEIGHT)  # reportlab turns it with the page
    pdf = canvas.Canvas(str(path), pagesize=size, invariant=1)
    pdf.setPageRotation(rotation)
    pdf.setFont("Helvetica", 12)
    pdf.drawString(72, 700, "A line that is seen")
    for step in steps:
        pdf.saveState()
        step(pdf)
        pdf.restoreState()
    pdf.save()
    return path


def write(text: str, x: float = 72, y: float = 600, size: float = 12, colour: Colour = BLACK, mode: int = 0) -> Draw:
    def step(pdf: canvas.Canvas) -> None:
        words = pdf.beginText(x, y)
        words.setFont("Helvetica", size)
        words.setFillColor(colour)
        words.setTextRenderMode(mode)
        words.textOut(text)
        pdf.drawText(words)

    return step


def fill(x: float, y: float, width: float, height: float, colour: Colour = BLACK) -> Draw:
    def step(pdf: canvas.Canvas) -> None:
        pdf.setFillColor(colour)
        pdf.rect(x, y, width, height, stroke=0, fill=1)

    return step


def draw_picture(x: float, y: float, width: float, height: float, shade: int = 230) -> Draw:
    buffer = io.BytesIO()
    Image.new("L", (40, 40), shade).save(buffer, "PNG")
    return lambda pdf: pdf.drawImage(ImageReader(buffer), x, y, width, height)


def read_hidden(path: Path, number: int = 1) -> list[str]:
    with (
        open_pdf(path) as pdf,
        open_text_page(pdf, number) as (page, text_page),
    ):
        layer = read_layer(text_page)
        found = hidden_text.find_hidden(page, text_page, layer.text, lambda: layer.indices(text_page))
        assert page.get_rotation() in (0, 90, 180, 270)
        return [layer.text[start:end] for start, end in found]


def transparent(text: str) -> Draw:
    def step(pdf: canvas.Canvas) -> None:
        pdf.setFillAlpha(0)
        write(text)(pdf)

    return step


def in_form(step: Draw, scale: float = 1.0) -> Draw:
    def draw(pdf: canvas.Canvas) -> None:
        pdf.beginForm("form")
        step(pdf)
        pdf.endForm()
        pdf.scale(scale, scale)
        pdf.doForm("form")

    return draw


@pytest.mark.parametrize(
    "steps",
    [
        [write("not seen at all", colour=WHITE)],
        [write("not seen at all", colour=(0.97, 0.98, 1))],
        [fill(50, 580, 300, 40, GREY), write("not seen at all", colour=(0.95, 0.95, 0.95))],
        [fill(50, 580, 300, 40, NAVY), write("not seen at all", colour=NAVY)],
        [write("not seen at all"), fill(50, 580, 300, 40)],
        [write("not seen at all", mode=3)],
        [transparent("not seen at all")],
        [write("not seen at all", x=700)],
        [write("not seen at all", y=-40)],
        [write("not seen at all", size=1.5)],
        [write("not seen at all", size=0.01)],
        [in_form(write("not seen at all", colour=WHITE))],
        [in_form(write("not seen at all", y=3000), scale=0.1)],
        [write("not seen", colour=WHITE), write("at all", x=130, colour=WHITE)],
    ],
    ids=[
        "white on paper",
        "nearly white",
        "as grey as its ground",
        "as blue as its ground",
        "blackened",
        "render mode 3",
        "transparent",
        "right of the page",
        "below the page",
        "1.5 points",
        "a hundredth of a point",
        "white in a form",
        "small in a form",
        "two runs",
    ],
)
def test_text_that_leaves_no_visible_ink_is_hidden(tmp_path: Path, steps: list[Draw]) -> None:
    """ING-12"""
    assert read_hidden(draw_page(tmp_path / "a.pdf", *steps)) == ["not seen at all"]


@pytest.mark.parametrize(
    "steps",
    [
        [],
        [fill(50, 580, 300, 40, NAVY), write("White on blue", colour=WHITE)],
        [draw_picture(50, 580, 300, 40, shade=20), write("White on a picture", colour=WHITE)],
        [fill(0, 0, WIDTH, HEIGHT, NAVY), write("White on a dark slide", colour=WHITE, size=20)],
        [write("Light grey", colour=(0.8, 0.8, 0.8))],
        [write("Small print", size=4)],
        [write("7", size=2.5)],
        [fill(72, 590, 200, 1), write("Above a black rule")],
        [fill(50, 580, 300, 40, GREY), write("Black on grey")],
        [in_form(write("Large in a form", size=1, x=7, y=60), scale=10)],
        [write(". . . . . . ."), write("Page 7", x=250)],
        [draw_picture(0, 0, WIDTH, HEIGHT), write("The text layer of a scan", mode=3)],
        [write("The text layer of a scan", mode=3), draw_picture(0, 0, WIDTH, HEIGHT)],
    ],
    ids=[
        "plain",
        "white on blue",
        "white on a picture",
        "dark slide",
        "light grey",
        "4 points",
        "2.5 points",
        "rule",
        "grey ground",
        "scaled form",
        "dots",
        "scan",
        "scan over its text",
    ],
)
def test_visible_text_is_not_hidden(tmp_path: Path, steps: list[Draw]) -> None:
    """ING-12"""
    assert read_hidden(draw_page(tmp_path / "a.pdf", *steps)) == []


def test_text_across_the_edge_is_hidden_beyond_it(tmp_path: Path) -> None:
    """ING-12"""
    assert read_hidden(draw_page(tmp_path / "a.pdf", write("MMMMMMMMxyz", x=WIDTH - 79))) == ["xyz"]


@pytest.mark.parametrize("rotation", [90, 180, 270])
def test_hidden_text_is_found_on_turned_pages(tmp_path: Path, rotation: int) -> None:
    """ING-12"""
    steps = [fill(50, 580, 300, 40, NAVY), write("White on blue", colour=WHITE), write("no", y=300, colour=WHITE)]
    assert read_hidden(draw_page(tmp_path / "a.pdf", *steps, rotation=rotation)) == ["no"]


def test_invisible_text_beside_the_picture_is_hidden(tmp_path: Path) -> None:
    """ING-12"""
    steps = [draw_picture(50, 550, 500, 100), write("on it", mode=3), write("beside it", y=300, mode=3)]
    assert read_hidden(draw_page(tmp_path / "a.pdf", *steps)) == ["beside it"]


def test_the_search_for_hidden_text_leaves_the_page_as_it_was(tmp_path: Path) -> None:
    path = draw_page(tmp_path / "a.pdf", fill(50, 580, 300, 40, NAVY), write("White on blue", colour=WHITE))
    with open_pdf(path) as pdf, open_text_page(pdf, 1) as (page, text_page):
        before = page.render().to_pil().tobytes()
        layer = read_layer(text_page)
        assert hidden_text.find_hidden(page, text_page, layer.text, lambda: layer.indices(text_page)) == ()
        assert page.render().to_pil().tobytes() == before


def test_character_indices_are_read_only_if_text_may_be_hidden(tmp_path: Path) -> None:
    path = draw_page(tmp_path / "a.pdf", fill(50, 580, 300, 40, GREY), write("Black on grey"))
    with open_pdf(path) as pdf, open_text_page(pdf, 1) as (page, text_page):
        text = read_layer(text_page).text
        assert hidden_text.find_hidden(page, text_page, text, lambda: pytest.fail("asked")) == ()


def test_a_page_with_hidden_text_has_a_warning(tmp_path: Path) -> None:
    """ING-12"""
    path = draw_page(tmp_path / "a.pdf", write("not seen at all, but quite long enough to matter", colour=WHITE))
    with PdfPages(path, max_pages=1) as document:
        page = next(document.pages())
    assert (page.text[slice(*page.hidden[0])], len(page.hidden)) == (
        "not seen at all, but quite long enough to matter",
        1,
    )
    assert "hidden_text" in page.warnings


@pytest.mark.parametrize(
    ("name", "number", "hidden"),
    [
        ("docling/invisible_text_layer.pdf", 1, ["Invisible OCR text layer"]),
        ("unstructured/invalid-pdf-structure-pdfminer-one-page.pdf", 2, ["U.S. GOVERNMENT ACCOUNTABILITY OFFICE"]),
        ("OCRmyPDF/graph_ocred.pdf", 1, []),
        ("docling/amt_handbook_sample.pdf", 1, []),
    ],
)
def test_hidden_text_of_real_files(name: str, number: int, hidden: list[str]) -> None:
    """ING-12"""
    assert read_hidden(requirements.need_corpus(f"files/{name}"), number) == hidden
