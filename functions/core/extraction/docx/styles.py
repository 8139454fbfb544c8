"""Reads from the styles of a Word file which paragraphs are headings or list items, and which text is hidden."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from functions.core.extraction.docx.xml import attribute, find, is_on, number_of, tag_of, value_of

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_HEADING_NAME = re.compile(r"(?:heading|titre|überschrift) ?([1-9])|(title)", re.I)
_LIST_NAME = re.compile(r"list (bullet|number)|liste à (puces|numéros)", re.I)
_COLOR = re.compile("[0-9A-Fa-f]{6}")
_WHITE_FROM = 0xF8
"""A colour is nearly white if red, green and blue are all at least this."""
_SMALLEST_HALF_POINTS = 4
"""Text smaller than 2 points cannot be read."""
_LOWEST_HEADING = 6
_LIGHT_THEME_COLORS = frozenset({"background1", "bg1", "light1", "lt1"})


@dataclass(frozen=True, slots=True)
class RunFormat:
    """The properties that decide whether text is visible, None where a style does not set them."""

    white: bool | None = None
    half_points: int | None = None
    vanish: bool | None = None
    shaded: bool | None = None

    def over(self, base: RunFormat) -> RunFormat:
        """This format, with unset properties taken from `base`."""
        return RunFormat(
            base.white if self.white is None else self.white,
            base.half_points if self.half_points is None else self.half_points,
            base.vanish if self.vanish is None else self.vanish,
            base.shaded if self.shaded is None else self.shaded,
        )

    @property
    def hidden(self) -> bool:
        too_small = self.half_points is not None and self.half_points < _SMALLEST_HALF_POINTS
        return bool(self.vanish) or too_small or (bool(self.white) and not self.shaded)


@dataclass(frozen=True, slots=True)
class Style:
    """A style with all that it inherits; `level` is that of a heading or 0, `numbering` a list id and its level."""

    level: int = 0
    is_list: bool = False
    numbering: tuple[str, int | None] | None = None
    format: RunFormat = RunFormat()


@dataclass(frozen=True, slots=True)
class Styles:
    """Styles by id; `plain` is the style of paragraphs that name none."""

    by_id: Mapping[str, Style]
    plain: Style
    defaults: RunFormat
    shaded_tables: frozenset[str]

    def of_paragraph(self, style_id: str | None) -> Style:
        return self.by_id.get(style_id or "", self.plain)

    def format_of_run(self, properties: Element | None, base: RunFormat) -> RunFormat:
        """The format of a run with these properties in a paragraph of format `base`."""
        if properties is None:
            return base
        style = self.by_id.get(value_of(find(properties, "rStyle")) or "", Style())
        return read_format(properties).over(style.format).over(base)


def read_styles(root: Element | None) -> Styles:
    defined = {
        style_id: style
        for style in (root if root is not None else ())
        if tag_of(style) == "style" and (style_id := attribute(style, "styleId")) is not None
    }
    by_id = {style_id: _resolve(style_id, defined) for style_id in defined}
    plain = next((by_id[style_id] for style_id, style in defined.items() if _is_default_paragraph(style)), Style())
    shaded = (key for key, style in defined.items() if attribute(style, "type") == "table" and _has_shading(style))
    return Styles(by_id, plain, read_format(find(root, "docDefaults", "rPrDefault", "rPr")), frozenset(shaded))


def read_format(properties: Element | None) -> RunFormat:
    """The format that run properties set themselves, without what they inherit."""
    if properties is None:
        return RunFormat()
    highlight = find(properties, "highlight")
    shaded = is_shaded(properties) or (highlight is not None and value_of(highlight) not in ("none", "white"))
    return RunFormat(
        white=_is_white(find(properties, "color")),
        half_points=number_of(size) if (size := find(properties, "sz")) is not None else None,
        vanish=is_on(find(properties, "vanish")),
        shaded=shaded or None,
    )


def is_shaded(properties: Element | None) -> bool:
    """Whether properties of a run, paragraph, cell or table put a colour behind the text."""
    shading = find(properties, "shd")
    if shading is None:
        return False
    if (value_of(shading) or "clear") not in ("clear", "nil"):
        return True
    fill = attribute(shading, "fill") or "auto"
    return not is_light(fill)


def is_light(color: str) -> bool:
    """Whether a colour is nearly white, as "FFFFFF", or no colour at all, as "auto"."""
    return not _COLOR.fullmatch(color) or min(bytes.fromhex(color)) >= _WHITE_FROM


def _is_white(color: Element | None) -> bool | None:
    if color is None:
        return None
    value = value_of(color) or "auto"
    if _COLOR.fullmatch(value):
        return is_light(value)
    return (attribute(color, "themeColor") or "") in _LIGHT_THEME_COLORS


def _is_default_paragraph(style: Element) -> bool:
    return attribute(style, "type") == "paragraph" and attribute(style, "default") in ("1", "true", "on")


def _has_shading(style: Element) -> bool:
    return any(tag_of(part) in ("tcPr", "tblPr", "pPr", "rPr") and is_shaded(part) for part in style.iter())


def _resolve(style_id: str, defined: Mapping[str, Element]) -> Style:
    """A style with what it inherits from the styles that it is based on, the nearest first."""
    level, named_list, numbering, form = 0, False, None, RunFormat()
    for one in _bases(style_id, defined):
        level = level or _level(one)
        numbering = numbering or _numbering(one)
        named_list = named_list or bool(_LIST_NAME.match(value_of(find(one, "name")) or ""))
        form = form.over(read_format(find(one, "rPr")))
        if is_shaded(find(one, "pPr")):
            form = replace(form, shaded=True)
    return Style(level, numbering[0] != "0" if numbering else named_list, numbering, form)


def _bases(style_id: str, defined: Mapping[str, Element]) -> Iterator[Element]:
    seen: set[str] = set()
    while style_id in defined and style_id not in seen:
        seen.add(style_id)
        yield defined[style_id]
        style_id = value_of(find(defined[style_id], "basedOn")) or ""


def _level(style: Element) -> int:
    heading = _HEADING_NAME.fullmatch(value_of(find(style, "name")) or "")
    if heading:
        return min(int(heading.group(1) or 1), _LOWEST_HEADING)
    outline = find(style, "pPr", "outlineLvl")
    return (
        number_of(outline) + 1 if outline is not None and number_of(outline, _LOWEST_HEADING) < _LOWEST_HEADING else 0
    )


def _numbering(style: Element) -> tuple[str, int | None] | None:
    properties = find(style, "pPr", "numPr")
    number, level = find(properties, "numId"), find(properties, "ilvl")
    if number is None:
        return None
    return value_of(number) or "0", number_of(level) if level is not None else None
