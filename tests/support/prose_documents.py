"""Draws PDF pages with columns that are not tables, but are easily mistaken for tables."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

from reportlab.lib.utils import simpleSplit
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen import canvas

from tests.support.documents import LETTER
from tests.support.random_tables import NAMES, paragraph, sentence

Mark = tuple[float, float, str, str, float]
"""Left edge, baseline, text, font, and font size."""

LEFT, TOP, RIGHT, LEADING, SIZE = 60.0, 720.0, 552.0, 13.0, 10.0
FONT, BOLD, CODE = "Times-Roman", "Times-Bold", "Courier"


def make_pdf(path: Path, kind: str, seed: int) -> Path:
    """A PDF with one page of the given kind of PROSE."""
    pdf = canvas.Canvas(str(path), pagesize=LETTER, invariant=1)
    for x, y, text, font, size in PROSE[kind](random.Random(seed)):
        pdf.setFont(font, size)
        pdf.drawString(x, y, text)
    pdf.showPage()
    pdf.save()
    return path


def _write(text: str, x: float, y: float, width: float, justified: bool = False) -> Iterator[Mark]:
    """The lines of a paragraph; if justified, each word is placed separately."""
    lines = simpleSplit(text, FONT, SIZE, width)
    for number, line in enumerate(lines):
        words = line.split()
        spare = width - stringWidth("".join(words), FONT, SIZE)
        if not justified or number == len(lines) - 1 or len(words) < 2:
            yield x, y - number * LEADING, line, FONT, SIZE
            continue
        at = x
        for word in words:
            yield at, y - number * LEADING, word, FONT, SIZE
            at += stringWidth(word, FONT, SIZE) + spare / (len(words) - 1)


def _columns(count: int, justified: bool) -> Callable[[random.Random], Iterator[Mark]]:
    def write(rng: random.Random) -> Iterator[Mark]:
        width = (RIGHT - LEFT - 18 * (count - 1)) / count
        for column in range(count):
            text = paragraph(rng, 70 // count)
            lines = list(_write(text, LEFT + column * (width + 18), TOP, width, justified))
            yield from (line for line in lines if line[1] > 60)

    return write


def _rows(count: int) -> Iterator[tuple[float, int]]:
    return ((TOP - 16 * number, number) for number in range(count))


def _contents(filler: str) -> Callable[[random.Random], Iterator[Mark]]:
    def write(rng: random.Random) -> Iterator[Mark]:
        page = 1
        yield LEFT, TOP + 24, "Contents", BOLD, 16
        for y, number in _rows(24):
            title, page = sentence(rng, rng.randint(1, 6)), page + rng.randint(0, 5)
            yield LEFT, y, f"{number // 4 + 1}.{number % 4 + 1}", FONT, SIZE
            yield LEFT + 30, y, title, FONT, SIZE
            start, end = LEFT + 34 + stringWidth(title, FONT, SIZE), RIGHT - 20
            if filler:
                yield start, y, filler * int((end - start) / stringWidth(filler, FONT, SIZE)), FONT, SIZE
            yield RIGHT - stringWidth(str(page), FONT, SIZE), y, str(page), FONT, SIZE

    return write


def _references(rng: random.Random) -> Iterator[Mark]:
    y = TOP
    for number in range(1, 16):
        source = f"{sentence(rng, 6)}, {rng.randint(1990, 2024)}."
        text = f"{sentence(rng, 2)}, {sentence(rng, 1)}: {sentence(rng, 9)}. {source}"
        lines = list(_write(text, LEFT + 28, y, RIGHT - LEFT - 28))
        yield LEFT, y, f"[{number}]", FONT, SIZE
        yield from lines
        y -= LEADING * len(lines) + 4


def _code(rng: random.Random) -> Iterator[Mark]:
    source = [
        "def total(values, start=0):",
        "    result    = start        # the sum so far",
        "    count     = len(values)  # how many",
        "    for value in values:",
        "        result   += value    # add one",
        "        count    -= 1",
        "    return result, count",
        "",
        "SIZES = {",
        '    "small":   1,    "large":  20,',
        '    "medium":  10,   "huge":   300,',
        "}",
    ]
    for number, line in enumerate(source * 3):
        yield LEFT, TOP - 12 * number, line, CODE, 9.0


def _addresses(rng: random.Random) -> Iterator[Mark]:
    for x in (LEFT, 330.0):
        town = rng.choice(NAMES)
        lines = [sentence(rng, 2), f"{rng.randint(1, 99)} {sentence(rng, 2)}", f"{rng.randint(10, 99)}000 {town}"]
        for number, line in enumerate([*lines, "Tel. 01 23 45 67 89", "info@example.org"]):
            yield x, TOP - LEADING * number, line, FONT, SIZE
    yield from _write(paragraph(rng, 6), LEFT, TOP - 120, RIGHT - LEFT)


def _form(rng: random.Random) -> Iterator[Mark]:
    for y, _ in _rows(14):
        yield LEFT, y, f"{sentence(rng, 2)}:", FONT, SIZE
        yield LEFT + 130, y, "_" * 30, FONT, SIZE
        yield LEFT + 310, y, f"{sentence(rng, 1)}:", FONT, SIZE
        yield LEFT + 390, y, "_" * 14, FONT, SIZE


def _authors(rng: random.Random) -> Iterator[Mark]:
    for column in range(3):
        middle = 130 + 175 * column
        name = sentence(rng, 2)
        lines = [name, sentence(rng, 3), rng.choice(NAMES), f"{name.split()[0].lower()}@uni.example"]
        for number, line in enumerate(lines):
            yield middle - stringWidth(line, FONT, SIZE) / 2, TOP - LEADING * number, line, FONT, SIZE
    yield from _write(paragraph(rng, 9), LEFT, TOP - 100, RIGHT - LEFT, justified=True)


def _lists(rng: random.Random) -> Iterator[Mark]:
    y = TOP
    for number in range(1, 19):
        lines = list(_write(sentence(rng, rng.randint(3, 25)), LEFT + 20, y, RIGHT - LEFT - 20))
        yield LEFT, y, rng.choice(["•", f"{number}."]), FONT, SIZE
        yield from lines
        y -= LEADING * len(lines) + 3


def _index(rng: random.Random) -> Iterator[Mark]:
    for column in range(3):
        for number in range(40):
            text = f"{sentence(rng, rng.randint(1, 2))}, {rng.randint(1, 300)}"
            yield LEFT + 165 * column, TOP - 14 * number, text, FONT, 9.0


def _glossary(rng: random.Random) -> Iterator[Mark]:
    y = TOP
    for _ in range(12):
        lines = list(_write(sentence(rng, rng.randint(14, 40)), LEFT + 110, y, RIGHT - LEFT - 110))
        yield LEFT, y, sentence(rng, 2), BOLD, SIZE
        yield from lines
        y -= LEADING * len(lines) + 4


def _formulas(rng: random.Random) -> Iterator[Mark]:
    for number in range(12):
        y = TOP - 36 * number
        formula = f"f(x) = {rng.randint(2, 9)} x + y,    g(y) = x / {rng.randint(2, 9)}"
        yield from _write(sentence(rng, 12), LEFT, y, RIGHT - LEFT)
        yield LEFT + 160, y - 18, formula, FONT, SIZE
        yield RIGHT - 20, y - 18, f"({number + 1})", FONT, SIZE


PROSE: dict[str, Callable[[random.Random], Iterator[Mark]]] = {
    "one column": _columns(1, True),
    "two columns": _columns(2, True),
    "two ragged columns": _columns(2, False),
    "three columns": _columns(3, True),
    "contents with dots": _contents("."),
    "contents with spaced dots": _contents(" ."),
    "contents": _contents(""),
    "references": _references,
    "code": _code,
    "addresses": _addresses,
    "form": _form,
    "authors": _authors,
    "lists": _lists,
    "index": _index,
    "glossary": _glossary,
    "formulas": _formulas,
}
