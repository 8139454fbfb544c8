"""Builds quotations of chosen sentences and rows: with what they lean on, without the line breaks of the page."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from functions.core.answering.extracts import wording
from functions.core.answering.extracts.units import Unit
from functions.core.citations.sections import Quotation
from functions.core.text.line_breaks import unwrap
from functions.core.text.markdown_tables import render_markdown
from functions.core.text.sentences import begins_item, split_sentences

MAX_SENTENCES = 4
"""Of an answer, those that others lean on included; the items of a list count with the sentence that announces it."""
_MAX_ITEMS = 12
_MAX_CAPTION = 200

_SIGN = re.compile(r"^\s*[•▪◦‣–—·]\s*")
_CAPTION = re.compile(r"\b(?:table|figure|tableau|box|chart|graphique)\s*\d.*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Run:
    """Units of one passage that are quoted together: rows of a table, or what follows each other."""

    units: tuple[Unit, ...]
    emphasis: str = ""

    @property
    def is_table(self) -> bool:
        return self.units[0].row is not None

    def can_take(self, other: _Run) -> bool:
        if self.units[0].hit is not other.units[0].hit or self.is_table != other.is_table:
            return False
        if not self.is_table and any(wording.is_fragment(run.units[-1].text) for run in (self, other)):
            return False
        reached = {unit.index + step for unit in self.units for step in (-1, 0, 1)}
        return self.is_table or any(unit.index in reached for unit in other.units)

    def take(self, other: _Run) -> _Run:
        by_index = {unit.index: unit for unit in (*self.units, *other.units)}
        return _Run(tuple(by_index[index] for index in sorted(by_index)), self.emphasis or other.emphasis)


def quote_units(
    chosen: Sequence[tuple[wording.Wanted, Unit, str]], passages: Sequence[Sequence[Unit]]
) -> list[Quotation]:
    """The quotations of the chosen units, in their order; those that follow each other are one.

    Each comes with what it was chosen for, and its words that carry the answer; `passages` are the units of all
    passages, best passage first.
    """
    runs: list[_Run] = []
    quoted: set[tuple[str, int, int, int]] = set()
    for wanted, unit, emphasis in chosen:
        if unit.place in quoted:
            continue
        around = [other for other in _add_context(wanted, unit, passages[unit.rank]) if other.place not in quoted]
        if runs and len(quoted) + min(len(around), 2) > max(MAX_SENTENCES, len(chosen)):
            around = [unit]
        quoted.update(other.place for other in around)
        run = _Run(tuple(around), emphasis)
        at = next((at for at, earlier in enumerate(runs) if earlier.can_take(run)), None)
        if at is None:
            runs.append(run)
        else:
            runs[at] = runs[at].take(run)
    return [_build(run) for run in runs]


def _add_context(wanted: wording.Wanted, unit: Unit, passage: Sequence[Unit]) -> list[Unit]:
    """The unit, with the sentence it leans on, the question it answers, or the rest of its list."""
    if unit.row is not None:
        return [unit]
    first = last = unit.index
    if (_is_item(unit) and wanted.asks_list) or wording.introduces(unit.text):
        first, last = _find_list(passage, unit.index)
    elif first and _leans_on(wanted.terms, unit, passage[first - 1]):
        first -= 1
    return [other for other in passage[first : last + 1] if other.row is None]


def _leans_on(terms: Collection[frozenset[str]], unit: Unit, before: Unit) -> bool:
    """Whether `before` is needed: for what a pronoun stands for, as the question, or as the term that is defined."""
    if before.row is not None:
        return False
    if wording.is_question(before.text):
        return True
    if wording.leans_back(unit.text) or (
        wording.defines(unit.text, before.text, terms) and not wording.holds_any(unit.keys, terms)
    ):
        return not wording.is_fragment(before.text)
    return len(before.text) <= 60 and wording.holds_any(before.keys, terms) and not wording.holds_any(unit.keys, terms)


def _find_list(passage: Sequence[Unit], index: int) -> tuple[int, int]:
    """The indices of the first and last unit of the list at `index`, with the sentence that announces it."""
    first = last = index
    while first > 0 and _is_item(passage[first]):
        first -= 1
    if not wording.introduces(passage[first].text) and not _is_item(passage[first]):
        first += 1
    ahead = range(last + 1, min(len(passage), first + _MAX_ITEMS))
    for at in ahead:  # an item may have a second sentence
        if _is_item(passage[at]) and at - last <= 2:
            last = at
    return first, last


def _is_item(unit: Unit) -> bool:
    return unit.row is None and begins_item(unit.text)


def _build(run: _Run) -> Quotation:
    hit = run.units[0].hit
    if run.is_table:
        spans, text = tuple((unit.start, unit.end) for unit in run.units), _render_rows(run.units)
    else:
        spans, text = ((run.units[0].start, run.units[-1].end),), _join_sentences(run.units)
    is_clear = len(re.findall(rf"(?<!\w){re.escape(run.emphasis)}(?!\w)", text)) == 1
    return Quotation(hit, spans, text, run.emphasis if run.emphasis and is_clear else "")


def _join_sentences(units: Iterable[Unit]) -> str:
    text = ""
    for unit in units:
        sentence = unwrap(unit.text, unit.hit.text)
        if _is_item(unit):
            text += f"\n{_SIGN.sub('- ', sentence)}"
        else:
            text += f"{' ' if text else ''}{sentence}"
    return text.strip()


def _render_rows(units: Sequence[Unit]) -> str:
    """A table of the rows below their header, with the titles of their groups, under its caption."""
    lines: list[tuple[str, ...]] = []
    group = ""
    for row in (unit.row for unit in units if unit.row):
        if row.group and row.group != group:
            lines.append((row.group, *[""] * (len(row.cells) - 1)))
        group = row.group
        lines.append(row.cells)
    first = units[0]
    header = first.row.header if first.row else ()
    caption = _find_caption(first.caption, header)
    table = render_markdown(header, lines)
    return f"{caption}\n\n{table}" if caption else table


def _find_caption(above: str, header: Iterable[Sequence[str]]) -> str:
    """The caption in the text above a table's rows, without the header, which the page has between the two."""
    text = above
    cells = [" ".join(cell.split()) for row in header for cell in row if cell]
    while last := next((cell for cell in cells if text.endswith(cell)), None):
        text = text[: -len(last)].rstrip()
    if match := _CAPTION.search(text[-_MAX_CAPTION:]):
        return match.group()
    *_, (start, end) = [(0, 0), *split_sentences(text)]
    is_caption = wording.is_fragment(text[start:end]) and text[start:end][:1].isupper() and end - start <= _MAX_CAPTION
    return text[start:end] if is_caption else ""
