"""Runs of lines that leave the same gaps free, with what belongs to them above and below."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from functions.core.extraction.pdf.tables.columns import GAP, Span, is_at, merge_spans, spans_of, touched_columns
from functions.core.extraction.pdf.tables.glyphs import WIDE, Band, Piece, font_size
from functions.core.extraction.pdf.tables.rows import LINE_PITCH
from functions.core.extraction.pdf.tables.ruling_lines import Rule

_MAX_ODD, _MAX_ODD_WORDS = 2, 8
_MAX_LINES = 8
_MAX_HEADS = 3


@dataclass(slots=True)
class Run:
    """Bands that leave the same gaps free.

    `odd` are the numbers of those that reach over gaps, `spans` where the others have words. `heads` are bands above
    with titles over columns, `lead` is one over the first column: a caption, or the beginning of the first cell.
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
        """Leaves only the bands [first, last), and nothing above them when some are gone."""
        self.bands, self.pitches = self.bands[first:last], self.pitches[first : max(first, last - 1)]
        self.odd = {number - first for number in self.odd if first <= number < last}
        if first:
            self.heads, self.lead = [], None

    def spans_with(self, band: Band) -> list[Span]:
        return merge_spans([*self.spans, *((piece.x0, piece.x1) for piece in band.pieces)], GAP * self.size)


def find_runs(block: list[Band], size: float, is_text: Callable[[Band], bool]) -> Iterator[Run]:
    """The runs of two and more bands in a block; `is_text` says of a band whether it reads as prose or a caption."""
    run, waiting, start = Run(size), list[Band](), 0
    for n, band in enumerate(block):
        columns = len(spans_of(band.pieces, WIDE * size))
        if run.bands and _is_near(run, waiting, band) and not _breaks_off(run, band, columns, is_text):
            fits = _fits(run, band, columns)
            if columns > 1 and (fits or _lines_up(run, band)) and _are_regular(run, [*waiting, band]):
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
    """Whether a band is near enough below a run, or what waits there, to belong to it."""
    reach = max(2.6 * run.size, 1.8 * statistics.median(run.pitches)) if run.pitches else 3.2 * run.size
    return measure_pitch([*run.bands, *waiting][-1], band) <= reach


def _breaks_off(run: Run, band: Band, columns: int, is_text: Callable[[Band], bool]) -> bool:
    """Whether something else begins: prose set off from the rows, a caption, or a row below titles of columns."""
    if len(run.bands) == 1:
        titles = run.bands[0].pieces
        first = spans_of(band.pieces, WIDE * run.size)[0]
        return len(titles) < columns - 1 and min(piece.x0 for piece in titles) > first[1]
    far = measure_pitch(run.bands[-1], band) > 1.15 * statistics.median(run.pitches)
    return (far or columns == 1) and is_text(band)


def _fits(run: Run, band: Band, columns: int) -> bool:
    """Whether the gaps of the run stay free with this band, of so many columns, in it."""
    after = len(run.spans_with(band))
    return after > 1 and after >= 0.75 * max(len(run.spans), columns)


def _lines_up(run: Run, band: Band) -> bool:
    """Whether words of a band begin or end where most columns do: its cells are just long."""
    if len(run.bands) - len(run.odd) < 3:
        return False
    reached = sum(any(is_at(word.x0, x0) or is_at(word.x1, x1) for word in band.words) for x0, x1 in run.spans)
    return len(run.spans) > 1 and reached >= max(2, 0.6 * len(run.spans))


def _are_regular(run: Run, bands: Sequence[Band]) -> bool:
    """Whether lines that waited, and the row after them, follow each other like rows: a paragraph is set off."""
    if len(bands) < 2 or len(run.bands) < 3:
        return True
    widest = 1.3 * max(run.pitches)
    return all(measure_pitch(*pair) <= widest for pair in itertools.pairwise([run.bands[-1], *bands]))


def _may_wait(run: Run, waiting: Sequence[Band], band: Band, columns: int) -> bool:
    """Whether a band may stand in a table if more rows follow: a line of a tall cell, or a title between rows."""
    pitch = measure_pitch([*run.bands, *waiting][-1], band)
    usual = statistics.median(run.pitches) if len(run.bands) > 2 else 0.0
    if columns == 1 and _fits(run, band, 1):
        regular = pitch <= max(LINE_PITCH * run.size, 1.1 * usual)
        return len(waiting) < (_MAX_LINES if regular else _MAX_ODD)
    short = sum(1 for _ in band.words) <= _MAX_ODD_WORDS
    return short and len(waiting) < _MAX_ODD and pitch <= 1.35 * usual


def _close(run: Run, waiting: Sequence[Band], before: Sequence[Band]) -> Run:
    """The run with what belongs to it of the bands after it and before it."""
    run.size = font_size(_words(run.bands))
    columns = spans_of((piece for band in run.regular for piece in band.pieces), GAP * run.size)
    for band in waiting:  # the last row may go on for a line
        touched = touched_columns(band.pieces[0], columns)
        if len(band.pieces) > 1 or len(touched) != 1 or measure_pitch(run.bands[-1], band) > LINE_PITCH * run.size:
            break
        run.add(band, fits=True)
    below, farthest = run.bands[0], max(2.2 * run.size, 1.15 * statistics.median(run.pitches))
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
    """Whether a band has titles of columns: nothing in it stands over the first column, where captions begin."""
    left, right = columns[0][1], columns[-1][1]
    inside = all(piece.x0 > left and piece.middle < right for piece in band.pieces)
    return inside and measure_pitch(band, below) <= farthest


def _is_lead(band: Band, columns: Sequence[Span], below: Band, size: float) -> bool:
    """Whether a band may be the first line of the first cell below it."""
    narrow = len(columns) > 1 and all(piece.x1 < columns[1][0] for piece in band.pieces)
    return narrow and len(spans_of(band.pieces, size)) == 1 and measure_pitch(band, below) <= LINE_PITCH * size


def find_rules(run: Run, stacks: Sequence[Sequence[Rule]]) -> list[Rule]:
    """The level rules just above, in and below a run that are about as wide as it is."""
    left, right = min(word.x0 for word in _words(run.bands)), max(word.x1 for word in _words(run.bands))
    top = min(band.first_base for band in [*run.heads, *run.bands]) - 3.5 * run.size
    bottom = max(band.last_base for band in run.bands) + 3 * run.size
    found: list[Rule] = []
    for stack in stacks:
        start, end = stack[0].start, stack[0].end
        rules = [rule for rule in stack if top <= rule.at <= bottom]
        covered = min(right, end) - max(left, start)
        if covered >= 0.8 * (right - left) and end - start < 1.5 * (right - left) and len(rules) > max(1, len(found)):
            found = rules
    return found
