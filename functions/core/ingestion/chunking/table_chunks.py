"""Cuts a table into passages: whole if it fits, else between rows, each piece with the caption and the column names.

Rows are indexed as plain lines, because pipes and dashes use up the tokens of the embedding model. The model that
answers reads Markdown.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from functions.core import models
from functions.core.ingestion.chunking.captions import Lead
from functions.core.ingestion.chunking.page_layout import Header, TableBlock
from functions.core.ingestion.chunking.passages import PassageBuilder, find_middle, trim
from functions.core.text import markdown_tables, token_spans
from functions.core.text.visible import has_word

_MAX_SECTION_WORDS = 10
_LABEL_SHARE = 4  # a first cell of at most a quarter of the room is repeated above each piece of its row


@dataclass(frozen=True, slots=True)
class _Line:
    """A row, or as much of its cells as fits into a passage, and the stretch of page text that contains it."""

    start: int
    end: int
    cells: tuple[str, ...]
    tokens: int


def chunk_table(block: TableBlock, lead: Lead, section: str | None, builder: PassageBuilder) -> list[models.Chunk]:
    """The chunks of a table, which together cover all of its text."""
    header = shorten_header(block.header, builder)
    rows = block.rows
    if header != block.header or not (rows or builder.fits_in_prefix(_join_header(block.header, builder))):
        # A header too long to be repeated is shortened above each piece, and its full text appears once, as rows.
        rows = block.header_rows + block.rows
        header = header if block.rows else ()
    writer = _Writer(builder, lead.caption, header, section)
    room = writer.room()
    lines = [line for row in rows for line in _fit_row(row, room, builder)]
    groups = list(_balance(lines, room))
    names = [(row.start, row.end) for row in block.header_rows]
    apart = [name for name in names if _stands_apart(name, groups[0], block)]
    pieces = [((), [name]) for name in apart] + [
        (group, [(line.start, line.end) for line in group]) for group in groups
    ]
    pieces[len(apart)][1].extend(name for name in names if name not in apart)
    chunks: list[models.Chunk] = []
    for group, stretches in pieces:
        if stretches and lead.start < block.start == min(stretches)[0]:
            stretches.append((lead.start, block.start))
        chunks += replace(writer, parent=_find_parent(lines, group, block.group)).write(group, stretches)
    return chunks


def find_last_group(block: TableBlock) -> str:
    """The title of the rows with which a table ends, which the next page may continue; empty without one."""
    return next((row.cells[0] for row in reversed(block.rows) if _is_section(row.cells)), block.group)


def _find_parent(lines: Sequence[_Line], group: Sequence[_Line], carried: str) -> Header:
    """The title, in a row of its own, of the rows with which a group begins, if it is in an earlier group.

    `carried` is the title on the page before.
    """
    if not group or _is_section(group[0].cells):
        return ()
    first = next((number for number, line in enumerate(lines) if line is group[0]), 0)
    found = next((line.cells for line in reversed(lines[:first]) if _is_section(line.cells)), None)
    if found is None and carried:
        found = (carried, *[""] * (len(group[0].cells) - 1))
    return (found,) if found else ()


def _is_section(cells: Sequence[str]) -> bool:
    """Whether a row is a short title of the rows below it: its other cells are empty, without even a dash."""
    title, *others = cells
    return has_word(title) and bool(others) and not any(others) and len(title.split()) <= _MAX_SECTION_WORDS


def _stands_apart(name: models.Offsets, lines: Sequence[_Line], block: TableBlock) -> bool:
    """Whether other rows are between a row of the header and the first rows in the page text."""
    if not lines:
        return False
    first, last = min(line.start for line in lines), max(line.end for line in lines)
    start, end = min(first, name[0]), max(last, name[1])
    return any(
        start <= row.start and row.end <= end
        for row in block.rows
        if not (first <= row.start and row.end <= last) and not (name[0] <= row.start and row.end <= name[1])
    )


def shorten_header(header: Header, builder: PassageBuilder) -> Header:
    """The header cut, cell by cell, to a third of a passage; a cut cell ends in an ellipsis."""
    rows = [list(row) for row in header]
    while builder.count_tokens(_join_header(rows, builder)) > max(1, builder.settings.max_tokens // 3):
        row = max(rows, key=lambda row: max(map(len, row)))
        column = max(range(len(row)), key=lambda index: len(row[index]))
        kept = row[column].rstrip("…")
        kept = kept[: len(kept) * 2 // 3].rstrip()
        row[column] = f"{kept}…" if len(kept) > 3 else ""
        if not any(map(any, rows)):
            break
    return tuple(map(tuple, rows))


def _join_rows(rows: Sequence[Sequence[str]], builder: PassageBuilder) -> str:
    """Rows as they are indexed: one line each, without cells that have no letter or digit."""
    return "\n".join(" ".join(" ".join(builder.clean(cell).split()) for cell in row if has_word(cell)) for row in rows)


def _join_header(header: Sequence[Sequence[str]], builder: PassageBuilder) -> str:
    """A header as it is indexed. The cells of a name that spans columns repeat it; here it appears once."""
    return _join_rows([[name for name, _ in itertools.groupby(row)] for row in header], builder)


def _make_line(row: models.TableRow, builder: PassageBuilder) -> _Line:
    return _Line(row.start, row.end, row.cells, builder.count_tokens(_join_rows([row.cells], builder)))


def _fit_row(row: models.TableRow, room: int, builder: PassageBuilder) -> Iterator[_Line]:
    """The row, or pieces of it that fit, cut between cells and in long cells; a short first cell begins each piece."""
    line = _make_line(row, builder)
    if line.tokens <= room:
        yield line
        return
    label = row.cells[0] if has_word(row.cells[0]) else ""
    label_tokens = builder.count_tokens(label)
    if label_tokens > room // _LABEL_SHARE:
        label, label_tokens = "", 0
    places = _Places(builder.page.text, row)
    cells, tokens, first, at = [""] * len(row.cells), 0, 0, 0
    for column, text, count in _split_cells(row, max(1, room - label_tokens), builder):
        if tokens and tokens + count > room:
            yield _Line(*places.between(first, at), tuple(cells), tokens)
            cells, tokens, first = [label, *[""] * (len(row.cells) - 1)], label_tokens, at
        cells[column] = f"{cells[column]} {text}".strip()
        tokens += count
        at += sum(map(str.isalnum, text))
    yield _Line(*places.between(first, at), tuple(cells), tokens)


def _split_cells(row: models.TableRow, room: int, builder: PassageBuilder) -> Iterator[tuple[int, str, int]]:
    for column, cell in enumerate(row.cells):
        if has_word(cell):
            for span in token_spans.split_spans(cell, 0, len(cell), room, builder.count_tokens):
                if has_word(text := cell[span.start : span.end].strip()):
                    yield column, text, span.tokens


class _Places:
    """Locates the letters of a row's cells in the page text; the whole row if the text has another order."""

    def __init__(self, text: str, row: models.TableRow) -> None:
        self._row = row
        offsets = [index for index in range(row.start, row.end) if text[index].isalnum()]
        cells = "".join(character for cell in row.cells for character in cell if character.isalnum())
        self._letters = offsets if "".join(text[index] for index in offsets) == cells else None

    def between(self, first: int, last: int) -> models.Offsets:
        """The page text from letter `first` up to letter `last` of the cells."""
        if self._letters is None:
            return self._row.start, self._row.end
        start = self._letters[first] if first else self._row.start
        return start, self._letters[last] if last < len(self._letters) else self._row.end


def _balance(lines: Sequence[_Line], room: int) -> Iterator[Sequence[_Line]]:
    """Groups of about equal size that fit, in order; one empty group if there are no lines."""
    total = sum(line.tokens for line in lines)
    goal = total / max(1, -(-total // room))
    start, tokens = 0, 0
    for index, line in enumerate(lines):
        if index > start and (tokens + line.tokens > room or tokens + line.tokens / 2 > goal):
            yield lines[start:index]
            start, tokens = index, 0
        tokens += line.tokens
    yield lines[start:]


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes groups of lines as chunks of one table."""

    builder: PassageBuilder
    caption: str
    header: Header
    section: str | None
    parent: Header = ()

    def room(self) -> int:
        """Tokens left for the rows below prefix, caption and header, at most twice the target."""
        above = self.builder.prefix(self.section, "") + self._lines_above()
        left = self.builder.settings.max_tokens - self.builder.count_tokens(above) - 2
        return max(1, min(left, 2 * self.builder.settings.target_tokens))

    def write(self, lines: Sequence[_Line], stretches: Sequence[models.Offsets]) -> list[models.Chunk]:
        """The chunk of these lines, or several if its `search_text` would be too long.

        Its `text` is the page text from the first to the last of `stretches`.
        """
        builder = self.builder
        if not stretches:
            return []
        start, end = trim(builder.page.text, min(stretches)[0], max(end for _, end in stretches))
        text = builder.page.text[start:end]
        if not has_word(text):
            return []
        rows = [*self.parent, *(line.cells for line in lines)]
        body = (self._lines_above() + _join_rows(rows, builder)).rstrip()
        prefix = builder.fit_prefix(builder.prefix(self.section, text), body)
        tokens = builder.count_tokens(prefix + body)
        if tokens > builder.settings.max_tokens:
            if halves := _halve(lines, builder):
                titles = (self.parent, _find_parent(lines, halves[1], self.parent[0][0] if self.parent else ""))
                return [
                    chunk
                    for half, parent in zip(halves, titles, strict=True)
                    for chunk in replace(self, parent=parent).write(half, stretches)
                ]
            if self.parent:
                return replace(self, parent=()).write(lines, stretches)
            if self.header:
                return replace(self, header=()).write(lines, stretches)
        markdown = markdown_tables.render_markdown(self.header, rows)
        return [builder.assemble(start, end, self.section, prefix + body, tokens, markdown)]

    def _lines_above(self) -> str:
        lines = [self.builder.clean(self.caption), _join_header(self.header, self.builder)]
        return "".join(f"{line}\n" for line in lines if has_word(line))


def _halve(lines: Sequence[_Line], builder: PassageBuilder) -> tuple[Sequence[_Line], Sequence[_Line]] | None:
    if len(lines) > 1:
        return lines[: len(lines) // 2], lines[len(lines) // 2 :]
    if not lines:
        return None
    (line,) = lines
    column = max(range(len(line.cells)), key=lambda index: len(line.cells[index]))
    cell = line.cells[column]
    if len(cell) < 2:
        return None
    middle = find_middle(cell)
    first = [*line.cells[:column], cell[:middle], *[""] * (len(line.cells) - column - 1)]
    second = [*[""] * column, cell[middle:], *line.cells[column + 1 :]]
    return [replace(line, cells=tuple(first))], [replace(line, cells=tuple(second))]
