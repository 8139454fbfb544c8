"""Reads the text of Word files in document order, straight from their XML.

Reading the parts needed, and only by local names, takes strict and damaged files that object models refuse, leaves
pictures unread, and keeps what stands in content controls, links, text boxes and notes. Headings become `#` lines,
tables Markdown rows, list items `- ` lines; deleted and hidden text is left out.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from functions.core import errors, file_types, text_extraction

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_MAX_DEPTH = 200
_SKIPPED = frozenset({"del", "moveFrom", "Fallback", "pPr", "rPr", "instrText", "delText", "sectPr", "tblPr", "trPr"})
_BREAKS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "softHyphen": "\u00ad", "ptab": "\t"}
_HEADING_NAME = re.compile(r"(?:heading|titre|überschrift) ?([1-9])|(title)", re.I)
_LIST_NAME = re.compile(r"list (bullet|number)|liste à (puces|numéros)", re.I)


@dataclass
class _Styles:
    """What paragraph styles mean, by style id: heading level from 1, and whether it is a list."""

    levels: dict[str, int] = field(default_factory=dict)
    lists: set[str] = field(default_factory=set)


class _Builder(ElementTree.TreeBuilder):
    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        """Office files have no document type; one is there only to define entities that expand without end."""
        raise errors.CorruptDocumentError


def open_docx(path: Path, *, max_pages: int) -> text_extraction.TextParts:
    """Reads a DOCX file as parts of at most 20,000 characters; raises NoTextError for one without any."""
    try:
        with zipfile.ZipFile(path) as archive:
            main_part = file_types.find_main_part(archive)
            if main_part is None:
                raise errors.CorruptDocumentError
            folder = str(PurePosixPath(main_part).parent)
            styles = _read_styles(_parse(archive, f"{folder}/styles.xml"))
            blocks = list(_document_blocks(archive, main_part, folder, styles))
            facts = _read_properties(_parse(archive, "docProps/core.xml"))
    except file_types.ZIP_ERRORS as exc:
        raise errors.CorruptDocumentError from exc
    text = text_extraction.clean_text("\n\n".join(blocks))
    if not text.strip():
        raise errors.NoTextError
    return text_extraction.build_parts(text, max_pages=max_pages, **facts)


def _document_blocks(archive: zipfile.ZipFile, main_part: str, folder: str, styles: _Styles) -> Iterator[str]:
    document = _parse(archive, main_part)
    body = _child(document, "body") if document is not None else None
    if body is None:
        raise errors.CorruptDocumentError
    yield from _blocks(body, styles)
    for name in ("footnotes", "endnotes"):
        notes = _parse(archive, f"{folder}/{name}.xml")
        for note in notes if notes is not None else ():
            # The separators between text and notes are stored as notes with a type.
            if _attribute(note, "type") in (None, "normal"):
                yield from _blocks(note, styles)


def _parse(archive: zipfile.ZipFile, name: str) -> Element | None:
    """The root of a part, None when there is no such part."""
    if name not in archive.namelist():
        return None
    parser = ElementTree.XMLParser(target=_Builder())
    try:
        with archive.open(name) as part:
            return ElementTree.parse(part, parser=parser).getroot()
    except (ElementTree.ParseError, LookupError) as exc:
        raise errors.CorruptDocumentError from exc


def _blocks(parent: Element, styles: _Styles, depth: int = 0) -> Iterator[str]:
    """Paragraphs and tables below `parent`, in order; consecutive list items are one block."""
    items: list[str] = []
    for child in parent if depth <= _MAX_DEPTH else ():
        for text, is_item in _child_blocks(child, styles, depth):
            if items and not is_item:
                yield "\n".join(items)
                items = []
            if is_item:
                items.append(text)
            else:
                yield text
    if items:
        yield "\n".join(items)


def _child_blocks(child: Element, styles: _Styles, depth: int) -> Iterator[tuple[str, bool]]:
    tag = _tag(child)
    if tag == "p":
        text = _paragraph(child, styles)
        if text:
            yield text, _is_list_item(child, styles)
        for box in _text_boxes(child):
            yield from ((block, False) for block in _blocks(box, styles, depth + 1))
    elif tag == "tbl":
        yield from ((block, False) for block in _table(child, styles, depth + 1))
    elif tag not in _SKIPPED:
        yield from ((block, False) for block in _blocks(child, styles, depth + 1))


def _paragraph(paragraph: Element, styles: _Styles) -> str:
    text = "".join(_runs(paragraph)).strip(" \n")
    if not text.strip():
        return ""
    level = _heading_level(paragraph, styles)
    if level:
        return f"{'#' * level} {' '.join(text.split())}"
    if _is_list_item(paragraph, styles):
        indent = _find(paragraph, "pPr", "numPr", "ilvl")
        return "  " * min(_number(indent), 8) + "- " + text
    return text


def _runs(element: Element, depth: int = 0) -> Iterator[str]:
    """The pieces of text below `element`, without those of text boxes, which are paragraphs of their own."""
    if depth > _MAX_DEPTH:
        return
    for child in element:
        tag = _tag(child)
        if tag == "t":
            yield child.text or ""
        elif tag in _BREAKS:
            yield _BREAKS[tag]
        elif tag == "sym":
            yield _symbol(child)
        elif tag == "r" and _is_hidden(child):
            continue
        elif tag not in _SKIPPED and tag != "txbxContent":
            yield from _runs(child, depth + 1)


def _text_boxes(element: Element, depth: int = 0) -> Iterator[Element]:
    if depth > _MAX_DEPTH:
        return
    for child in element:
        tag = _tag(child)
        if tag == "txbxContent":
            yield child
        elif tag not in _SKIPPED:
            yield from _text_boxes(child, depth + 1)


def _table(table: Element, styles: _Styles, depth: int) -> Iterator[str]:
    """One Markdown table; the first row is the header, since Markdown has no table without one."""
    rows = [row for row in (_row(row, styles, depth) for row in _descend(table, "tr")) if any(row)]
    if not rows:
        return
    width = max(map(len, rows))
    lines = [f"| {' | '.join(row + [''] * (width - len(row)))} |" for row in rows]
    lines.insert(1, "| " + " | ".join(["---"] * width) + " |")
    yield "\n".join(lines)


def _row(row: Element, styles: _Styles, depth: int) -> list[str]:
    cells: list[str] = []
    for cell in _descend(row, "tc"):
        text = " ".join(" ".join(map(_flatten, _blocks(cell, styles, depth))).split())
        cells.append(text.replace("|", "\\|"))
        span = _find(cell, "tcPr", "gridSpan")
        cells += [""] * min(_number(span, 1) - 1, 50)
    return cells


def _flatten(block: str) -> str:
    """A table inside a cell as plain words, since Markdown has no nested tables."""
    if not block.startswith("| "):
        return block
    rows = (line.strip("| ") for line in block.split("\n") if not line.startswith("| ---"))
    return "; ".join(re.sub(r"\s*(?<!\\)\|\s*", ", ", row) for row in rows)


def _descend(parent: Element, tag: str) -> Iterator[Element]:
    """Children with this tag, also when change marks or content controls wrap them."""
    for child in parent:
        if _tag(child) == tag:
            yield child
        elif _tag(child) in ("sdt", "sdtContent", "ins", "customXml", "moveTo"):
            yield from _descend(child, tag)


def _read_styles(root: Element | None) -> _Styles:
    styles, bases = _Styles(), dict[str, str]()
    for style in root if root is not None else ():
        style_id = _attribute(style, "styleId")
        if _tag(style) != "style" or style_id is None:
            continue
        name = _value(_child(style, "name")) or ""
        heading = _HEADING_NAME.fullmatch(name)
        outline = _find(style, "pPr", "outlineLvl")
        if heading:
            styles.levels[style_id] = min(int(heading.group(1) or 1), 6)
        elif outline is not None and _number(outline, 9) < 6:
            styles.levels[style_id] = _number(outline) + 1
        if _LIST_NAME.match(name) or _find(style, "pPr", "numPr") is not None:
            styles.lists.add(style_id)
        bases[style_id] = _value(_child(style, "basedOn")) or ""
    for style_id in bases:
        _inherit(style_id, bases, styles)
    return styles


def _inherit(style_id: str, bases: dict[str, str], styles: _Styles) -> None:
    base, seen = bases[style_id], {style_id}
    while base and base not in seen and style_id not in styles.levels:
        seen.add(base)
        if base in styles.levels:
            styles.levels[style_id] = styles.levels[base]
        if base in styles.lists:
            styles.lists.add(style_id)
        base = bases.get(base, "")


def _read_properties(root: Element | None) -> dict[str, str | None]:
    values = {_tag(child): " ".join((child.text or "").split())[:300] for child in root} if root is not None else {}
    created = re.match(r"\d{4}-\d\d-\d\d", values.get("created", ""))
    title, author = values.get("title", ""), values.get("creator") or None
    return {
        "title": None if title.lower() in ("", "word document") else title,
        "author": None if author == "python-docx" else author,
        "published_at": created.group() if created else None,
    }


def _heading_level(paragraph: Element, styles: _Styles) -> int:
    outline = _find(paragraph, "pPr", "outlineLvl")
    if outline is not None and _number(outline, 9) < 6:
        return _number(outline) + 1
    return styles.levels.get(_value(_find(paragraph, "pPr", "pStyle")) or "", 0)


def _is_list_item(paragraph: Element, styles: _Styles) -> bool:
    if _heading_level(paragraph, styles):
        return False
    number = _find(paragraph, "pPr", "numPr", "numId")
    if number is not None:
        return _value(number) != "0"
    return (_value(_find(paragraph, "pPr", "pStyle")) or "") in styles.lists


def _is_hidden(run: Element) -> bool:
    vanish = _find(run, "rPr", "vanish")
    return vanish is not None and _value(vanish) not in ("0", "false", "off")


def _symbol(element: Element) -> str:
    """Symbol fonts sit in the private range, where only the font knows the shape: a bullet stands for all of them."""
    code = _attribute(element, "char") or ""
    if not re.fullmatch("[0-9A-Fa-f]{4}", code):
        return ""
    return "•" if code[:2].upper() == "F0" else text_extraction.clean_text(chr(int(code, 16)))


def _tag(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _child(element: Element, tag: str) -> Element | None:
    return next((child for child in element if _tag(child) == tag), None)


def _find(element: Element, *path: str) -> Element | None:
    found: Element | None = element
    for tag in path:
        found = _child(found, tag) if found is not None else None
    return found


def _attribute(element: Element, name: str) -> str | None:
    return next((value for key, value in element.attrib.items() if key.rpartition("}")[2] == name), None)


def _value(element: Element | None) -> str | None:
    return None if element is None else _attribute(element, "val")


def _number(element: Element | None, default: int = 0) -> int:
    value = _value(element) or ""
    return int(value) if value.isdecimal() else default
