"""Generates tables and documents from a seed: words of two languages, numbers, and layouts that are hard to read."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from reportlab.pdfbase.pdfmetrics import stringWidth

from tests.support.table_documents import MARGIN, RULED, UNRULED, Block, KnownTable, TableSpec, make_pdf

_WORDS = """
annual revenue income region market growth capital energy water transport research quality policy budget income health
school library station project contract supply demand network storage signal sample result method recettes dépenses
énergie santé école bibliothèque réseau marché région côté forêt hôpital élève naïveté été société qualité coût déchets
œuvre théâtre préfecture siècle évaluation réponse dégâts intérêts
"""
_NAMES = """
Alès Bordeaux Cambridge Dublin Évreux Fréjus Galway Harlow Ivry Jarnac Kendal Lyon Mâcon Nîmes Orléans Périgueux
"""
WORDS, NAMES = _WORDS.split(), _NAMES.split()


def sentence(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(WORDS, k=words)).capitalize()


def paragraph(rng: random.Random, sentences: int = 4) -> str:
    return " ".join(f"{sentence(rng, rng.randint(7, 16))}." for _ in range(sentences))


KINDS: dict[str, Callable[[random.Random], str]] = {
    "label": lambda rng: sentence(rng, rng.randint(1, 3)),
    "name": lambda rng: rng.choice(NAMES),
    "text": lambda rng: sentence(rng, rng.randint(2, 9)),
    "integer": lambda rng: f"{rng.randint(0, 10 ** rng.randint(1, 7)):,}",
    "nombre": lambda rng: f"{rng.randint(0, 10 ** rng.randint(1, 6)):,}".replace(",", " "),
    "decimal": lambda rng: f"{rng.uniform(-99, 999):.2f}",
    "percent": lambda rng: f"{rng.uniform(0, 100):.1f} %",
    "money": lambda rng: f"${rng.randint(1, 99_999):,}",
    "year": lambda rng: str(rng.randint(1950, 2024)),
    "date": lambda rng: f"{rng.randint(1, 28):02}/{rng.randint(1, 12):02}/{rng.randint(1990, 2024)}",
}
NUMERIC = ("integer", "nombre", "decimal", "percent", "money")


def random_table(
    rng: random.Random, style: str, *, width: float, rows: int | None = None, by_line: bool = False
) -> TableSpec:
    """A table of 2–6 columns, at most `width` points wide, with the features that make tables hard to read.

    Cells can be empty or span several lines or columns; rows can be titles or omit a name given in a row above;
    headers can have two rows.
    """
    size, padding, font = (
        rng.choice([8.0, 9.0, 10.0]),
        rng.choice([4.0, 6.0, 6.0, 8.0]),
        rng.choice(["Helvetica", "Times"]),
    )
    kinds = [rng.choice(["label", "name", "text"])]
    kinds += rng.choices(["label", "text", "year", "date", *NUMERIC * 2], k=rng.randint(1, 5 if width > 300 else 2))
    if style == "columns":  # each line is taken for a row there, so no cell may have several lines
        kinds = ["label" if kind == "text" else kind for kind in kinds]
    body = _random_body(rng, kinds, rows or rng.randint(4, 12))
    header = [" ".join(rng.choices(WORDS, k=rng.randint(1, 3))).capitalize() for _ in kinds]
    while len(kinds) > 2 and _needed_width([header, *body], size, padding) > width:
        kinds, header, body = kinds[:-1], header[:-1], [row[:-1] for row in body]
    if style == "plain" and len(kinds) == 2 and kinds[1] not in NUMERIC:
        kinds[1] = "integer"
        body = [[row[0], KINDS["integer"](rng)] for row in body]
    cells, spans = [header, *body], list[tuple[int, int, int]]()
    if len(kinds) >= 4 and style in ("grid", "filled", "booktabs", "plain") and rng.random() < 0.3 and not by_line:
        top, spans = _random_titles(rng, len(kinds))
        cells = [top, *cells]
    if len(kinds) >= 3 and style in ("grid", "filled", "lines", "booktabs") and rng.random() < 0.25 and not by_line:
        row = rng.randint(len(cells) - len(body) + 1, len(cells) - 1)
        cells[row] = [sentence(rng, 2), *[""] * (len(kinds) - 1)]
        spans += [(row, 0, len(kinds) - 1)] if style in ("grid", "filled") else []
    least = [_least_width(row[n] for row in [header, *body]) * size + 2 * padding + 1 for n in range(len(kinds))]
    spare = max(0.0, width * rng.uniform(0.85, 1.0) - sum(least))
    shares = [{"text": 3.0, "label": 1.5}.get(kind, 0.5) for kind in kinds]
    fixed = by_line or width < 300 or "text" in kinds or sum(map(len, header)) > 40
    return TableSpec(
        cells,
        style,
        header_rows=len(cells) - len(body),
        aligns=[_random_align(rng, kind) for kind in kinds],
        widths=[own + spare * share / sum(shares) for own, share in zip(least, shares, strict=True)] if fixed else [],
        spans=spans,
        size=size,
        padding=padding,
        gap=rng.choice([2.0, 3.0, 3.0, 4.0]),
        font=font,
        valign=rng.choice(["TOP", "MIDDLE", "BOTTOM"]),
        repeat=rng.random() < 0.7,
        by_line=by_line,
    )


def _random_body(rng: random.Random, kinds: Sequence[str], rows: int) -> list[list[str]]:
    grouped = len(kinds) > 2 and rng.random() < 0.15
    body = []
    for number in range(rows):
        row = [KINDS[kind](rng) for kind in kinds]
        for n in range(1, len(row)):
            if rng.random() < 0.08:
                row[n] = rng.choice(["", "-"])
        if grouped and number % 3:
            row[0] = ""
        body.append(row)
    return body


def _random_titles(rng: random.Random, columns: int) -> tuple[list[str], list[tuple[int, int, int]]]:
    """A row of titles over two columns each, and their spans."""
    top, spans = [""] * columns, []
    for start in range(columns % 2 or 2, columns - 1, 2):
        top[start] = sentence(rng, 1)
        spans.append((0, start, start + 1))
    return top, spans


def _random_align(rng: random.Random, kind: str) -> str:
    return rng.choice(["RIGHT", "RIGHT", "CENTER"] if kind in NUMERIC else ["LEFT", "LEFT", "LEFT", "LEFT", "CENTER"])


def _least_width(cells: Iterable[str]) -> float:
    """The least width of a column, relative to the font size, at which no word or number is broken."""
    words = [word for cell in cells for word in ([cell] if any(map(str.isdigit, cell)) else cell.split())]
    return max((stringWidth(word, "Helvetica-Bold", 1) for word in words), default=0.0)


def _needed_width(rows: Sequence[Sequence[str]], size: float, padding: float) -> float:
    return sum(_least_width(column) * size + 2 * padding + 1 for column in zip(*rows, strict=True))


def make_random_pdf(path: Path, seed: int, *, ruled: bool) -> list[KnownTable]:
    """A document of prose and one to four tables: some over two pages, in two columns, or on rotated pages."""
    rng = random.Random(seed)
    columns = rng.choice([1, 1, 1, 2])
    rotation = rng.choice([0, 0, 0, 0, 90, 180, 270])
    upright = rng.random() < 0.7
    turned = rotation in (90, 270) and upright
    width = ((792 if turned else 612) - 2 * MARGIN - 20 * (columns - 1)) / columns
    blocks: list[Block | None] = [paragraph(rng, rng.randint(2, 6))]
    for number in range(rng.randint(1, 4)):
        style = rng.choice(RULED if ruled else UNRULED)
        by_line = style in ("grid", "plain") and rng.random() < 0.2
        long = rng.random() < 0.15 and not by_line
        caption = f"Table {number + 1}: {sentence(rng, rng.randint(2, 9))}"
        blocks += [rng.choice([caption, paragraph(rng, 1)])] + ([""] if rng.random() < 0.5 else [])
        blocks.append(
            random_table(rng, style, width=width, rows=rng.randint(35, 60) if long else None, by_line=by_line)
        )
        blocks += ([""] if rng.random() < 0.5 else []) + [paragraph(rng, rng.randint(1, 5))]
    return make_pdf(path, *blocks, columns=columns, rotation=rotation, upright=upright)
