"""Draws PDF files with tables, and records which rows of which table are on which page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reportlab.lib import colors
from reportlab.lib.enums import TA_CENTER, TA_JUSTIFY, TA_LEFT, TA_RIGHT
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.utils import simpleSplit
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Flowable, Frame, PageBreak, PageTemplate, Paragraph, Spacer, Table

from tests.support.documents import LETTER

RULED = ("grid", "filled", "columns", "open", "thin boxes", "form object")
UNRULED = ("plain", "booktabs", "lines", "zebra")
MARGIN = 60.0
BOLD = {"Helvetica": "Helvetica-Bold", "Times": "Times-Bold"}
PLAIN = {"Helvetica": "Helvetica", "Times": "Times-Roman"}


@dataclass(frozen=True)
class KnownTable:
    """A table as drawn on one page: column names, and rows of cells; cells covered by a span are empty."""

    page: int
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    header_rows: int = 1


@dataclass(frozen=True)
class TableSpec:
    """A table to draw. `spans` are merged cells as (row, first column, last column); lengths are in points.

    `padding` is the space left and right of a cell's text, `gap` that above and below.
    """

    cells: Sequence[Sequence[str]]
    style: str = "grid"
    header_rows: int = 1
    aligns: Sequence[str] = ()
    widths: Sequence[float | None] = ()
    spans: Sequence[tuple[int, int, int]] = ()
    size: float = 9.0
    padding: float = 6.0
    gap: float = 3.0
    font: str = "Helvetica"
    valign: str = "TOP"
    repeat: bool = True
    by_line: bool = False
    """Whether text is drawn line by line across the columns; most programs draw it cell by cell."""

    @property
    def columns(self) -> int:
        return len(self.cells[0])

    def font_of(self, row: int) -> str:
        return (BOLD if row < self.header_rows else PLAIN)[self.font]

    def align(self, column: int) -> str:
        return self.aligns[column] if self.aligns else "LEFT"


Block = str | TableSpec


@dataclass
class Drawn:
    """What was drawn on each page: (page, table, numbers of the rows drawn there)."""

    parts: list[tuple[int, TableSpec, list[int]]] = field(default_factory=list)

    def tables(self) -> list[KnownTable]:
        return [_make_known_table(page, spec, rows) for page, spec, rows in self.parts]


def make_pdf(
    path: Path,
    *blocks: Block | None,
    columns: int = 1,
    rotation: int = 0,
    upright: bool = True,
    size: tuple[float, float] = LETTER,
) -> list[KnownTable]:
    """Draws paragraphs and tables one below the other, where None starts a new page; returns the tables page by page.

    With `rotation` the page has /Rotate and appears the right way up, or sideways if `upright` is False.
    """
    drawn = Drawn()
    seen = size[::-1] if rotation in (90, 270) and upright else size
    width = (seen[0] - 2 * MARGIN - 20 * (columns - 1)) / columns
    frames = [Frame(MARGIN + n * (width + 20), MARGIN, width, seen[1] - 2 * MARGIN, 0, 0, 0, 0) for n in range(columns)]

    def turn(canvas: Any, _: Any) -> None:
        if rotation and upright:
            canvas.translate(*{90: (size[0], 0), 180: size, 270: (0, size[1])}[rotation])
            canvas.rotate(rotation)

    # reportlab swaps the page size with the rotation; the media box must stay as given.
    page_size = size[::-1] if rotation in (90, 270) else size
    template = BaseDocTemplate(str(path), pagesize=page_size, rotation=rotation, invariant=1, title="tables")
    template.addPageTemplates(PageTemplate("page", frames, onPage=turn, pagesize=page_size))
    template.build([_flowable(block, width, drawn) for block in blocks])
    return drawn.tables()


def make_drawn_pdf(path: Path, draw: Callable[[Any], None]) -> Path:
    """A PDF with one page, drawn by `draw` on a reportlab canvas."""
    pdf = Canvas(str(path), pagesize=LETTER, invariant=1)
    pdf.setFont("Helvetica", 10)
    draw(pdf)
    pdf.showPage()
    pdf.save()
    return path


def draw_kerned(pdf: Any, rows: Sequence[Sequence[str]], xs: Sequence[float], y: float = 700.0) -> None:
    """Draws each row as one string with wide kerns between its cells, as TeX does."""
    for number, row in enumerate(rows):
        parts, end = [], xs[0]
        for x, text in zip(xs, row, strict=True):
            parts.append(f"{-(x - end) * 100:.0f} ({text})")
            end = x + stringWidth(text, "Helvetica", 10)
        pdf.addLiteral(f"BT /F1 10 Tf {xs[0]} {y - 14 * number} Td [{' '.join(parts)}] TJ ET")


def _flowable(block: Block | None, width: float, drawn: Drawn) -> Flowable:
    if block is None:
        return PageBreak()
    if isinstance(block, str):
        kind = ParagraphStyle("text", fontName="Helvetica", fontSize=10, leading=13, alignment=TA_JUSTIFY)
        return Paragraph(block, kind) if block else Spacer(1, 14)
    if block.by_line:
        return _LineTable(block, width, drawn)
    return _RecordedTable.of(block, width, drawn)


class _RecordedTable(Table):
    """A reportlab table that records which of its rows are drawn on which page."""

    spec: TableSpec
    drawn: Drawn
    done: list[int]

    @classmethod
    def of(cls, spec: TableSpec, width: float, drawn: Drawn) -> _RecordedTable:
        total = sum(part or 0 for part in spec.widths)
        widths = [part and part * min(1, width / total) for part in spec.widths] or [None] * spec.columns
        cells = [
            [_content(text, number, column, spec, widths) for column, text in enumerate(row)]
            for number, row in enumerate(spec.cells)
        ]
        table = cls(cells, colWidths=widths, repeatRows=spec.header_rows if spec.repeat else 0, hAlign="LEFT")
        table.spec, table.drawn, table.done = spec, drawn, []
        table.setStyle(_commands(spec))
        return table

    def _splitRows(self, *args: Any, **options: Any) -> list[Any]:
        parts: list[Any] = super()._splitRows(*args, **options)
        for part in parts:
            if isinstance(part, _RecordedTable):
                part.spec, part.drawn, part.done = self.spec, self.drawn, self.done
        return parts

    def draw(self) -> None:
        repeated = range(self.spec.header_rows if self.done and self.spec.repeat else 0)
        count = len(self._cellvalues) - len(repeated)
        rows = [*repeated, *range(len(self.done), len(self.done) + count)]
        self.done += range(len(self.done), len(self.done) + count)
        self.drawn.parts.append((self.canv.getPageNumber(), self.spec, rows))
        super().draw()

    def _drawLines(self) -> None:
        canvas = self.canv
        if self.spec.style == "form object":
            # The lines go into a form object, as in programs that embed drawings; the text stays on the page.
            name = f"rules{len(self.drawn.parts)}"
            canvas.beginForm(name)
            super()._drawLines()
            canvas.endForm()
            canvas.doForm(name)
            return
        if self.spec.style == "thin boxes":
            canvas.line = self._fill_line
        super()._drawLines()
        canvas.__dict__.pop("line", None)

    def _fill_line(self, x0: float, y0: float, x1: float, y1: float) -> None:
        self.canv.rect(x0, y0, max(x1 - x0, 0.8), max(y1 - y0, 0.8), stroke=0, fill=1)


def _content(text: str, number: int, column: int, spec: TableSpec, widths: Sequence[float | None]) -> Any:
    """A string, which is never wrapped, or a paragraph if the column has a width."""
    if widths[column] is None or any(row == number and first <= column <= last for row, first, last in spec.spans):
        return text
    align = {"LEFT": TA_LEFT, "RIGHT": TA_RIGHT, "CENTER": TA_CENTER}[spec.align(column)]
    kind = ParagraphStyle(
        "cell", fontName=spec.font_of(number), fontSize=spec.size, leading=spec.size * 1.2, alignment=align
    )
    return Paragraph(text.replace("&", "&amp;").replace("<", "&lt;"), kind)


def _commands(spec: TableSpec) -> list[tuple[Any, ...]]:
    whole, black, last = ((0, 0), (-1, -1)), colors.black, spec.header_rows - 1
    found: list[tuple[Any, ...]] = [
        ("FONT", *whole, PLAIN[spec.font], spec.size, spec.size * 1.2),
        ("FONT", (0, 0), (-1, last), BOLD[spec.font], spec.size, spec.size * 1.2),
        *((side, *whole, spec.padding) for side in ("LEFTPADDING", "RIGHTPADDING")),
        *((side, *whole, spec.gap) for side in ("TOPPADDING", "BOTTOMPADDING")),
        ("VALIGN", *whole, spec.valign),
        *(("ALIGN", (column, 0), (column, -1), spec.align(column)) for column in range(spec.columns)),
        *(("SPAN", (first, row), (to, row)) for row, first, to in spec.spans),
        *(("ALIGN", (first, row), (to, row), "CENTER") for row, first, to in spec.spans if row < spec.header_rows),
    ]

    def rule(place: str, start: tuple[int, int], end: tuple[int, int], weight: float) -> tuple[Any, ...]:
        return (place, start, end, weight, black)

    lines = {
        "grid": [rule("GRID", *whole, 0.5)],
        "form object": [rule("GRID", *whole, 0.5)],
        "filled": [("BACKGROUND", (0, 0), (-1, last), colors.lightgrey), rule("GRID", *whole, 0.25)],
        "columns": [
            rule("BOX", *whole, 0.7),
            rule("LINEAFTER", (0, 0), (-2, -1), 0.7),
            rule("LINEBELOW", (0, last), (-1, last), 0.7),
        ],
        "open": [
            rule("INNERGRID", *whole, 0.5),
            rule("LINEABOVE", (0, 0), (-1, 0), 0.5),
            rule("LINEBELOW", (0, -1), (-1, -1), 0.5),
        ],
        "thin boxes": [rule("GRID", *whole, 0.8)],
        "booktabs": [
            rule("LINEABOVE", (0, 0), (-1, 0), 1),
            rule("LINEBELOW", (0, last), (-1, last), 0.5),
            rule("LINEBELOW", (0, -1), (-1, -1), 1),
        ],
        "lines": [rule("LINEBELOW", *whole, 0.4)],
        "zebra": [("ROWBACKGROUNDS", *whole, [colors.whitesmoke, colors.white])],
        "plain": [],
    }
    return found + lines[spec.style]


class _LineTable(Flowable):
    """A small table whose text is drawn line by line across its columns; each column has a given or default width."""

    def __init__(self, spec: TableSpec, width: float, drawn: Drawn) -> None:
        super().__init__()
        total = sum(part or 80.0 for part in spec.widths) if spec.widths else 80.0 * spec.columns
        parts = list(spec.widths) or [80.0] * spec.columns
        self.spec, self.drawn = spec, drawn
        self.widths = [(part or 80.0) * min(1.0, width / total) for part in parts]
        self.lines = [
            [
                simpleSplit(text, spec.font_of(number), spec.size, self.widths[n] - 2 * spec.padding)
                for n, text in enumerate(row)
            ]
            for number, row in enumerate(spec.cells)
        ]
        self.heights = [max(1, *map(len, row)) * spec.size * 1.2 + 2 * spec.gap for row in self.lines]

    def wrap(self, *_: float) -> tuple[float, float]:
        return sum(self.widths), sum(self.heights)

    def draw(self) -> None:
        spec, canvas = self.spec, self.canv
        self.drawn.parts.append((canvas.getPageNumber(), spec, list(range(len(spec.cells)))))
        y = sum(self.heights)
        xs = [sum(self.widths[:n]) for n in range(spec.columns + 1)]
        for number, (row, height) in enumerate(zip(self.lines, self.heights, strict=True)):
            canvas.setFont(spec.font_of(number), spec.size)
            for line in range(max(map(len, row))):
                for column, lines in enumerate(row):
                    if line < len(lines):
                        self._write(lines[line], column, xs, y - spec.gap - spec.size * (1.2 * line + 1), number)
            if spec.style in RULED:
                canvas.grid(xs, [y, y - height])
            y -= height

    def _write(self, text: str, column: int, xs: Sequence[float], y: float, number: int) -> None:
        wide = stringWidth(text, self.spec.font_of(number), self.spec.size)
        room = xs[column + 1] - xs[column] - 2 * self.spec.padding - wide
        shift = {"LEFT": 0.0, "RIGHT": room, "CENTER": room / 2}[self.spec.align(column)]
        self.canv.drawString(xs[column] + self.spec.padding + shift, y, text)


def _make_known_table(page: int, spec: TableSpec, numbers: Sequence[int]) -> KnownTable:
    cells = [[" ".join(text.split()) for text in spec.cells[number]] for number in numbers]
    heads = (
        spec.header_rows if numbers[0] == 0 else 1
    )  # the first row counts as the header if the header is not repeated
    for row, first, last in spec.spans:
        if row < spec.header_rows and row in numbers[:heads]:
            cells[row][first : last + 1] = [cells[row][first]] * (last + 1 - first)
    header = tuple(name_column(cell for row in cells[:heads] if (cell := row[n])) for n in range(spec.columns))
    return KnownTable(page, header, tuple(map(tuple, cells[heads:])), heads)


def name_column(parts: Any) -> str:
    """The name of a column, joined from the header cells above it."""
    return " ".join(dict.fromkeys(parts))
