"""Reading Tesseract's report, and its failures. Most tests replace the program by a script."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pypdfium2
import pytest
from PIL import Image

from functions.adapters import tesseract
from functions.adapters.tesseract import Tesseract
from functions.core import errors, models, ports
from functions.core.extraction import ocr
from functions.core.models import RecognizedWord
from tests.support import documents, requirements

HEADER = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext"
PAGE = "1\t1\t0\t0\t0\t0\t0\t0\t1000\t2000\t-1\t"


def word(text: str, place: str = "1 1 1", confidence: float = 95, box: str = "100 200 50 20") -> str:
    """A row of the report; `place` is block, paragraph and line, `box` left, top, width and height."""
    return "\t".join(["5", "1", *place.split(), "1", *box.split(), str(confidence), text])


def make_program(folder: Path, script: str, name: str = "tesseract") -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def recognize(folder: Path, *rows: str) -> ports.RecognizedPage:
    """The text recognized from a report with these rows."""
    (folder / "report.tsv").write_text("\n".join([HEADER, PAGE, *rows, ""]))
    program = make_program(folder, f"cat > /dev/null; cat '{folder}/report.tsv'")
    return Tesseract(program, "eng").recognize(b"png", timeout=10)


def draw(path: Path) -> bytes:
    with pypdfium2.PdfDocument(path) as pdf:
        picture = ocr.draw_page(pdf[0])
    assert picture is not None
    return ocr.encode_png(picture)


def read(path: Path) -> ports.RecognizedPage:
    requirements.need_tesseract()
    found = tesseract.find_tesseract()
    assert found is not None
    return found.recognize(draw(path), timeout=60)


def test_words_lines_and_paragraphs_are_separated_as_in_the_image(tmp_path: Path) -> None:
    """ING-2"""
    places = {"One": "1 1 1", "two": "1 1 1", "three-": "1 1 2", "four": "1 2 1", "five": "2 1 1"}
    found = recognize(tmp_path, *(word(text, place) for text, place in places.items()))
    assert found.text == "One two\nthree-\n\nfour\n\nfive"
    assert [found.text[each.start : each.end] for each in found.recognition.words] == list(places)


def test_boxes_are_fractions_of_the_image(tmp_path: Path) -> None:
    """ING-2"""
    found = recognize(tmp_path, word("Word", box="100 200 50 20"))
    assert found.recognition.words == (RecognizedWord(0, 4, 0.1, 0.1, 0.15, 0.11),)


def test_confidence_is_the_mean_over_the_characters_of_words(tmp_path: Path) -> None:
    """ING-2"""
    assert recognize(tmp_path, word("long", confidence=90), word("longer", confidence=80)).recognition.confidence == 84


@pytest.mark.parametrize(
    ("text", "confidence", "expected"),
    [
        ("=", 60, "Kept words"),
        ("=", 90, "= Kept words"),
        ("oo", 30, "Kept words"),
        ("42", 40, "42 Kept words"),
        ("wikipedia.org/wiki", 15, "wikipedia.org/wiki Kept words"),
        ("ssunenuz", 4, "Kept words"),
        ("|", 96, "Kept words"),
        ("|B", 96, "B Kept words"),
    ],
)
def test_noise_is_left_out(tmp_path: Path, text: str, confidence: float, expected: str) -> None:
    """ING-2"""
    assert recognize(tmp_path, word(text, confidence=confidence), word("Kept"), word("words")).text == expected


def test_a_block_that_is_mostly_noise_is_left_out(tmp_path: Path) -> None:
    """ING-2"""
    rubbish = [word("SFNES", "1 1 1", 30), word("SSCFL", "1 1 1", 45)]
    assert recognize(tmp_path, *rubbish, word("Caption", "2 1 1")).text == "Caption"


@pytest.mark.parametrize("rows", [[], [word("a")], [word("é"), word("§", confidence=99)]], ids=len)
def test_an_image_without_words_has_no_text(tmp_path: Path, rows: list[str]) -> None:
    """ING-2"""
    assert recognize(tmp_path, *rows) == ports.RecognizedPage("", models.Recognition(0.0, ()))


def test_tesseract_runs_with_one_thread_and_the_configured_languages(tmp_path: Path) -> None:
    program = make_program(tmp_path, f'cat > /dev/null; echo "$OMP_THREAD_LIMIT $*" > "{tmp_path}/seen"')
    Tesseract(program, "eng+fra").recognize(b"png", timeout=10)
    assert (tmp_path / "seen").read_text() == "1 stdin stdout -l eng+fra --psm 3 tsv\n"


def test_after_the_timeout_all_its_processes_are_ended(tmp_path: Path) -> None:
    program = make_program(tmp_path, f"sleep 60 &\necho $! > '{tmp_path}/pid'\nwait")
    started = time.monotonic()
    with pytest.raises(errors.RecognitionError):
        Tesseract(program, "eng").recognize(b"png", timeout=0.5)
    assert time.monotonic() - started < 10
    assert not is_running(int((tmp_path / "pid").read_text()))


def is_running(pid: int) -> bool:
    for _ in range(50):
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return False  # a zombie: it has ended and was not waited for
        except (ProcessLookupError, FileNotFoundError):
            return False
        time.sleep(0.1)
    return True


@pytest.mark.parametrize("script", ["cat > /dev/null; echo broken >&2; exit 1", "kill -9 $$"])
def test_a_failure_is_a_recognition_error(tmp_path: Path, script: str) -> None:
    with pytest.raises(errors.RecognitionError):
        Tesseract(make_program(tmp_path, script), "eng").recognize(b"png" * 100_000, timeout=10)


def test_a_missing_program_is_a_recognition_error(tmp_path: Path) -> None:
    with pytest.raises(errors.RecognitionError):
        Tesseract(str(tmp_path / "tesseract"), "eng").recognize(b"png", timeout=10)


@pytest.mark.parametrize(
    ("installed", "expected"), [("eng fra osd", "eng+fra"), ("fra osd", "fra"), ("eng", "eng"), ("osd", None)]
)
def test_the_installed_languages_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: str, expected: str | None
) -> None:
    program = make_program(tmp_path, f"printf '%s\\n' 'List of available languages (3):' {installed}")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert tesseract.find_tesseract() == (expected and Tesseract(program, expected))


def test_without_a_working_program_there_is_no_recognizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tesseract.find_tesseract() is None
    make_program(tmp_path, "exit 127")
    assert tesseract.find_tesseract() is None


def test_columns_are_read_one_after_the_other(tmp_path: Path) -> None:
    """ING-2"""
    left = ["The left column tells of", "rivers and the bridges", "built over them since the"]
    left += ["Romans came, and of those", "that the floods took away.", "It goes on for some lines"]
    right = ["while the right one tells", "of mountains and paths", "that lead over them, of"]
    right += ["huts in which to rest,", "and of weather that turns", "within the hour of a walk."]
    found = read(documents.make_two_column_pdf(tmp_path / "a.pdf", left, right))
    assert found.text.split() == " ".join(left + right).split()


def test_both_languages_are_read(tmp_path: Path) -> None:
    """ING-2"""
    lines = ["Le garçon a traversé la forêt en été.", "Where have all the pupils gone?"]
    assert read(documents.make_pdf(tmp_path / "a.pdf", lines)).text.split() == " ".join(lines).split()


def test_a_word_hyphenated_at_a_line_end_is_left_unchanged(tmp_path: Path) -> None:
    """ING-2"""
    assert "con-\ntinued" in read(documents.make_pdf(tmp_path / "a.pdf", ["The office con-", "tinued to pay."])).text


@pytest.mark.parametrize("png", [b"", b"no picture", b"\x89PNG\r\n\x1a\n"])
def test_an_invalid_image_is_a_recognition_error(png: bytes) -> None:
    requirements.need_tesseract()
    found = tesseract.find_tesseract()
    assert found is not None
    with pytest.raises(errors.RecognitionError):
        found.recognize(png, timeout=20)


@pytest.mark.parametrize("size", [(1, 1), (30_000, 3), (3, 30_000)])
def test_an_image_of_extreme_proportions_has_no_text(size: tuple[int, int]) -> None:
    requirements.need_tesseract()
    found = tesseract.find_tesseract()
    assert found is not None
    assert found.recognize(ocr.encode_png(Image.new("L", size, 255)), timeout=20).text == ""
