"""Passages are highlighted with rectangles on a picture of their page."""

from __future__ import annotations

import io
import random
import re
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from PIL import Image, ImageChops

from functions.adapters import tesseract
from functions.core import errors, ports
from functions.core.extraction import ocr
from functions.core.extraction.pdf import page_images
from functions.core.extraction.pdf.page_images import Highlight
from functions.core.extraction.pdf.reader import PdfPages
from functions.core.models import RecognizedWord
from tests.support import documents, requirements

WIDTH, HEIGHT = documents.LETTER
PROSE = [
    "A lease for a fixed time ends when that time is over, and needs no",
    "notice. When the tenant stays and the landlord says nothing within",
    "two weeks (14 days), it goes on without end, at the same rent. Who",
    "wants to end it then must write by the third of a month: 25 years of",
    "practice have shown that most people miss this, and pay for nine",
    "months more. Repairs up to $120 are the tenant's; others are not.",
]
LINES = ["The first line of words", "holds a needle inside", "and a third line ends."]


def page_text(path: Path, number: int = 1) -> str:
    with PdfPages(path, max_pages=10_000) as document:
        return next(document.pages(number)).text


def boxes_of(path: Path, words: str, number: int = 1) -> list[Highlight]:
    start = page_text(path, number).index(words)
    return page_images.highlight_boxes(path, number, start, start + len(words))


def open_image(png: bytes) -> Image.Image:
    return Image.open(io.BytesIO(png)).convert("RGB")


def expected_box() -> Highlight:
    """Where "needle" of LINES is printed; Helvetica reaches from 0.21 below the baseline to 0.72 above."""
    left = documents.LEFT + documents.text_width("holds a ")
    right = left + documents.text_width("needle")
    baseline = documents.TOP - documents.LEADING
    return Highlight(left / WIDTH, 1 - (baseline + 9) / HEIGHT, right / WIDTH, 1 - (baseline - 3) / HEIGHT)


def assert_same_place(found: list[Highlight], expected: Highlight, tolerance: float = 0.006) -> None:
    (box,) = found
    for side in ("left", "top", "right", "bottom"):
        assert getattr(box, side) == pytest.approx(getattr(expected, side), abs=tolerance), (side, box, expected)


def test_a_word_is_boxed_where_it_was_printed(tmp_path: Path) -> None:
    """WEB-4"""
    path = documents.make_pdf(tmp_path / "a.pdf", LINES)
    assert_same_place(boxes_of(path, "needle"), expected_box())


@pytest.mark.parametrize("rotation", [90, 180, 270])
def test_boxes_turn_with_the_page(tmp_path: Path, rotation: int) -> None:
    """WEB-4"""
    path = documents.make_pdf(tmp_path / "a.pdf", LINES, rotation=rotation)
    box = expected_box()
    for _ in range(rotation // 90):
        box = Highlight(1 - box.bottom, box.left, 1 - box.top, box.right)
    assert_same_place(boxes_of(path, "needle"), box)


def test_boxes_are_fractions_of_the_crop_box(tmp_path: Path) -> None:
    """WEB-4"""
    path = documents.make_pdf(tmp_path / "a.pdf", LINES, crop=(50, 500, 350, 760))
    whole = expected_box()
    expected = Highlight(
        (whole.left * WIDTH - 50) / 300,
        (760 - (1 - whole.top) * HEIGHT) / 260,
        (whole.right * WIDTH - 50) / 300,
        (760 - (1 - whole.bottom) * HEIGHT) / 260,
    )
    assert_same_place(boxes_of(path, "needle"), expected, tolerance=0.015)


def test_text_outside_the_crop_box_has_no_box(tmp_path: Path) -> None:
    """ING-12"""
    path = documents.make_pdf(tmp_path / "a.pdf", LINES, crop=(50, 100, 350, 200))
    assert boxes_of(path, "needle") == []


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_a_passage_has_one_box_per_line(tmp_path: Path, rotation: int) -> None:
    """WEB-4"""
    path = documents.make_pdf(tmp_path / "a.pdf", LINES, rotation=rotation)
    assert len(boxes_of(path, "words\nholds a needle inside\nand a")) == 3


def test_columns_are_not_joined(tmp_path: Path) -> None:
    path = documents.make_two_column_pdf(tmp_path / "a.pdf", ["left end"], ["right start"])
    first, second = boxes_of(path, "left end right start")
    assert first.right < 0.3 < second.left


def test_a_word_cut_by_a_hyphen_is_boxed_on_both_lines(tmp_path: Path) -> None:
    path = documents.make_pdf(tmp_path / "a.pdf", ["The office con-", "tinued here"])
    first, second = boxes_of(path, "con\u00adtinued")
    assert first.right == pytest.approx((72 + documents.text_width("The office con-")) / WIDTH, abs=0.003)
    assert second.right == pytest.approx((72 + documents.text_width("tinued")) / WIDTH, abs=0.003)


def test_characters_of_two_units_and_missing_ones_do_not_shift_the_boxes(tmp_path: Path) -> None:
    """ING-4"""
    codes = {"A": "😀", "B": "\x00", "C": "ffi"}
    path = documents.make_mapped_pdf(tmp_path / "a.pdf", "AAABBBCCCneedle", codes)
    assert page_text(path) == "😀😀😀\ufffd\ufffd\ufffdffiffiffineedle"
    left = documents.LEFT + documents.text_width("AAABBBCCC", 20)
    (box,) = boxes_of(path, "needle")
    assert box.left == pytest.approx(left / WIDTH, abs=0.003)
    assert box.right == pytest.approx((left + documents.text_width("needle", 20)) / WIDTH, abs=0.003)


@pytest.mark.parametrize(("start", "end"), [(-1, 3), (3, 1), (0, 10_000)])
def test_a_passage_outside_the_text_is_not_found(tmp_path: Path, start: int, end: int) -> None:
    path = documents.make_pdf(tmp_path / "a.pdf", LINES)
    with pytest.raises(errors.NotFoundError):
        page_images.highlight_boxes(path, 1, start, end)


@pytest.mark.parametrize("number", [-1, 0, 2])
def test_a_page_that_does_not_exist_is_not_found(tmp_path: Path, number: int) -> None:
    """LIB-9"""
    path = documents.make_pdf(tmp_path / "a.pdf", LINES)
    with pytest.raises(errors.NotFoundError):
        page_images.render_page(path, number)
    with pytest.raises(errors.NotFoundError):
        page_images.highlight_boxes(path, number, 0, 1)


@pytest.mark.parametrize("rotation", [0, 90])
def test_the_picture_is_highlighted_in_the_boxes_and_nowhere_else(tmp_path: Path, rotation: int) -> None:
    """LIB-9, WEB-4"""
    path = documents.make_pdf(tmp_path / "a.pdf", LINES, rotation=rotation)
    start = page_text(path).index("needle")
    plain = open_image(page_images.render_page(path, 1, scale=2))
    marked = open_image(page_images.render_page(path, 1, start=start, end=start + 6, scale=2))
    left, top, right, bottom = ImageChops.difference(plain, marked).getbbox() or (0, 0, 0, 0)
    (box,) = page_images.highlight_boxes(path, 1, start, start + 6)
    expected = (box.left * plain.width, box.top * plain.height, box.right * plain.width, box.bottom * plain.height)
    assert (left, top, right, bottom) == pytest.approx(expected, abs=1.01)
    pixels: Any = marked.crop((left, top, right, bottom)).get_flattened_data()
    darkest = min(sum(pixel) for pixel in pixels)
    assert darkest < 120  # the ink stays readable under the highlight


@pytest.mark.parametrize(
    ("size", "scale", "expected"),
    [
        ((612, 792), 1.5, (918, 1188)),
        ((612, 792), 1000, (1757, 2274)),
        ((14_000, 10), 1, (14_000, 10)),
        ((10_000_000, 1), 1, (4_000_000, 1)),
    ],
    ids=["usual", "huge scale", "wide page", "thread"],
)
def test_pictures_have_the_requested_scale_up_to_four_million_pixels(
    tmp_path: Path, size: tuple[int, int], scale: float, expected: tuple[int, int]
) -> None:
    """LIB-9"""
    image = open_image(page_images.render_page(documents.make_pdf(tmp_path / "a.pdf", "x", size=size), 1, scale=scale))
    assert image.size == pytest.approx(expected, abs=2)
    assert image.width * image.height <= page_images.MAX_PIXELS


def test_a_page_without_a_visible_area_is_corrupt(tmp_path: Path) -> None:
    """LIB-9: the crop box lies outside the page."""
    path = documents.make_pdf(tmp_path / "a.pdf", LINES, crop=(5000, 5000, 5100, 5100))
    for show in (page_images.highlight_boxes, lambda *of: page_images.render_page(of[0], of[1], start=0, end=0)):
        with pytest.raises(errors.CorruptDocumentError):
            show(path, 1, 0, 0)


def test_a_huge_page_is_drawn_small(tmp_path: Path) -> None:
    """LIB-9"""
    path = documents.make_pdf(tmp_path / "a.pdf", "x", size=(14_000, 14_000))
    image = open_image(page_images.render_page(path, 1))
    assert 0.9 * page_images.MAX_PIXELS < image.width * image.height <= page_images.MAX_PIXELS


@pytest.mark.parametrize("folder", ["pages_en", "pages_fr"])
def test_boxes_of_random_words_hold_those_words(folder: str) -> None:
    """WEB-4"""
    chance = random.Random(7)
    paths = sorted((requirements.need_eval_data(folder) / "pdf").glob("*.pdf"))
    checked = [_box_holds_word(path, chance) for path in paths for _ in range(8)]
    assert len(checked) >= 64
    assert checked.count(True) == len(checked)


def _box_holds_word(path: Path, chance: random.Random) -> bool:
    with pypdfium2.PdfDocument(path) as pdf:
        number = chance.randint(1, len(pdf))
        text = page_text(path, number)
        word = chance.choice(list(re.finditer(r"\b[A-Za-zÀ-ÿ\u00ad]{3,}\b", text)))
        page = pdf[number - 1]
        text_page = page.get_textpage()
        inside = ""
        for box in page_images.highlight_boxes(path, number, *word.span()):
            middle = page.get_height() * (1 - (box.top + box.bottom) / 2)
            width = page.get_width()
            inside += text_page.get_text_bounded(
                box.left * width - 0.2, middle - 1, box.right * width + 0.2, middle + 1
            )
        return re.sub(r"\W|\x02", "", inside) == word.group().replace("\u00ad", "")


def make_scan(path: Path, source: Path, *, rotation: int, upright: bool) -> Path:
    """Page 1 of `source` as a picture on a page with /Rotate `rotation`; its text appears upright, or turned by it."""
    with pypdfium2.PdfDocument(source) as pdf:
        picture = pdf[0].render(scale=200 / 72).to_pil()
    picture.rotate(rotation if upright else 0, expand=True).save(path, "PDF", resolution=200)
    with pypdfium2.PdfDocument(path) as pdf:
        pdf[0].set_rotation(rotation)
        pdf.save(turned := path.with_suffix(".turned.pdf"))
    return turned


def recognize(path: Path) -> ports.RecognizedPage:
    requirements.need_tesseract()
    recognizer = tesseract.find_tesseract()
    assert recognizer is not None
    with pypdfium2.PdfDocument(path) as pdf:
        picture = ocr.draw_page(pdf[0])
    assert picture is not None
    found = ocr.recognize_picture(picture, recognizer, timeout=120)
    assert found is not None
    return found


def printed_box(text_page: pypdfium2.PdfTextPage, start: int, end: int) -> Highlight:
    """Where characters [start, end) of an upright page are printed."""
    boxes = [text_page.get_charbox(index) for index in range(start, end)]
    left, bottom, right, top = (pick(box[side] for box in boxes) for side, pick in enumerate((min, min, max, max)))
    return Highlight(left / WIDTH, 1 - top / HEIGHT, right / WIDTH, 1 - bottom / HEIGHT)


def printed_words(path: Path) -> list[tuple[str, Highlight]]:
    with pypdfium2.PdfDocument(path) as pdf:
        text_page = pdf[0].get_textpage()
        found = list(re.finditer(r"\S+", text_page.get_text_range()))
        return [(match.group(), printed_box(text_page, *match.span())) for match in found]


def turn(box: Highlight) -> Highlight:
    """`box` on the page turned clockwise by 90 degrees."""
    return Highlight(1 - box.bottom, box.left, 1 - box.top, box.right)


def share_in_common(first: Highlight, second: Highlight) -> float:
    """The area of the intersection as a share of the area of the union."""
    width = min(first.right, second.right) - max(first.left, second.left)
    height = min(first.bottom, second.bottom) - max(first.top, second.top)
    common = max(0.0, width) * max(0.0, height)
    areas = [(box.right - box.left) * (box.bottom - box.top) for box in (first, second)]
    return common / (sum(areas) - common)


@pytest.mark.parametrize(("rotation", "upright"), [(0, True), (90, True), (90, False), (180, False)])
def test_the_words_of_a_scan_are_boxed_where_they_were_printed(tmp_path: Path, rotation: int, upright: bool) -> None:
    """ING-2, WEB-4: for 95 of 100 words, box and printed word overlap in half of their joint area."""
    source = documents.make_pdf(tmp_path / "a.pdf", PROSE)
    scan = make_scan(tmp_path / "b.pdf", source, rotation=rotation, upright=upright)
    found, truth = recognize(scan), printed_words(source)
    assert found.text.split() == [word for word, _ in truth]
    shares = []
    for word, (_, box) in zip(found.recognition.words, truth, strict=True):
        for _ in range(0 if upright else rotation // 90):
            box = turn(box)
        (seen,) = page_images.highlight_boxes(scan, 1, word.start, word.end, words=found.recognition.words)
        shares.append(share_in_common(seen, box))
    assert len(shares) == 80
    assert sum(share >= 0.5 for share in shares) >= 0.95 * len(shares)


def place_words(*lines: str, step: float = 0.0) -> list[RecognizedWord]:
    """Words 0.1 wide and 0.02 high, lines 0.03 apart; each word is `step` lower than the one on its left."""
    words, start = [], 0
    for row, line in enumerate(lines):
        for column, word in enumerate(line.split()):
            left, top = 0.1 + 0.11 * column, 0.1 + 0.03 * row + step * column
            words.append(RecognizedWord(start, start + len(word), left, top, left + 0.1, top + 0.02))
            start += len(word) + 1
    return words


def boxes_of_words(tmp_path: Path, words: list[RecognizedWord], start: int, end: int) -> list[Highlight]:
    path = documents.make_picture_pdf(tmp_path / "a.pdf")
    return page_images.highlight_boxes(path, 1, start, end, words=words)


def test_words_of_a_line_share_a_box_that_covers_partly_selected_words_whole(tmp_path: Path) -> None:
    """ING-2, WEB-4"""
    words = place_words("one two three", "four five")
    assert boxes_of_words(tmp_path, words, 5, 16) == [Highlight(0.21, 0.1, 0.42, 0.12), Highlight(0.1, 0.13, 0.2, 0.15)]


def test_a_crooked_line_is_not_joined_with_the_next(tmp_path: Path) -> None:
    """ING-2, WEB-4"""
    words = place_words("one two three four five six", "seven", step=0.005)
    assert len(boxes_of_words(tmp_path, words, 0, words[-1].end)) == 2


def test_words_that_run_down_the_page_are_joined_too(tmp_path: Path) -> None:
    """ING-2, WEB-4"""
    words = [RecognizedWord(start, start + 4, 0.1, 0.1 + start / 50, 0.12, 0.19 + start / 50) for start in (0, 5, 10)]
    assert boxes_of_words(tmp_path, words, 0, 14) == [Highlight(0.1, 0.1, 0.12, 0.39)]


@pytest.mark.parametrize(("start", "end"), [(-1, 3), (3, 1), (0, 14)])
def test_a_passage_beyond_the_words_is_not_found(tmp_path: Path, start: int, end: int) -> None:
    """ING-2, WEB-4"""
    with pytest.raises(errors.NotFoundError):
        boxes_of_words(tmp_path, place_words("one two three"), start, end)


def test_an_empty_passage_has_no_box(tmp_path: Path) -> None:
    """ING-2, WEB-4"""
    assert boxes_of_words(tmp_path, place_words("one two three"), 5, 5) == []


def test_the_picture_of_a_scan_is_highlighted_where_the_words_are(tmp_path: Path) -> None:
    """ING-2, LIB-9"""
    path = documents.make_pdf(tmp_path / "a.pdf", "")
    words = place_words("one two three")
    plain = open_image(page_images.render_page(path, 1, scale=1))
    marked = open_image(page_images.render_page(path, 1, start=4, end=7, scale=1, words=words))
    expected = (0.21 * WIDTH, 0.1 * HEIGHT, 0.31 * WIDTH, 0.12 * HEIGHT)
    assert ImageChops.difference(plain, marked).getbbox() == pytest.approx(expected, abs=1.01)
