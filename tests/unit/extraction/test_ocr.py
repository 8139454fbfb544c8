"""OCR reads pages that lack text, from a drawing of the page, and repeats doubtful readings."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pypdfium2
import pytest
from PIL import Image, ImageChops
from reportlab.pdfgen import canvas

from functions.adapters import tesseract
from functions.core import errors, models, ports
from functions.core.extraction import ocr
from functions.core.models import RecognizedWord
from tests.support import documents, requirements

LINES = [
    "The tenant pays the rent on the first day of every month,",
    "and the landlord keeps the roof, the stairs and the heating",
    "in good order. Either of them may end the lease in writing",
    "three months before the end of a quarter, without reasons.",
]
WORDS = " ".join(LINES).split()
BLANK = Image.new("L", (200, 100), 255)
WORD = RecognizedWord(0, 5, 0.1, 0.2, 0.3, 0.25)


@dataclass
class Recognizer:
    """Returns these answers one after the other, and records the pictures and timeouts of the calls."""

    answers: Sequence[ports.RecognizedPage | errors.RecognitionError]
    pictures: list[Image.Image] = field(default_factory=list)
    timeouts: list[float] = field(default_factory=list)

    def recognize(self, png: bytes, *, timeout: float) -> ports.RecognizedPage:
        self.pictures.append(Image.open(io.BytesIO(png)))
        self.timeouts.append(timeout)
        answer = self.answers[len(self.pictures) - 1]
        if isinstance(answer, errors.RecognitionError):
            raise answer
        return answer


def reading(confidence: float, *words: RecognizedWord) -> ports.RecognizedPage:
    return ports.RecognizedPage("words" if words else "", models.Recognition(confidence, words))


@contextmanager
def open_page(path: Path) -> Iterator[pypdfium2.PdfPage]:
    with pypdfium2.PdfDocument(path) as pdf:
        yield pdf[0]


def draw(path: Path) -> Image.Image:
    with open_page(path) as page:
        picture = ocr.draw_page(page)
    assert picture is not None
    return picture


def make_painted_pdf(path: Path, left: float, right: float, size: tuple[float, float] = documents.LETTER) -> Path:
    """A page whose left and right halves are painted in one shade each; 1 is white."""
    pdf = canvas.Canvas(str(path), pagesize=size)
    for number, shade in enumerate((left, right)):
        pdf.setFillGray(shade)
        pdf.rect(number * size[0] / 2, 0, size[0] / 2, size[1], fill=1, stroke=0)
    pdf.save()
    return path


def read(picture: Image.Image) -> list[str]:
    """The words that Tesseract finds."""
    requirements.need_tesseract()
    recognizer = tesseract.find_tesseract()
    assert recognizer is not None
    found = ocr.recognize_picture(picture, recognizer, timeout=60)
    return found.text.split() if found else []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("a" * 49, True),
        ("a" * 50, False),
        ("a " * 49, True),
        ("a\u200b\ufeff\u00ad\n" * 49, True),
        ("a" * 49 + "\ufffd", True),
        ("a" * 60 + "\ufffd" * 60, False),
        ("a" * 60 + "\ufffd" * 61, True),
        ("a" * 60 + "\x00\x19\ue000" * 21, True),
        ("a" * 60 + "\r\n" * 100, False),
    ],
)
def test_a_page_with_fewer_than_fifty_readable_characters_is_read_from_its_picture(
    tmp_path: Path, text: str, expected: bool
) -> None:
    """ING-2"""
    with open_page(documents.make_picture_pdf(tmp_path / "a.pdf")) as page:
        assert ocr.needs_recognition(text, page) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("Short", False), ("", True), ("\x19\x12", True), ("\ufffd" * 90, True)]
)
def test_a_page_of_meaningless_characters_is_read_from_its_picture(tmp_path: Path, text: str, expected: bool) -> None:
    """ING-2"""
    with open_page(documents.make_pdf(tmp_path / "a.pdf", "Short")) as page:
        assert ocr.needs_recognition(text, page) == expected


def test_a_page_with_nothing_on_it_is_not_read(tmp_path: Path) -> None:
    """ING-2"""
    with open_page(documents.make_pdf(tmp_path / "a.pdf", "")) as page:
        assert not ocr.needs_recognition("", page)


@pytest.mark.parametrize("shade", [1.0, 0.5, 0.0])
def test_a_page_of_one_shade_is_not_drawn(tmp_path: Path, shade: float) -> None:
    """ING-2"""
    with open_page(make_painted_pdf(tmp_path / "a.pdf", shade, shade)) as page:
        assert ocr.draw_page(page) is None


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((612, 792), (2125, 2750)),
        ((842, 1190), (2914, 4119)),
        ((2160, 4320), (2449, 4899)),
        ((14_400, 14_400), (3464, 3464)),
        ((14_400, 1), (32_000, 3)),
        ((72, 72), (707, 707)),
        ((4, 4), (707, 707)),
        ((0.1, 0.1), (71, 71)),
    ],
    ids=str,
)
def test_a_page_is_drawn_at_250_dpi_within_bounds(
    tmp_path: Path, size: tuple[float, float], expected: tuple[int, int]
) -> None:
    """ING-2"""
    picture = draw(make_painted_pdf(tmp_path / "a.pdf", 0, 1, size))
    assert picture.mode == "L"
    assert picture.size == pytest.approx(expected, abs=2)
    assert picture.width * picture.height < 1.001 * ocr.MAX_PIXELS


def test_the_picture_shows_the_page_as_a_reader_sees_it(tmp_path: Path) -> None:
    """ING-2"""
    upright = draw(documents.make_pdf(tmp_path / "a.pdf", LINES, upright=True))
    turned = draw(documents.make_pdf(tmp_path / "b.pdf", LINES, rotation=90))
    assert turned.size == upright.size[::-1]
    difference = ImageChops.difference(turned.transpose(Image.Transpose.ROTATE_90), upright)
    assert np.asarray(difference).mean() < 0.5 < np.asarray(ImageChops.invert(upright)).mean()


def test_a_page_that_cannot_be_drawn_is_a_recognition_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ING-2"""

    def fail(*args: object, **options: object) -> None:
        raise MemoryError

    with open_page(documents.make_pdf(tmp_path / "a.pdf", LINES)) as page:
        monkeypatch.setattr(page, "render", fail)
        with pytest.raises(errors.RecognitionError):
            ocr.draw_page(page)


def test_a_good_reading_is_not_repeated() -> None:
    """ING-2"""
    recognizer = Recognizer([reading(91, WORD)])
    assert ocr.recognize_picture(BLANK, recognizer, timeout=10) == reading(91, WORD)


@pytest.mark.parametrize(
    ("second", "kept"),
    [(reading(88, WORD), 88), (reading(70, WORD), 80), (reading(95), 80), (errors.RecognitionError(), 80)],
    ids=str,
)
def test_a_reading_that_is_not_good_is_repeated_without_specks(
    second: ports.RecognizedPage | errors.RecognitionError, kept: float
) -> None:
    """ING-2"""
    speck = BLANK.copy()
    speck.putpixel((50, 50), 0)
    recognizer = Recognizer([reading(80, WORD), second])
    assert ocr.recognize_picture(speck, recognizer, timeout=10) == reading(kept, WORD)
    assert [picture.getextrema()[0] for picture in recognizer.pictures] == [0, 255]


def test_a_surer_reading_of_much_less_text_is_not_better() -> None:
    """ING-2"""
    long = replace(WORD, end=50)
    recognizer = Recognizer([reading(80, long), reading(90, WORD)])
    assert ocr.recognize_picture(BLANK, recognizer, timeout=10) == reading(80, long)


def test_a_doubtful_reading_is_repeated_upside_down() -> None:
    """ING-2"""
    recognizer = Recognizer([reading(40, WORD), reading(95, WORD)])
    found = ocr.recognize_picture(BLANK, recognizer, timeout=10)
    assert found == reading(95, RecognizedWord(0, 5, 0.7, 0.75, 0.9, 0.8))
    assert recognizer.timeouts[0] == 10 > recognizer.timeouts[1] > 9


def test_the_second_reading_is_of_the_picture_upside_down() -> None:
    """ING-2"""
    picture = BLANK.copy()
    picture.putpixel((0, 0), 0)
    recognizer = Recognizer([reading(0), reading(0)])
    assert ocr.recognize_picture(picture, recognizer, timeout=10) is None
    assert [each.getpixel((199, 99)) for each in recognizer.pictures] == [255, 0]


@pytest.mark.parametrize("second", [reading(30, WORD), reading(0), errors.RecognitionError()], ids=str)
def test_the_better_reading_is_kept(second: ports.RecognizedPage | errors.RecognitionError) -> None:
    """ING-2"""
    recognizer = Recognizer([reading(40, WORD), second, reading(0)])
    assert ocr.recognize_picture(BLANK, recognizer, timeout=10) == reading(40, WORD)


def test_after_a_better_upside_down_reading_specks_are_removed_from_that_picture() -> None:
    """ING-2"""
    recognizer = Recognizer([reading(40, WORD), reading(80, WORD), reading(85, WORD)])
    found = ocr.recognize_picture(BLANK, recognizer, timeout=10)
    assert found == reading(85, RecognizedWord(0, 5, 0.7, 0.75, 0.9, 0.8))


def test_nothing_is_tried_again_when_the_time_is_up() -> None:
    """ING-2"""

    class Slow(Recognizer):
        def recognize(self, png: bytes, *, timeout: float) -> ports.RecognizedPage:
            time.sleep(timeout)
            return super().recognize(png, timeout=timeout)

    assert ocr.recognize_picture(BLANK, Slow([reading(40, WORD)]), timeout=0.05) == reading(40, WORD)


def test_a_failure_of_the_first_reading_is_raised() -> None:
    """ING-2"""
    with pytest.raises(errors.RecognitionError):
        ocr.recognize_picture(BLANK, Recognizer([errors.RecognitionError()]), timeout=10)


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_a_scan_is_read_in_every_orientation(tmp_path: Path, turn: int) -> None:
    """ING-2"""
    picture = draw(documents.make_pdf(tmp_path / "a.pdf", LINES)).rotate(turn, expand=True)
    assert read(picture) == WORDS


@pytest.mark.parametrize("shades", [(0, 255), (255, 0), (200, 230), (60, 40)], ids=str)
def test_ink_may_be_darker_or_lighter_than_paper(tmp_path: Path, shades: tuple[int, int]) -> None:
    """ING-2"""
    ink, paper = shades
    picture = draw(documents.make_pdf(tmp_path / "a.pdf", LINES))
    assert read(picture.point(lambda value: ink + (paper - ink) * value / 255)) == WORDS


def test_a_shadow_on_the_paper_is_not_ink(tmp_path: Path) -> None:
    """ING-2"""
    image = draw(documents.make_pdf(tmp_path / "a.pdf", LINES))
    shadow = 0.3 + 0.7 * np.linspace(0, 1, image.width)
    Image.fromarray((np.asarray(image) * shadow).astype(np.uint8)).save(tmp_path / "b.pdf", resolution=ocr.DPI)
    assert read(draw(tmp_path / "b.pdf")) == WORDS


@pytest.mark.parametrize("name", ["ocr_test", "ocr_test_rotated_90", "ocr_test_rotated_180", "ocr_test_rotated_270"])
def test_a_turned_scan_of_few_words_is_read(name: str) -> None:
    """ING-2"""
    words = read(draw(requirements.need_corpus(f"files/docling/{name}.pdf")))
    assert " ".join(words).startswith("Docling bundles PDF document conversion to JSON and Markdown")
