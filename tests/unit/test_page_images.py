"""Where a passage stands on its page, and pictures of it."""

from __future__ import annotations

import io
import random
import re
from pathlib import Path

import pypdfium2
import pytest
from PIL import Image, ImageChops

from functions.core import errors, page_images, pdf_extraction
from functions.core.page_images import Box
from tests import documents, requirements

WIDTH, HEIGHT = documents.LETTER
LINES = ["The first line of words", "holds a needle inside", "and a third line ends."]


def page_text(path: Path, number: int = 1) -> str:
    with pdf_extraction.PdfPages(path, max_pages=10_000) as document:
        return next(document.pages(number)).text


def boxes_of(path: Path, words: str, number: int = 1) -> list[Box]:
    start = page_text(path, number).index(words)
    return page_images.highlight_boxes(path, number, start, start + len(words))


def open_image(png: bytes) -> Image.Image:
    return Image.open(io.BytesIO(png)).convert("RGB")


def expected_box() -> Box:
    """Where "needle" of LINES is printed; Helvetica reaches from 0.21 below the baseline to 0.72 above."""
    left = documents.LEFT + documents.text_width("holds a ")
    right = left + documents.text_width("needle")
    baseline = documents.TOP - documents.LEADING
    return Box(left / WIDTH, 1 - (baseline + 9) / HEIGHT, right / WIDTH, 1 - (baseline - 3) / HEIGHT)


def assert_same_place(found: list[Box], expected: Box, tolerance: float = 0.006) -> None:
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
        box = Box(1 - box.bottom, box.left, 1 - box.top, box.right)
    assert_same_place(boxes_of(path, "needle"), box)


def test_boxes_are_fractions_of_the_crop_box(tmp_path: Path) -> None:
    """WEB-4"""
    path = documents.make_pdf(tmp_path / "a.pdf", LINES, crop=(50, 500, 350, 760))
    whole = expected_box()
    expected = Box(
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
def test_a_passage_has_one_box_a_line(tmp_path: Path, rotation: int) -> None:
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
def test_a_passage_that_is_not_there_is_not_found(tmp_path: Path, start: int, end: int) -> None:
    path = documents.make_pdf(tmp_path / "a.pdf", LINES)
    with pytest.raises(errors.NotFoundError):
        page_images.highlight_boxes(path, 1, start, end)


@pytest.mark.parametrize("number", [-1, 0, 2])
def test_a_page_that_is_not_there_is_not_found(tmp_path: Path, number: int) -> None:
    """LIB-9"""
    path = documents.make_pdf(tmp_path / "a.pdf", LINES)
    with pytest.raises(errors.NotFoundError):
        page_images.render_page(path, number)
    with pytest.raises(errors.NotFoundError):
        page_images.highlight_boxes(path, number, 0, 1)


@pytest.mark.parametrize("rotation", [0, 90])
def test_the_picture_is_marked_in_the_boxes_and_nowhere_else(tmp_path: Path, rotation: int) -> None:
    """LIB-9, WEB-4"""
    path = documents.make_pdf(tmp_path / "a.pdf", LINES, rotation=rotation)
    start = page_text(path).index("needle")
    plain = open_image(page_images.render_page(path, 1, scale=2))
    marked = open_image(page_images.render_page(path, 1, start=start, end=start + 6, scale=2))
    left, top, right, bottom = ImageChops.difference(plain, marked).getbbox() or (0, 0, 0, 0)
    (box,) = page_images.highlight_boxes(path, 1, start, start + 6)
    expected = (box.left * plain.width, box.top * plain.height, box.right * plain.width, box.bottom * plain.height)
    assert (left, top, right, bottom) == pytest.approx(expected, abs=1.01)
    darkest = min(sum(pixel) for pixel in marked.crop((left, top, right, bottom)).get_flattened_data())
    assert darkest < 120  # the ink stays readable under the mark


@pytest.mark.parametrize(
    ("size", "scale", "expected"),
    [((612, 792), 1.5, (918, 1188)), ((612, 792), 1000, (1757, 2274)), ((14_000, 10), 1, (14_000, 10))],
    ids=["usual", "huge scale", "wide page"],
)
def test_pictures_have_the_asked_scale_up_to_four_million_pixels(
    tmp_path: Path, size: tuple[int, int], scale: float, expected: tuple[int, int]
) -> None:
    """LIB-9"""
    image = open_image(page_images.render_page(documents.make_pdf(tmp_path / "a.pdf", "x", size=size), 1, scale=scale))
    assert image.size == pytest.approx(expected, abs=2)
    assert image.width * image.height <= page_images.MAX_PIXELS


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
