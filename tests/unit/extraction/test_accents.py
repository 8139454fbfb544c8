"""Accents that a PDF prints apart from their letters belong to them in the stored text."""

from __future__ import annotations

from pathlib import Path

import pytest
from reportlab.lib.pagesizes import A4
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen import canvas

from functions.core.extraction.pdf import page_images
from functions.core.extraction.pdf.reader import PdfPages

FONT, SIZE, LEFT, BASELINE = "Helvetica", 12.0, 72.0, 700.0


def print_apart(path: Path, before: str, accent: str, after: str, *, beside: bool = False) -> Path:
    """A page with the accent drawn over the first letter of `after`, as LaTeX does in one go, or else before it."""
    pdf = canvas.Canvas(str(path), pagesize=A4, invariant=1)
    text = pdf.beginText(LEFT, BASELINE)
    text.setFont(FONT, SIZE)
    width, letter = (stringWidth(part, FONT, 1000) for part in (accent, after[0]))
    there, back = (0.0, 0.0) if beside else ((width - letter) / 2, (width + letter) / 2)
    octal = f"\\{accent.encode('cp1252')[0]:o}"
    text._code.append(f"[({before}) {there} ({octal}) {back} ({after})] TJ")
    pdf.drawText(text)
    pdf.save()
    return path


def read(path: Path) -> str:
    with PdfPages(path, max_pages=1) as pages:
        return next(iter(pages.pages())).text


@pytest.mark.parametrize(
    ("before", "accent", "after", "stored"),
    [
        ("la fr", "´", "equence", "la fréquence"),
        ("fen", "ˆ", "etre", "fenêtre"),
        ("con", "¸", "cu", "conçu"),
    ],
)
def test_an_accent_over_a_letter_is_joined_to_it(
    tmp_path: Path, before: str, accent: str, after: str, stored: str
) -> None:
    """ING-4"""
    assert read(print_apart(tmp_path / "a.pdf", before, accent, after)) == stored


@pytest.mark.parametrize("accent", ["`", "´"])
def test_an_accent_before_a_letter_is_a_quotation_mark(tmp_path: Path, accent: str) -> None:
    """ING-4"""
    assert read(print_apart(tmp_path / "a.pdf", "run ", accent, "echo", beside=True)) == f"run {accent}echo"


def test_words_with_joined_accents_are_highlighted_where_they_are(tmp_path: Path) -> None:
    """WEB-4"""
    path = print_apart(tmp_path / "a.pdf", "la fr", "´", "equence mesure")
    start = read(path).index("mesure")
    (box,) = page_images.highlight_boxes(path, 1, start, start + len("mesure"))
    assert box.left * A4[0] == pytest.approx(LEFT + stringWidth("la frequence ", FONT, SIZE), abs=1)
