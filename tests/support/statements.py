"""Draws financial statements of one to three pages from a seed, and says what their heads, units and groups are."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reportlab.pdfgen.canvas import Canvas

from tests.support.documents import LETTER

LEFT, RIGHT, TOP, BOTTOM, LEADING = 60.0, 552.0, 720.0, 72.0, 14.0
NOTES_AT, COLUMN_WIDTH = 290.0, 78.0

TITLES = {
    "en": ("Consolidated Balance Sheets", "Consolidated Statements of Income", "Segment Information"),
    "fr": ("Bilan consolidé", "Compte de résultat consolidé", "Information sectorielle"),
}
UNITS = {
    "en": ("(in millions)", "(In thousands, except per share data)", "(millions of euros)", "(US$ in millions)"),
    "fr": ("(en millions d’euros)", "(en milliers d’euros)", "(en M€)"),
}
PERIODS = {
    "en": ("Year ended December 31,", "Fiscal year ended June 30,", "Three months ended March 31,"),
    "fr": ("Exercice clos le 31 décembre", "Au 30 juin"),
}
GROUPS = {
    "en": ("Current assets:", "Non-current assets:", "Current liabilities:", "Operating expenses:", "Other items:"),
    "fr": ("Actifs courants :", "Actifs non courants :", "Passifs courants :", "Charges opérationnelles :", "Divers :"),
}
ITEMS = {
    "en": (
        *("Cash and cash equivalents", "Trade receivables, net", "Inventories", "Prepaid expenses", "Goodwill"),
        *("Property, plant and equipment", "Deferred taxes", "Research and development", "Other", "Lease obligations"),
    ),
    "fr": (
        *("Trésorerie", "Créances clients", "Stocks", "Charges constatées d’avance", "Écarts d’acquisition"),
        *("Immobilisations corporelles", "Impôts différés", "Recherche et développement", "Autres", "Dettes de loyer"),
    ),
}


@dataclass(frozen=True)
class Statement:
    """What a statement says outside of its rows; `groups` are titles of rows, each with the label of its last row.

    `first` is the first row below the heads on the first page, `pages` how many pages the table is on.
    """

    title: str
    unit: str
    heads: tuple[str, ...]
    header_rows: int
    first: tuple[str, ...]
    groups: dict[str, str]
    pages: int


def make_statement_pdf(path: Path, seed: int) -> Statement:
    """A statement with the features that seed chooses: one or two rows of heads, notes, signs, rules, page breaks."""
    return _Drawing(path, random.Random(seed)).draw()


class _Drawing:
    def __init__(self, path: Path, rng: random.Random) -> None:
        self.rng = rng
        self.pdf: Any = Canvas(str(path), pagesize=LETTER, invariant=1)
        self.lang = rng.choice(["en", "en", "fr"])
        self.font = rng.choice(["Helvetica", "Times-Roman"])
        self.bold = {"Helvetica": "Helvetica-Bold", "Times-Roman": "Times-Bold"}[self.font]
        self.size = rng.choice([8.5, 9.0, 10.0])
        self.head_kind = rng.choice(["years", "period", "dates", "period"])
        self.unit_place = rng.choice(["line", "line", "corner", "title"])
        self.has_notes = rng.random() < 0.3
        self.has_dollars = self.lang == "en" and rng.random() < 0.6
        self.has_rules = rng.random() < 0.6
        self.repeats_heads = rng.random() < 0.6
        self.is_long = rng.random() < 0.4
        self.title = rng.choice(TITLES[self.lang])
        self.unit = rng.choice(UNITS[self.lang])
        self.period = rng.choice(PERIODS[self.lang])
        last = rng.randint(2012, 2024)
        self.years = [str(last - n) for n in range(rng.choice([2, 2, 3]))]
        self.ends = [RIGHT - COLUMN_WIDTH * n for n in range(len(self.years))][::-1]
        self.y, self.pages = TOP, 1

    def draw(self) -> Statement:
        self.write(LEFT, "The notes that follow are part of these statements and should be read with them.")
        self.y -= 2.5 * LEADING
        title = f"{self.title} {self.unit}" if self.unit_place == "title" else self.title
        self.write(LEFT, title, self.bold)
        self.y -= LEADING
        if self.unit_place == "line":
            self.write(LEFT, self.unit)
            self.y -= 0.5 * LEADING
        self.y -= LEADING
        self.draw_heads()
        groups: dict[str, str] = {}
        for group, rows in self.choose_rows():
            self.draw_row(group)
            for label, figures in rows:
                self.draw_row(label, figures, has_dollars=self.has_dollars and label in (rows[0][0], rows[-1][0]))
            groups[group] = rows[-1][0]
        if self.has_rules:
            self.rule(self.y + LEADING - 4)
        self.y -= 2 * LEADING
        self.write(LEFT, "See the accompanying notes, which describe the accounting policies of the group in detail.")
        self.pdf.save()
        names = [self.period] if self.head_kind == "period" else []
        return Statement(
            self.title,
            self.unit,
            (*names, *self.years),
            2 if self.head_kind == "period" else 1,
            (GROUPS[self.lang][0],),
            groups,
            self.pages,
        )

    def write(self, x: float, text: str, font: str = "", end: float | None = None, middle: float | None = None) -> None:
        self.pdf.setFont(font or self.font, self.size)
        if end is not None:
            self.pdf.drawRightString(end, self.y, text)
        elif middle is not None:
            self.pdf.drawCentredString(middle, self.y, text)
        else:
            self.pdf.drawString(x, self.y, text)

    def rule(self, y: float, start: float = LEFT) -> None:
        self.pdf.setLineWidth(0.5)
        self.pdf.line(start, y, RIGHT, y)

    def draw_heads(self) -> None:
        if self.has_rules:
            self.rule(self.y + LEADING - 2)
        if self.head_kind == "period":
            self.write(0, self.period, self.bold, middle=(self.ends[0] - COLUMN_WIDTH + RIGHT) / 2 + 20)
            self.y -= LEADING
        elif self.head_kind == "dates":
            for end in self.ends:
                self.write(0, "December 31," if self.lang == "en" else "31 décembre", self.bold, end=end)
            self.y -= 1.1 * self.size
        if self.unit_place == "corner":
            self.write(LEFT, self.unit)
        if self.has_notes:
            self.write(NOTES_AT, "Note", self.bold)
        for end, year in zip(self.ends, self.years, strict=True):
            self.write(0, year, self.bold, end=end)
        if self.has_rules:
            self.rule(self.y - 4)
        self.y -= LEADING * 1.2

    def draw_row(self, label: str, figures: Sequence[str] = (), *, has_dollars: bool = False) -> None:
        if self.y < BOTTOM:
            self.pdf.showPage()
            self.y, self.pages = TOP, self.pages + 1
            if self.repeats_heads:
                self.draw_heads()
        self.write(LEFT + (12 if figures else 0), label)
        if figures and self.has_notes and self.rng.random() < 0.4:
            self.write(NOTES_AT + 6, str(self.rng.randint(1, 30)))
        for end, figure in zip(self.ends, figures, strict=False):
            self.write(0, figure, end=end + (3 if figure.endswith(")") else 0))
            if has_dollars:
                self.write(end - COLUMN_WIDTH + 22, "$")
        self.y -= LEADING

    def choose_rows(self) -> Iterator[tuple[str, list[tuple[str, list[str]]]]]:
        count = 1
        for group in GROUPS[self.lang][: 5 if self.is_long else 3]:
            labels = self.rng.sample(ITEMS[self.lang], k=10 if self.is_long else self.rng.randint(3, 5))
            rows = [(f"{label} {count + n}", [self.figure() for _ in self.years]) for n, label in enumerate(labels)]
            count += len(rows)
            yield group, [*rows, (f"Total {count}", [self.figure() for _ in self.years])]
            count += 1

    def figure(self) -> str:
        amount = f"{self.rng.randint(1, 90_000):,}"
        amount = amount.replace(",", " ") if self.lang == "fr" else amount
        return self.rng.choice([amount] * 5 + [f"({amount})", "—"])
