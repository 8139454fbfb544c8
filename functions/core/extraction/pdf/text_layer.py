"""The text of a PDF page as it is stored, and the PDFium character behind each character of it.

PDFium has a page as a list of characters and returns its text as UTF-16 units; a few characters (some unmapped glyphs)
are in the list but not in the text. Stored page text is PDFium's text with these changes: `\\r\\n` becomes `\\n`, the
mark that PDFium leaves for a hyphen at a line end (it joins the two lines) a soft hyphen, and characters that Postgres
cannot store U+FFFD. Where the file mixes the columns of a page, the text is put in reading order, and accents that it
prints apart are joined to their letters. The characters behind a passage are not stored, but computed from the file
again when someone opens the passage.

The caller of a function that takes a page holds the lock of PDFium.
"""

from __future__ import annotations

import ctypes
import itertools
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from functions.core import errors
from functions.core.extraction.pdf import accents, line_pieces, reading_order
from functions.core.extraction.pdf.geometry import Box, Rectangle, find_level_turns, join_boxes, turn
from functions.core.extraction.pdf.line_pieces import continues_line, join_runs, measure_em, measure_wide_gap
from functions.core.extraction.pdf.page_objects import (
    ADDRESS,
    address_of,
    cells_in,
    find_rules,
    find_stretches,
    plain_call,
    sample_angles,
)
from functions.core.text.storable import clean_text

if TYPE_CHECKING:  # loading PDFium costs 50 ms; only functions that read a PDF pay for it
    import pypdfium2

    from functions.core.extraction.pdf.line_pieces import Piece

SOFT_HYPHEN = "\u00ad"

_HYPHEN_MARK, _HYPHEN_CODE = "\ufffe", 2
_HYPHENS = frozenset({"-", SOFT_HYPHEN, _HYPHEN_MARK})
_LINE = re.compile("[^\r\n\ufffe]+\ufffe?|\ufffe")
_WORD_GAP = re.compile(r"(?<=\S) (?=\S)")
_MIN_LINES = 8
"""The fewest lines of a page of columns whose lines are drawn at once."""
_WIDE_RUN = 0.6
"""The share of the text's width from which on a run may be a line of several columns."""
_MAX_CROSSING = 0.25
"""Letters per wide run in a strip that is free all the same: a few titles and figures may cross a gutter."""
_STRIP = 1.0
"""Points: half the width of the strip in which letters are counted."""
_FOUR_DOUBLES = struct.Struct("4d")


@dataclass(frozen=True, slots=True)
class TextLayer:
    """The stored text of a page and `raw`, PDFium's text that it is made of.

    `places` are the offsets in `raw` of the characters of `text`, -1 for an added line break; None if both are the same
    characters in the same order.
    """

    text: str
    places: Sequence[int] | None
    raw: str
    runs: Sequence[Rectangle]
    """The bounds of each run of text, which is what the file draws at once."""

    def indices(self, text_page: pypdfium2.PdfTextPage) -> list[int | None]:
        """PDFium's character index for each character of `text`; None where PDFium has no character."""
        found = _read_indices(text_page, self.raw)
        places = natural_places(self.raw) if self.places is None else self.places
        return [found[place] if place >= 0 else None for place in places]


def load_text(page: pypdfium2.PdfPage) -> pypdfium2.PdfTextPage:
    """The text of a page, loaded with the page rotated until its lines are horizontal; PDFium orders no others well."""
    text_page = page.get_textpage()
    seen = page.get_rotation()
    level = 90 * _find_level_turns(text_page, seen)
    if level != seen:
        text_page.close()
        page.set_rotation(level)
        text_page = page.get_textpage()
        page.set_rotation(seen)
    return text_page


def _find_level_turns(text_page: pypdfium2.PdfTextPage, seen: int) -> int:
    """The quarter turns after which a page's lines are horizontal; without a majority, those of rotation `seen`."""
    return find_level_turns(sample_angles(text_page), seen // 90)


def read_layer(text_page: pypdfium2.PdfTextPage) -> TextLayer:
    """The stored text of a page, in reading order, with the places of its characters in PDFium's text."""
    raw, runs = raw_text(text_page), read_runs(text_page)
    text, places = _put_in_order(text_page, raw, runs) or (stored_text(raw), None)
    if accents.has_accents(text):
        turns = _find_level_turns(text_page, text_page.page.get_rotation())
        boxes = [turn(bounds, turns) if bounds else None for bounds in _read_bounds(text_page, raw)]
        text, places = accents.join_accents(text, natural_places(raw) if places is None else places, boxes)
    return TextLayer(text, places, raw, runs)


def character_indices(text_page: pypdfium2.PdfTextPage, start: int, end: int) -> list[int | None]:
    """PDFium's character index for each position of stored text [start, end); None where PDFium has no character.

    Raises NotFoundError when the passage is not inside the page text.
    """
    indices = read_layer(text_page).indices(text_page)
    if not 0 <= start <= end <= len(indices):
        raise errors.NotFoundError("The passage is not on this page.", start=start, end=end, length=len(indices))
    return indices[start:end]


def raw_text(text_page: pypdfium2.PdfTextPage) -> str:
    """PDFium's text of a page with NUL for unmapped glyphs, so that U+FFFE only stands for a hyphen at a line end."""
    from pypdfium2 import raw as pdfium

    count = pdfium.FPDFText_CountChars(text_page.raw)
    if count <= 0:
        return ""
    buffer = (ctypes.c_ushort * (count + 1))()
    written = pdfium.FPDFText_GetText(text_page.raw, 0, count, buffer)
    text = bytes(buffer)[: 2 * max(0, written - 1)].decode("utf-16-le", errors="surrogatepass")
    return _blank_unmapped_glyphs(text, text_page) if _HYPHEN_MARK in text else text


def stored_text(raw: str) -> str:
    """The text that is stored for `raw`, in the same order."""
    return clean_text(raw.replace("\r\n", "\n").replace(_HYPHEN_MARK, SOFT_HYPHEN))


def natural_places(raw: str, start: int = 0, end: int | None = None) -> list[int]:
    """The offset in `raw` of each character of `stored_text(raw[start:end])`."""
    end = len(raw) if end is None else end
    places: list[int] = []
    at = start
    while (found := raw.find("\r\n", at, end)) >= 0:
        places += range(at, found)
        at = found + 1
    return [*places, *range(at, end)]


def unit_positions(raw: str) -> Sequence[int]:
    """The position of the first UTF-16 unit of each character of `raw`; PDFium counts in these units."""
    if not raw or max(raw) <= "\uffff":
        return range(len(raw))
    return list(itertools.accumulate((2 if character > "\uffff" else 1 for character in raw), initial=0))[:-1]


def read_runs(text_page: pypdfium2.PdfTextPage) -> list[Rectangle]:
    """The bounds of each run of text, in the order of the text."""
    from pypdfium2 import raw as pdfium

    handle, sides = address_of(text_page.raw), (ctypes.c_double * 4)()
    left, top, right, bottom = cells_in(sides, (0, 3, 2, 1))
    get_rect = plain_call("FPDFText_GetRect", ADDRESS)
    found = []
    for index in range(pdfium.FPDFText_CountRects(text_page.raw, 0, -1)):
        get_rect(handle, index, left, top, right, bottom)
        found.append(_FOUR_DOUBLES.unpack(sides))
    return found


def _put_in_order(
    text_page: pypdfium2.PdfTextPage, raw: str, runs: Sequence[Rectangle]
) -> tuple[str, list[int]] | None:
    """The text of a page in reading order and the places of its characters in `raw`; None if `raw` is in order."""
    turns = _find_level_turns(text_page, text_page.page.get_rotation())
    turned = [turn(run, turns) for run in runs]
    if reading_order.may_be_disordered(turned):
        is_doubtful = reading_order.find_order(join_runs(turned)) is not None
    else:
        is_doubtful = turns == 0 and _hides_gutter(text_page, runs)
    if not is_doubtful:
        return None
    spans, pieces = _split_pieces(text_page, raw, turns, measure_em(turned))
    rules = [turn(rule, turns) for rule in find_rules(text_page.page, runs)]
    order = reading_order.find_order(pieces, reading_order.join_rules(rules))
    return _arrange(raw, [spans[number] for number in order]) if order else None


def _hides_gutter(text_page: pypdfium2.PdfTextPage, runs: Sequence[Rectangle]) -> bool:
    """Whether runs as wide as the text leave a strip free down its middle or at its first third.

    Some files draw a line of two columns at once with the gap inside, which the bounds of the run do not show.
    """
    from pypdfium2 import raw as pdfium

    if len(runs) < _MIN_LINES:
        return False
    left, right = min(run[0] for run in runs), max(run[2] for run in runs)
    wide = [run for run in runs if run[2] - run[0] > _WIDE_RUN * (right - left)]
    if len(wide) < _MIN_LINES:
        return False
    buffer = (ctypes.c_ushort * (4 * len(wide)))()
    top, bottom = max(run[3] for run in wide), min(run[1] for run in wide)
    for middle in ((left + right) / 2, (2 * left + right) / 3):
        count = pdfium.FPDFText_GetBoundedText(
            text_page.raw, middle - _STRIP, top, middle + _STRIP, bottom, buffer, len(buffer)
        )
        strip = bytes(buffer)[: 2 * max(0, count)].decode("utf-16-le", errors="replace")
        if sum(character.isalnum() for character in strip) < _MAX_CROSSING * len(wide):
            return True
    return False


def _split_pieces(
    text_page: pypdfium2.PdfTextPage, raw: str, turns: int, em: float
) -> tuple[list[tuple[int, int]], list[Piece]]:
    """The lines of a page cut at wide gaps: their stretches of `raw`, and the pieces there.

    Every character but white space is in one of the stretches; a character without a box joins the one before it.
    """
    spans: list[list[int]] = []
    places: list[Box] = []
    boxes = [turn(bounds, turns) if bounds else None for bounds in _read_bounds(text_page, raw)]
    lines = list(_LINE.finditer(raw))
    around = ((boxes[match.start() - 1], boxes[match.end()]) for match in _WORD_GAP.finditer(raw))
    gap = measure_wide_gap([after[0] - before[2] for before, after in around if before and after], len(lines), em)
    for line in lines:
        is_open = False
        for place in range(*line.span()):
            box = boxes[place]
            if box is None:
                if spans and not raw[place].isspace():
                    spans[-1][1] = place + 1
                continue
            if is_open and continues_line(places[-1], box, gap):
                places[-1] = join_boxes(places[-1], box)
                spans[-1][1] = place + 1
            else:
                places.append(box)
                spans.append([place if spans else len(raw) - len(raw.lstrip()), place + 1])
            is_open = True
    pieces = [line_pieces.Piece(*box, raw[start:end]) for box, (start, end) in zip(places, spans, strict=True)]
    return [(start, end) for start, end in spans], pieces


def _read_bounds(text_page: pypdfium2.PdfTextPage, raw: str) -> list[Rectangle | None]:
    """The bounds of each character of `raw`; None for white space and for characters without any."""
    handle, sides = address_of(text_page.raw), (ctypes.c_double * 4)()
    left, right, bottom, top = cells_in(sides, (0, 2, 1, 3))
    get_box = plain_call("FPDFText_GetCharBox", ADDRESS)
    boxes: list[Rectangle | None] = []
    for character, index in zip(raw, _read_indices(text_page, raw), strict=True):
        has_ink = index is not None and not character.isspace()
        if has_ink and get_box(handle, index, left, right, bottom, top):
            box = _FOUR_DOUBLES.unpack(sides)
            boxes.append(box if box[0] < box[2] and box[1] < box[3] else None)
        else:
            boxes.append(None)
    return boxes


def _arrange(raw: str, spans: Sequence[tuple[int, int]]) -> tuple[str, list[int]]:
    """The stored text of stretches of `raw` in this order, and the places of its characters in `raw`.

    Between stretches that do not follow each other in `raw` is a line break; a word cut by a hyphen there is joined by
    a soft hyphen, as PDFium does within a column.
    """
    start, last = spans[0]
    text, places = stored_text(raw[start:last]), natural_places(raw, start, last)
    for start, end in spans[1:]:
        if last <= start and not raw[last:start].strip():
            start = last  # the white space between stretches that stay in order is kept
        elif raw[last - 1] in _HYPHENS and raw[last - 2 : last - 1].isalpha() and raw[start].isalnum():
            text = text[:-1] + SOFT_HYPHEN
        else:
            text = text[:-1] + raw[last - 1].replace(_HYPHEN_MARK, "-") + "\n"
            places.append(-1)
        text += stored_text(raw[start:end])
        places += natural_places(raw, start, end)
        last = end
    return text, places


def _read_indices(text_page: pypdfium2.PdfTextPage, raw: str) -> list[int | None]:
    """PDFium's character index for each character of `raw`; None where PDFium has no character.

    The difference between index and unit grows where characters are missing from the text, and never shrinks.
    """
    handle, units = address_of(text_page.raw), unit_positions(raw)
    get_index = plain_call("FPDFText_GetCharIndexFromTextIndex", ADDRESS)
    found: list[int | None] = []
    for low, high, distance in find_stretches(len(units), lambda place: get_index(handle, units[place]) - units[place]):
        first = max(low, len(found))  # stretches may share an end
        indices = [unit + distance for unit in units[first : high + 1]]
        found += indices if first > high or indices[0] >= 0 else [index if index >= 0 else None for index in indices]
    return found


def _blank_unmapped_glyphs(text: str, text_page: pypdfium2.PdfTextPage) -> str:
    from pypdfium2 import raw as pdfium

    characters, units = list(text), unit_positions(text)
    place = text.find(_HYPHEN_MARK)
    while place >= 0:
        index = pdfium.FPDFText_GetCharIndexFromTextIndex(text_page.raw, units[place])
        if pdfium.FPDFText_GetUnicode(text_page.raw, index) != _HYPHEN_CODE:
            characters[place] = "\0"
        place = text.find(_HYPHEN_MARK, place + 1)
    return "".join(characters)
