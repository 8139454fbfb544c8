"""Reads the text of Word files in document order, straight from their XML.

Only the parts needed are read, and elements are found by their local names. So strict and damaged files are read that
object models refuse, pictures stay unread, and text in content controls, links, text boxes and notes is kept. Headings
become `#` lines, tables Markdown rows, and list items lines with their number or `- `; a note follows the paragraph
that cites it. Comments, page headers and footers, deleted text and hidden text are left out.
"""

from __future__ import annotations

import itertools
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from functions.core import errors, models
from functions.core.extraction import file_types, plain_text
from functions.core.extraction.docx import tables
from functions.core.extraction.docx.notes import REFERENCES, Notes
from functions.core.extraction.docx.numbering import BULLET, Numbering
from functions.core.extraction.docx.styles import RunFormat, Style, Styles, is_light, is_shaded, read_styles
from functions.core.extraction.docx.xml import attribute, find, is_on, number_of, parse_part, tag_of, value_of
from functions.core.text import dates
from functions.core.text.storable import clean_text
from functions.core.text.visible import has_word, is_blank

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_MAX_DEPTH = 200
_SKIPPED = frozenset(
    {"del", "moveFrom", "Fallback", "pPr", "rPr", "instrText", "delText", "sectPr", "tblPr", "trPr", "rt"}
)
_BREAKS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "softHyphen": "\u00ad", "ptab": "\t"}
_PART_GAP = "\n\n"
_DEEPEST_INDENT = 8
_LOWEST_HEADING = 6
_MAX_PROPERTY = 300


@dataclass(frozen=True)
class DocxParts(plain_text.TextParts):
    """The parts of a Word file; `hidden_on` are the numbers of the parts from which hidden text was left out."""

    hidden_on: frozenset[int] = frozenset()

    def pages(self, start: int = 1) -> Iterator[models.Page]:
        for page in super().pages(start):
            hides = page.number in self.hidden_on
            yield replace(page, warnings=(*page.warnings, "hidden_text")) if hides else page


def open_docx(path: Path, *, max_pages: int) -> DocxParts:
    """Reads a DOCX file as parts of at most 20,000 characters.

    Raises NoTextError for a file without text, CorruptDocumentError and TooManyPagesError.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            main_part = file_types.find_main_part(archive)
            if main_part is None:
                raise errors.CorruptDocumentError
            text, hidden_at = _read_text(archive, main_part)
            facts = _read_properties(parse_part(archive, "docProps/core.xml"))
    except file_types.ZIP_ERRORS as exc:
        raise errors.CorruptDocumentError from exc
    text = clean_text(text)
    if is_blank(text):
        raise errors.NoTextError
    parts = plain_text.build_parts(text, max_pages=max_pages, **facts)
    ends = list(itertools.accumulate(map(len, parts.parts)))
    hidden_on = {next((number for number, end in enumerate(ends, 1) if at < end), len(ends)) for at in hidden_at}
    return DocxParts(parts.parts, parts.metadata, frozenset(hidden_on))


def _read_text(archive: zipfile.ZipFile, main_part: str) -> tuple[str, list[int]]:
    """The text of a file, and the offsets at which hidden text was left out."""
    document = parse_part(archive, main_part)
    body = find(document, "body")
    if document is None or body is None:
        raise errors.CorruptDocumentError
    folder = str(PurePosixPath(main_part).parent)
    reader = _Reader(archive, folder, document)
    blocks: list[str] = []
    hidden_at: list[int] = []
    length = 0
    for block in itertools.chain(reader.read_blocks(body), reader.read_uncited_notes(document), [""]):
        if reader.take_hidden():
            hidden_at.append(length)
        blocks.append(block)
        length += len(block) + len(_PART_GAP)
    return _PART_GAP.join(blocks[:-1]), hidden_at


@dataclass(frozen=True, slots=True)
class _Place:
    """The surroundings of blocks: whether they are in a table or on a coloured ground, and how deep in the tree."""

    in_table: bool = False
    shaded: bool = False
    depth: int = 0

    def inside(self, *, in_table: bool = False, shaded: bool = False) -> _Place:
        """The surroundings of blocks one level deeper."""
        return _Place(self.in_table or in_table, self.shaded or shaded, self.depth + 1)


class _Reader:
    """Reads a document once, from start to end, because list items and notes are counted on the way."""

    def __init__(self, archive: zipfile.ZipFile, folder: str, document: Element) -> None:
        self._styles: Styles = read_styles(parse_part(archive, f"{folder}/styles.xml"))
        self._numbering = Numbering(
            parse_part(archive, f"{folder}/numbering.xml"),
            lambda style_id: (self._styles.of_paragraph(style_id).numbering or (None,))[0],
        )
        self._notes = Notes(archive, folder)
        self._top = _Place(shaded=not is_light(attribute(find(document, "background"), "color") or "FFFFFF"))
        self._left_out_hidden = False

    def take_hidden(self) -> bool:
        """Whether hidden text was left out since the last call."""
        left_out, self._left_out_hidden = self._left_out_hidden, False
        return left_out

    def read_blocks(self, parent: Element, place: _Place | None = None) -> Iterator[str]:
        """Paragraphs and tables below `parent`, in order; consecutive list items are one block."""
        place = place or self._top
        items: list[str] = []
        for child in _children(parent, place.depth):
            for text, is_item in self._child_blocks(child, place):
                if items and not is_item:
                    yield "\n".join(items)
                    items = []
                if is_item:
                    items.append(text)
                else:
                    yield text
        if items:
            yield "\n".join(items)

    def read_uncited_notes(self, document: Element) -> Iterator[str]:
        for note in self._notes.uncited(document):
            yield from self.read_blocks(note)

    def _child_blocks(self, child: Element, place: _Place) -> Iterator[tuple[str, bool]]:
        tag = tag_of(child)
        if tag == "p":
            text, is_item = self._paragraph(child, place)
            if text:
                yield text, is_item
            for box in _text_boxes(child):
                # Nothing says which colour the shape has, so white text in it is taken for visible.
                yield from ((block, False) for block in self.read_blocks(box, place.inside(shaded=True)))
            yield from self._cited_notes(place, is_item=is_item)
        elif tag == "tbl":
            yield from ((block, False) for block in self._table(child, place))
            yield from self._cited_notes(place, is_item=False)
        elif tag not in _SKIPPED:
            yield from ((block, False) for block in self.read_blocks(child, place.inside()))

    def _cited_notes(self, place: _Place, *, is_item: bool) -> Iterator[tuple[str, bool]]:
        """The notes that a paragraph or a table cites; notes of a cell are placed below its table."""
        for mark, note in () if place.in_table else self._notes.take():
            text = f"{mark} " + "\n".join(self.read_blocks(note))
            if has_word(text.removeprefix(mark)):
                yield text.strip(), is_item

    def _table(self, table: Element, place: _Place) -> Iterator[str]:
        properties = find(table, "tblPr")
        style_id = value_of(find(properties, "tblStyle"))
        place = place.inside(shaded=is_shaded(properties) or style_id in self._styles.shaded_tables)

        def read_cell(cell: Element) -> str:
            inner = place.inside(in_table=True, shaded=is_shaded(find(cell, "tcPr")))
            text = " ".join(map(tables.flatten, self.read_blocks(cell, inner)))
            return " ".join(text.split()).replace("|", "\\|")

        frame = tables.single_cell(table)
        if frame is not None:
            yield from self.read_blocks(frame, place.inside(shaded=is_shaded(find(frame, "tcPr"))))
        elif text := tables.render_table(table, read_cell):
            yield text

    def _paragraph(self, paragraph: Element, place: _Place) -> tuple[str, bool]:
        """The line of a paragraph ("" without any text), and whether it is an item of a list."""
        properties = find(paragraph, "pPr")
        style_id = value_of(find(properties, "pStyle"))
        style = self._styles.of_paragraph(style_id)
        form = style.format.over(self._styles.defaults)
        if place.shaded or is_shaded(properties):
            form = replace(form, shaded=True)
        text = "".join(self._runs(paragraph, form)).strip(" \n")
        mark = find(properties, "rPr")
        is_deleted = find(mark, "del") is not None or bool(is_on(find(mark, "vanish")))
        if not text.strip() and is_deleted:
            return "", False
        label, indent = self._label(properties, style, style_id)
        if not text.strip():
            return "", False
        if level := _heading_level(properties, style):
            number = "" if label in (None, "", BULLET) else f"{label} "
            return f"{'#' * level} {number}{' '.join(text.split())}", False
        return (f"{'  ' * min(indent, _DEEPEST_INDENT)}{label} {text}", True) if label else (text, False)

    def _label(self, properties: Element | None, style: Style, style_id: str | None) -> tuple[str | None, int]:
        """The label of a list item, such as "2." or "-", and its level from 0; None for any other paragraph."""
        own = find(properties, "numPr", "numId")
        own_level = find(properties, "numPr", "ilvl")
        number_id, level = style.numbering or ("", None)
        if own is not None:
            number_id, level = value_of(own) or "0", None if own_level is None else number_of(own_level)
        elif own_level is not None:
            level = number_of(own_level)
        if number_id == "0" or not (number_id or style.is_list):
            return None, 0
        if level is None:
            level = self._numbering.level_of(number_id, style_id)
        return self._numbering.label(number_id, level), level

    def _runs(self, element: Element, form: RunFormat, depth: int = 0) -> Iterator[str]:
        """The pieces of text below `element`, without those of text boxes, which are paragraphs of their own."""
        for child in _children(element, depth):
            tag = tag_of(child)
            if tag == "t":
                yield child.text or ""
            elif tag in _BREAKS:
                yield _BREAKS[tag]
            elif tag == "sym":
                yield _symbol(child)
            elif tag in REFERENCES:
                yield self._notes.cite(child)
            elif tag == "r":
                yield from self._run(child, self._styles.format_of_run(find(child, "rPr"), form), depth)
            elif tag not in _SKIPPED and tag != "txbxContent":
                yield from self._runs(child, form, depth + 1)

    def _run(self, run: Element, form: RunFormat, depth: int) -> Iterator[str]:
        if not form.hidden:
            yield from self._runs(run, form, depth + 1)
        elif has_word("".join(part.text or "" for part in run.iter() if tag_of(part) == "t")):
            self._left_out_hidden = True


def _children(element: Element, depth: int) -> Iterator[Element]:
    """The children of an element; none below the greatest depth, where text raises CorruptDocumentError."""
    if depth <= _MAX_DEPTH:
        yield from element
    elif any(tag_of(part) == "t" and part.text for part in element.iter()):
        raise errors.CorruptDocumentError("The document's elements are nested too deeply.")


def _text_boxes(element: Element, depth: int = 0) -> Iterator[Element]:
    for child in _children(element, depth):
        tag = tag_of(child)
        if tag == "txbxContent":
            yield child
        elif tag not in _SKIPPED and not (tag == "r" and is_on(find(child, "rPr", "vanish"))):
            yield from _text_boxes(child, depth + 1)


def _heading_level(properties: Element | None, style: Style) -> int:
    outline = find(properties, "outlineLvl")
    if outline is not None and number_of(outline, _LOWEST_HEADING) < _LOWEST_HEADING:
        return number_of(outline) + 1
    return style.level


def _read_properties(root: Element | None) -> dict[str, str | None]:
    values = (
        {tag_of(child): " ".join((child.text or "").split())[:_MAX_PROPERTY] for child in root}
        if root is not None
        else {}
    )
    title, author = values.get("title", ""), values.get("creator") or None
    return {
        "title": None if title.lower() in ("", "word document") else title,
        "author": None if author == "python-docx" else author,
        "published_at": dates.parse_date(values.get("created", "")[:10]),
    }


def _symbol(element: Element) -> str:
    """The character of a symbol; a bullet for private-use characters, whose shape only the font defines."""
    code = attribute(element, "char") or ""
    if not re.fullmatch("[0-9A-Fa-f]{4}", code):
        return ""
    return "•" if code[:2].upper() == "F0" else clean_text(chr(int(code, 16)))
