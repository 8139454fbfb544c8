"""Finds runs of lines that leave the same gaps free, and the titles, captions and rules that belong to them.

Pitch is the distance between the base lines of successive bands; lengths in em are multiples of the font size.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from functions.core.extraction.pdf.tables.columns import (
    MIN_COLUMN_GAP,
    Span,
    are_aligned,
    merge_spans,
    spans_of,
    touched_columns,
)
from functions.core.extraction.pdf.tables.glyphs import WIDE_GAP, Band, Piece, measure_font_size
from functions.core.extraction.pdf.tables.rows import LINE_PITCH
from functions.core.extraction.pdf.tables.ruling_lines import Rule

_MAX_ODD, _MAX_ODD_WORDS = 2, 8
"""The most lines of a title between rows, and the most words of each; longer text is not part of the table."""
_MAX_CELL_LINES = 8
"""The most lines of one column alone that may be the rest of a tall cell; more lines are the text after the table."""
_MAX_HEADS = 3
"""The most bands above a run that are tried as titles of its columns."""

_REACH, _REACH_IN_PITCHES = 2.6, 1.8
"""Em and medians of pitch, whichever is more: a band farther below a run is not part of it."""
_REACH_OF_FIRST = 3.2
"""Em: the same below the first band of a run, when no pitch is known yet."""
_SET_OFF = 1.15
"""Medians of pitch: a line farther below, or a title farther above, is set off from the rows."""
_MIN_KEPT_GAPS = 0.75
"""A band fits a run if this share of columns, of the run's or of its own if it has more, stays apart with it.

Cell F1 of unruled tables: 0.994 at 0.6, 0.996 at 0.75 and 0.9.
"""
_MIN_ROWS_TO_ALIGN = 3
"""The fewest regular bands of a run with which an overlong band can be aligned."""
_MIN_REACHED = 0.6
"""The share of columns, and at least two, with which an overlong band must be aligned."""
_REGULAR_BANDS = 3
"""The fewest bands of a run whose pitch is compared with that of further lines."""
_IRREGULAR = 1.3
"""Times the largest pitch of the run: lines farther apart do not continue it."""
_TIGHT = 1.1
"""Medians of pitch: the largest pitch of lines in a tall cell, unless `LINE_PITCH` is more."""
_LOOSE = 1.35
"""Medians of pitch: how far a title between rows may be below the row above it."""
_FARTHEST_HEAD = 2.2
"""Em: how far above the columns their titles may stand."""
_FARTHEST_NAMES = 1.5
"""Times that distance: how far above them a line with the names of most columns may stand."""
_LONGEST_NAME, _FEWEST_NAMES, _MIN_NAMED = 6, 3, 0.5
"""The most words of each name, the fewest names, and the share of columns that such a line has more names than."""
_RULE_ABOVE, _RULE_BELOW = 3.5, 3.0
"""Em: how far from the first and the last base line the outer rules of a table may be."""
_MIN_COVERED, _MAX_WIDER = 0.8, 1.5
"""The share of the run's width that its rules cover, and how many times as wide they may be."""


@dataclass(slots=True)
class Run:
    """Bands that leave the same gaps free; `size` is that of their font in points.

    `odd` are the numbers of bands that reach over gaps, `spans` is where the others have words, `pitches` are those
    between the bands. `heads` are the bands above with titles over columns, `lead` is one over the first column alone:
    a caption, or the beginning of the first cell.
    """

    size: float
    bands: list[Band] = field(default_factory=list)
    odd: set[int] = field(default_factory=set)
    spans: list[Span] = field(default_factory=list)
    pitches: list[float] = field(default_factory=list)
    heads: list[Band] = field(default_factory=list)
    lead: Band | None = None
    rules: list[Rule] = field(default_factory=list)

    @property
    def regular(self) -> list[Band]:
        return [band for number, band in enumerate(self.bands) if number not in self.odd]

    def add(self, band: Band, *, fits: bool) -> None:
        if self.bands:
            self.pitches.append(measure_pitch(self.bands[-1], band))
        if fits:
            self.spans = self.spans_with(band)
        else:
            self.odd.add(len(self.bands))
        self.bands.append(band)

    def cut(self, first: int, last: int) -> None:
        """Keeps only the bands [first, last), and what is above them only if the first band stays."""
        self.bands, self.pitches = self.bands[first:last], self.pitches[first : max(first, last - 1)]
        self.odd = {number - first for number in self.odd if first <= number < last}
        if first:
            self.heads, self.lead = [], None

    def spans_with(self, band: Band) -> list[Span]:
        return merge_spans([*self.spans, *((piece.x0, piece.x1) for piece in band.pieces)], MIN_COLUMN_GAP * self.size)


def find_runs(block: list[Band], size: float, is_text: Callable[[Band], bool]) -> Iterator[Run]:
    """The runs of at least two bands in a block; `is_text` tells whether a band reads as prose or a caption."""
    run, waiting, start = Run(size), list[Band](), 0
    for n, band in enumerate(block):
        columns = len(spans_of(band.pieces, WIDE_GAP * size))
        if run.bands and _is_near(run, waiting, band) and not _breaks_off(run, band, columns, is_text):
            fits = _fits(run, band, columns)
            if columns > 1 and (fits or _is_aligned(run, band)) and _are_regular(run, [*waiting, band]):
                for other in waiting:
                    run.add(other, fits=_fits(run, other, 1))
                run.add(band, fits=fits)
                waiting = []
                continue
            if _may_wait(run, waiting, band, columns):
                waiting.append(band)
                continue
        if len(run.bands) > 1:
            yield _close(run, waiting, block[max(0, start - _MAX_HEADS) : start])
        run, waiting, start = Run(size), [], n
        if columns > 1:
            run.add(band, fits=True)
    if len(run.bands) > 1:
        yield _close(run, waiting, block[max(0, start - _MAX_HEADS) : start])


def _words(bands: Iterable[Band]) -> Iterator[Piece]:
    return (word for band in bands for word in band.words)


def measure_pitch(above: Band, below: Band) -> float:
    return below.first_base - above.last_base


def _is_near(run: Run, waiting: Sequence[Band], band: Band) -> bool:
    """Whether a band is near enough below a run, and the bands waiting to join it, to belong to it."""
    reach = _REACH_OF_FIRST * run.size
    if run.pitches:
        reach = max(_REACH * run.size, _REACH_IN_PITCHES * statistics.median(run.pitches))
    return measure_pitch([*run.bands, *waiting][-1], band) <= reach


def _breaks_off(run: Run, band: Band, columns: int, is_text: Callable[[Band], bool]) -> bool:
    """Whether a band begins something else: prose set off from the rows, a caption, or a row below column titles."""
    if len(run.bands) == 1:
        titles = run.bands[0].pieces
        first = spans_of(band.pieces, WIDE_GAP * run.size)[0]
        return len(titles) < columns - 1 and min(piece.x0 for piece in titles) > first[1]
    far = measure_pitch(run.bands[-1], band) > _SET_OFF * statistics.median(run.pitches)
    return (far or columns == 1) and is_text(band)


def _fits(run: Run, band: Band, columns: int) -> bool:
    """Whether the gaps of the run stay free when a band of so many columns joins it."""
    after = len(run.spans_with(band))
    return after > 1 and after >= _MIN_KEPT_GAPS * max(len(run.spans), columns)


def _is_aligned(run: Run, band: Band) -> bool:
    """Whether words of a band begin or end where most columns do, so that its cells are only long."""
    if len(run.bands) - len(run.odd) < _MIN_ROWS_TO_ALIGN:
        return False
    reached = sum(
        any(are_aligned(word.x0, x0) or are_aligned(word.x1, x1) for word in band.words) for x0, x1 in run.spans
    )
    return len(run.spans) > 1 and reached >= max(2, _MIN_REACHED * len(run.spans))


def _are_regular(run: Run, bands: Sequence[Band]) -> bool:
    """Whether waiting bands and the row after them follow each other at the pitch of rows; a paragraph is set off."""
    if len(bands) < 2 or len(run.bands) < _REGULAR_BANDS:
        return True
    widest = _IRREGULAR * max(run.pitches)
    return all(measure_pitch(*pair) <= widest for pair in itertools.pairwise([run.bands[-1], *bands]))


def _may_wait(run: Run, waiting: Sequence[Band], band: Band, columns: int) -> bool:
    """Whether a band may be part of the table if more rows follow: a line of a tall cell, or a title between rows."""
    pitch = measure_pitch([*run.bands, *waiting][-1], band)
    usual = statistics.median(run.pitches) if len(run.bands) >= _REGULAR_BANDS else 0.0
    if columns == 1 and _fits(run, band, 1):
        regular = pitch <= max(LINE_PITCH * run.size, _TIGHT * usual)
        return len(waiting) < (_MAX_CELL_LINES if regular else _MAX_ODD)
    short = sum(1 for _ in band.words) <= _MAX_ODD_WORDS
    return short and len(waiting) < _MAX_ODD and pitch <= _LOOSE * usual


def _close(run: Run, waiting: Sequence[Band], before: Sequence[Band]) -> Run:
    """The run with those of the bands after and before it that belong to it."""
    run.size = measure_font_size(_words(run.bands))
    columns = spans_of((piece for band in run.regular for piece in band.pieces), MIN_COLUMN_GAP * run.size)
    for band in waiting:  # these may be further lines of the last row
        touched = touched_columns(band.pieces[0], columns)
        if len(band.pieces) > 1 or len(touched) != 1 or measure_pitch(run.bands[-1], band) > LINE_PITCH * run.size:
            break
        run.add(band, fits=True)
    below, farthest = run.bands[0], max(_FARTHEST_HEAD * run.size, _SET_OFF * statistics.median(run.pitches))
    for band in reversed(before):
        if _is_head(band, columns, below, farthest):
            run.heads.insert(0, band)
        elif run.lead is None and not run.heads and _is_lead(band, columns, below, run.size):
            run.lead = band
        else:
            break
        below = band
    return run


def _is_head(band: Band, columns: Sequence[Span], below: Band, farthest: float) -> bool:
    """Whether a band has titles of columns, and none of the first, where captions begin, unless it names most columns.

    A band that names most columns may stand farther above them.
    """
    left, right = columns[0][1], columns[-1][1]
    pitch, names = measure_pitch(band, below), names_most(band, columns)
    inside = all(piece.x0 > left and piece.middle < right for piece in band.pieces)
    return (inside and pitch <= farthest) or (names and pitch <= _FARTHEST_NAMES * farthest)


def names_most(band: Band, columns: Sequence[Span]) -> bool:
    """Whether a band has short pieces, at least three, over most columns."""
    named = {column for piece in band.pieces for column in touched_columns(piece, columns)}
    short = all(len(piece.words) <= _LONGEST_NAME for piece in band.pieces)
    return short and len(band.pieces) >= _FEWEST_NAMES and len(named) > _MIN_NAMED * len(columns)


def _is_lead(band: Band, columns: Sequence[Span], below: Band, size: float) -> bool:
    """Whether a band may be the first line of the first cell below it."""
    narrow = len(columns) > 1 and all(piece.x1 < columns[1][0] for piece in band.pieces)
    return narrow and len(spans_of(band.pieces, size)) == 1 and measure_pitch(band, below) <= LINE_PITCH * size


def find_rules(run: Run, stacks: Sequence[Sequence[Rule]]) -> list[Rule]:
    """The horizontal rules just above, in and below a run and about as wide, from the stack that has most of them."""
    left, right = min(word.x0 for word in _words(run.bands)), max(word.x1 for word in _words(run.bands))
    top = min(band.first_base for band in [*run.heads, *run.bands]) - _RULE_ABOVE * run.size
    bottom = max(band.last_base for band in run.bands) + _RULE_BELOW * run.size
    found: list[Rule] = []
    for stack in stacks:
        start, end = stack[0].start, stack[0].end
        rules = [rule for rule in stack if top <= rule.at <= bottom]
        covered = min(right, end) - max(left, start)
        fits = covered >= _MIN_COVERED * (right - left) and end - start < _MAX_WIDER * (right - left)
        if fits and len(rules) > max(1, len(found)):
            found = rules
    return found
