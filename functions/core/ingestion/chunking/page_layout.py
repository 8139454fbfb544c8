"""Decides which stretches of a page are prose, which are tables, and which no passage contains."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from functions.core import models
from functions.core.ingestion.chunking import running_lines
from functions.core.text.data_rows import is_data
from functions.core.text.visible import has_word

Header = tuple[tuple[str, ...], ...]

# Text of up to this length between two rows of a table is a row of its own: a heading across the columns, a remark.
_MAX_STRAY_CHARACTERS = 200
# If more text than this within the stretch of a table belongs to no cell, prose runs through the table.
_STRAY_SHARE = 0.02
_STRAY_CHARACTERS = 12
_BORDER_TOLERANCE = 3.0  # points

_PROSE, _TABLE, _LEFT_OUT = 0, 1, 2
_RUN_OF_PROSE: Final = re.compile(rb"\x00+")
_NOT_LINE_END: Final = re.compile(r"[^\n]")


@dataclass(frozen=True, slots=True)
class Carry:
    """What a page passes on to the next: its section, the table at its end, and the abbreviations that the document has
    defined so far, by their short forms. `group` is the title of the rows at the table's end.

    `dataclasses.asdict(carry)` can be stored as JSON, and `Carry.load` reads it.
    """

    section: str | None = None
    header: Header = ()
    borders: tuple[float, ...] = ()
    caption: str = ""
    abbreviations: Mapping[str, str] = field(default_factory=dict)
    group: str = ""

    @classmethod
    def load(cls, values: Mapping[str, Any]) -> Self:
        header = tuple(tuple(map(str, row)) for row in values.get("header") or ())
        borders = tuple(map(float, values.get("borders") or ()))
        known = dict(values.get("abbreviations") or {})
        caption, group = (str(values.get(name) or "") for name in ("caption", "group"))
        return cls(values.get("section"), header, borders, caption, known, group)


@dataclass(frozen=True, slots=True)
class TableBlock:
    """Consecutive rows of a table in the page text [start, end).

    `header` names their columns, even if it is elsewhere; `header_rows` are those rows of it that are in this block.
    `caption` is that of the table on the page before, which this one continues, and `group` the title of its last rows.
    """

    start: int
    end: int
    header: Header
    header_rows: tuple[models.TableRow, ...]
    rows: tuple[models.TableRow, ...]
    borders: tuple[float, ...]
    caption: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class PageLayout:
    """A page with its parts: each byte of `marks` says what the character of `text` at that offset belongs to.

    `visible` is the text with spaces for what is left out; `prose` has spaces for tables too.
    """

    text: str
    blocks: tuple[TableBlock, ...] = ()
    marks: bytes = b""
    visible: str = field(default="")
    prose: str = field(default="")

    def stretches(self, start: int, end: int) -> Iterator[models.Offsets]:
        """The stretches of prose in [start, end)."""
        if not self.marks:
            yield start, end
            return
        for match in _RUN_OF_PROSE.finditer(self.marks, start, end):
            yield match.span()

    def last_table(self) -> TableBlock | None:
        """The table at the end of the page, which nothing but a page number follows."""
        last = max(self.blocks, key=lambda block: block.end, default=None)
        return last if last is not None and _is_margin(self.visible[last.end :]) else None


def lay_out(page: models.Page, skip: Sequence[models.Offsets], carry: Carry) -> PageLayout:
    """Splits a page into prose, tables and the rest; `skip` applies outside of tables only, `page.hidden` everywhere.

    A row with hidden text becomes prose without that text, because it is unknown which cell the hidden text is in.
    """
    text = page.text
    if not page.tables and not page.hidden and not skip:
        return PageLayout(text, visible=text, prose=text)
    marks = bytearray(len(text))
    _mark(marks, (*skip, *page.hidden), _LEFT_OUT)
    blocks: list[TableBlock] = []
    tables = sorted(page.tables, key=lambda table: table.start)
    for index, table in enumerate(tables):
        header, body = _header_and_body(table, page.hidden)
        caption = group = ""
        if index == 0 and _is_margin(_blank(text[: table.start], marks, _LEFT_OUT)):
            header, body, names = _continue_table(header, body, table.borders, carry)
            if _may_continue(header + body, table.borders, carry) and _equal_names(names, carry.header):
                caption, group = carry.caption, carry.group
        else:
            names = tuple(row.cells for row in header)
        elsewhere = [
            (row.start, row.end)
            for other in tables
            if other is not table and other.start < table.end and table.start < other.end
            for row in other.rows
        ]
        found = _blocks(page, header, body, names, table.borders, elsewhere)
        blocks += [replace(block, caption=caption, group=group) for block in found]
    _mark(marks, [(block.start, block.end) for block in blocks], _PROSE)
    _mark(marks, _pure_tables(text, blocks), _TABLE)
    _mark(marks, page.hidden, _LEFT_OUT)
    return PageLayout(
        text,
        tuple(sorted(blocks, key=lambda block: block.start)),
        bytes(marks),
        visible=_blank(text, marks, _LEFT_OUT),
        prose=_blank(text, marks, _LEFT_OUT, _TABLE),
    )


def _mark(marks: bytearray, stretches: Sequence[models.Offsets], kind: int) -> None:
    for start, end in stretches:
        marks[start:end] = bytes([kind]) * len(marks[start:end])


def _blank(text: str, marks: bytearray, *kinds: int) -> str:
    """`text` with spaces in place of these kinds of text; line ends stay."""
    pieces, end = [], 0
    for match in re.finditer(b"[" + bytes(kinds) + b"]+", marks[: len(text)]):
        left, right = match.span()
        pieces += [text[end:left], _NOT_LINE_END.sub(" ", text[left:right])]
        end = right
    return "".join([*pieces, text[end:]])


def _is_margin(text: str) -> bool:
    return all(running_lines.is_page_number(line) for line in text.split("\n") if line.strip())


def count_header_rows(table: models.Table) -> int:
    """The rows at the top of a table that name its columns; a row of amounts does not."""
    return 0 if table.header_rows == 1 and is_data(table.rows[0].cells) else table.header_rows


def _header_and_body(
    table: models.Table, hidden: Sequence[models.Offsets]
) -> tuple[tuple[models.TableRow, ...], tuple[models.TableRow, ...]]:
    visible = [not _overlaps(row.start, row.end, hidden) for row in table.rows]
    rows = list(zip(table.rows, visible, strict=True))
    header_rows = count_header_rows(table)
    header, body = rows[:header_rows], rows[header_rows:]
    return tuple(row for row, is_visible in header if is_visible), tuple(row for row, is_visible in body if is_visible)


def _overlaps(start: int, end: int, stretches: Sequence[models.Offsets]) -> bool:
    return any(left < end and start < right for left, right in stretches)


def _continue_table(
    header: tuple[models.TableRow, ...], body: tuple[models.TableRow, ...], borders: tuple[float, ...], carry: Carry
) -> tuple[tuple[models.TableRow, ...], tuple[models.TableRow, ...], Header]:
    """Header rows, rows and column names of the first table of a page, which may continue that of the last page."""
    own_names = tuple(row.cells for row in header)
    rows = header + body
    if not rows or not carry.header or len(rows[0].cells) != len(carry.header[0]):
        return header, body, own_names
    if not _may_continue(rows, borders, carry):
        return header, body, own_names
    count = len(carry.header)
    if len(rows) >= count and _equal_names(tuple(row.cells for row in rows[:count]), carry.header):
        return rows[:count], rows[count:], tuple(row.cells for row in rows[:count])
    if own_names and _names_columns(own_names, [row.cells for row in body]):
        return header, body, own_names
    return (), rows, carry.header


def _may_continue(rows: Sequence[models.TableRow], borders: tuple[float, ...], carry: Carry) -> bool:
    """Whether a table's borders, as far as both are known, are those of the last table of the page before.

    Inner borders without rules depend on the words of the page. Where rows of amounts or the same names begin a page,
    the outer borders are enough.
    """
    if not (borders and carry.borders) or _equal_borders(borders, carry.borders):
        return True
    if not carry.header:
        return False
    columns, carried = len(rows[0].cells), len(carry.header[0])
    outer = [(borders[0], carry.borders[0]), *zip(borders[columns:], carry.borders[carried:], strict=False)]
    if not _equal_borders(*zip(*outer, strict=True)):
        return False
    first = next((row.cells for row in rows if any(map(has_word, row.cells[1:]))), None)
    is_unnamed = columns == carried and first is not None and is_data(first)
    return is_unnamed or _equal_names(tuple(row.cells for row in rows[: len(carry.header)]), carry.header)


def _equal_borders(one: Sequence[float], other: Sequence[float]) -> bool:
    return len(one) == len(other) and all(abs(a - b) <= _BORDER_TOLERANCE for a, b in zip(one, other, strict=True))


def _equal_names(names: Header, carried: Header) -> bool:
    return len(names) == len(carried) and all(map(_repeats, names, carried))


def _repeats(row: Sequence[str], names: Sequence[str]) -> bool:
    """Whether a row repeats the names, which may be shortened to "…", and may lack a column that is empty now."""

    def plain(text: str) -> str:
        return "".join(text.split()).casefold()

    if len(row) != len(names):
        return any(row) and plain("".join(row)) == plain("".join(names))
    return all(
        plain(cell).startswith(plain(name[:-1])) if name.endswith("…") else plain(cell) == plain(name)
        for cell, name in zip(row, names, strict=True)
    )


def _names_columns(header: Header, body: Sequence[tuple[str, ...]]) -> bool:
    """Whether the header differs from the rows below as names do: words above a column of figures."""
    for column, name in enumerate(header[-1]):
        cells = [row[column] for row in body if row[column].strip()]
        figures = sum(any(map(str.isdigit, cell)) for cell in cells)
        if any(map(str.isalpha, name)) and not any(map(str.isdigit, name)) and figures == len(cells) >= 2:
            return True
    return False


def _blocks(
    page: models.Page,
    header: tuple[models.TableRow, ...],
    body: tuple[models.TableRow, ...],
    names: Header,
    borders: tuple[float, ...],
    elsewhere: Sequence[models.Offsets],
) -> Iterator[TableBlock]:
    """The table, cut where other text lies between its rows; a few words between two rows become a row.

    Text `elsewhere` is in rows of a table beside this one, with which its own rows alternate.
    """
    rows = list(body)
    block: TableBlock | None = None
    for row in sorted(header + body, key=lambda row: (row.start, row.end)):
        if block is not None and row.start > block.end:
            stray = _omit(page.text, block.end, row.start, elsewhere)
            if _overlaps(block.end, row.start, page.hidden) or not _is_short(stray):
                yield _fill(block, header, rows)
                block = None
            elif has_word(stray):
                cells = (" ".join(stray.split()), *[""] * (len(row.cells) - 1))
                place = next((index for index, other in enumerate(rows) if other.start >= row.start), len(rows))
                rows.insert(place, models.TableRow(block.end, row.start, cells))
        if block is None:
            block = TableBlock(row.start, row.end, names, (), (), borders)
        block = replace(block, end=max(block.end, row.end))
    if block is not None:
        yield _fill(block, header, rows)


def _omit(text: str, start: int, end: int, stretches: Sequence[models.Offsets]) -> str:
    """The text [start, end) without these stretches."""
    pieces = []
    for left, right in sorted(stretches):
        if start < right and left < end:
            pieces.append(text[start:left])
            start = right
    return "".join([*pieces, text[start:end]])


def _is_short(stray: str) -> bool:
    return not has_word(stray) or (len(stray) <= _MAX_STRAY_CHARACTERS and "\n\n" not in stray.strip())


def _fill(block: TableBlock, header: Sequence[models.TableRow], rows: Sequence[models.TableRow]) -> TableBlock:
    def inside(row: models.TableRow) -> bool:
        return block.start <= row.start and row.end <= block.end

    return replace(block, header_rows=tuple(filter(inside, header)), rows=tuple(filter(inside, rows)))


def _pure_tables(text: str, blocks: Sequence[TableBlock]) -> list[models.Offsets]:
    """The stretches of tables that contain only their cells; a table that text runs through is prose as well."""
    groups: list[list[TableBlock]] = []
    end = -1
    for block in sorted(blocks, key=lambda block: block.start):
        if block.start >= end:
            groups.append([])
        groups[-1].append(block)
        end = max(end, block.end)
    pure = []
    for group in groups:
        start, end = group[0].start, max(block.end for block in group)
        names = [name for block in group for row in block.header_rows for name, _ in itertools.groupby(row.cells)]
        cells = [cell for block in group for row in block.rows for cell in row.cells]
        in_cells = sum(map(_count_letters, names + cells))
        if _count_letters(text[start:end]) <= in_cells * (1 + _STRAY_SHARE) + _STRAY_CHARACTERS:
            pure.append((start, end))
    return pure


def _count_letters(text: str) -> int:
    return sum(map(str.isalnum, text))
