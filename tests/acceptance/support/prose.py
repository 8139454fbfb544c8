"""Generated text that differs from page to page and is the same in every run, for documents of any length."""

from __future__ import annotations

import random
import textwrap
from pathlib import Path

from tests.support.documents import make_docx, make_pdf

NOUNS = (
    "boiler",
    "turbine",
    "river",
    "harbour",
    "contract",
    "lease",
    "museum",
    "orchard",
    "engine",
    "archive",
    "bridge",
)
VERBS = (
    "heats",
    "turns",
    "crosses",
    "shelters",
    "binds",
    "ends",
    "shows",
    "grows",
    "drives",
    "keeps",
    "carries",
    "lends",
)
PLACES = (
    "Lyon",
    "Porto",
    "Bergen",
    "Turin",
    "Ghent",
    "Aarhus",
    "Graz",
    "Cork",
    "Bath",
    "Trieste",
    "Vigo",
    "Brno",
    "Tours",
)
LINE_WIDTH = 78


def write_paragraph(seed: str, sentences: int) -> str:
    """Sentences that no other seed produces."""
    rng = random.Random(seed)
    return " ".join(
        f"The {rng.choice(NOUNS)} of {rng.choice(PLACES)} {rng.choice(VERBS)} {rng.randrange(2, 9000)} times before the"
        f" {rng.choice(NOUNS)} {rng.choice(VERBS)} it."
        for _ in range(sentences)
    )


def write_page(name: str, number: int, sentences: int) -> list[str]:
    """The lines of a page; the first one names the page."""
    return [
        f"Page {number} of {name}.",
        *textwrap.wrap(write_paragraph(f"{name} {number}", sentences), LINE_WIDTH),
    ]


def make_book(path: Path, pages: int, sentences: int = 8) -> Path:
    """A PDF with this number of pages."""
    return make_pdf(
        path, *(write_page(path.stem, number, sentences) for number in range(1, pages + 1)), title=path.stem
    )


def make_report(path: Path, chapters: int) -> Path:
    """A DOCX with headings, paragraphs and one table per chapter."""
    blocks: list[object] = []
    for chapter in range(1, chapters + 1):
        table = [["Place", "Turns"], *([place, str(chapter * len(place))] for place in PLACES[:4])]
        blocks += [f"# Chapter {chapter}", write_paragraph(f"{path.stem} {chapter}", 12), table]
    return make_docx(path, *blocks, title=path.stem)


def write_markdown(name: str, chapters: int) -> str:
    return "\n\n".join(
        f"# Chapter {n} of {name}\n\n{write_paragraph(f'{name} {n}', 12)}" for n in range(1, chapters + 1)
    )
