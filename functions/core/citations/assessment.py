"""Assesses which cited places bear out the statements of a section, and searches for better ones where none does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from functions.core.citations import statements
from functions.core.citations.figures import comparison
from functions.core.citations.numbering import CitedPlace
from functions.core.citations.passage import Passage
from functions.core.citations.support.judgement import Evidence, bears_out
from functions.core.text import words

_BEFORE_CHARS = 400  # of the passage, in which a name may stand for which the sentence has a pronoun
_SEARCHED_SHARE = 0.6
"""A passage that the model did not name must have this share of a statement's words, other than names and figures."""


@dataclass(slots=True)
class _Verdicts:
    """What was found for each cited place: how many statements it bears out, and how many it should but does not."""

    places: list[CitedPlace]
    borne_out: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.borne_out, self.failed = [0] * len(self.places), [0] * len(self.places)

    def add(self, place: CitedPlace) -> None:
        self.places.append(place)
        self.borne_out.append(1)
        self.failed.append(0)

    def list_assessed(self) -> list[CitedPlace]:
        """The places with their support; a place that bears out nothing is left out where a better one was found."""
        kept = []
        for place, borne_out, failed in zip(self.places, self.borne_out, self.failed, strict=True):
            if borne_out or failed or not any(self.borne_out):
                kept.append(replace(place, support="high" if borne_out and not failed else "low"))
        return kept


def assess_places(
    text: str, places: Sequence[CitedPlace], passages: Sequence[Passage], question_values: frozenset[str]
) -> list[CitedPlace]:
    """`places` of a section with their support, and further places for the statements that none of them bears out.

    A statement that nothing bears out counts against the place that is nearest to it.
    """
    by_id = {passage.hit.segment_id: passage for passage in passages}
    verdicts = _Verdicts(list(places))
    for statement in _list_assessed_statements(text):
        windows = [
            statements.find_best_window(statement, by_id[place.hit.segment_id], within=place) for place in places
        ]
        evidences = [_collect_evidence(by_id[place.hit.segment_id], place, question_values) for place in windows]
        bearing = [at for at, evidence in enumerate(evidences) if bears_out(statement, evidence)]
        if not bearing and len(evidences) > 1 and bears_out(statement, _join(evidences)):
            bearing = [at for at, window in enumerate(windows) if window.share > 0]
        for at in bearing:
            verdicts.borne_out[at] += 1
        if bearing:
            continue
        if found := search_place(statement, passages, question_values):
            verdicts.add(found)
        elif windows:
            verdicts.failed[max(range(len(windows)), key=lambda at: windows[at].share)] += 1
    return verdicts.list_assessed()


def search_place(statement: str, passages: Iterable[Passage], question_values: frozenset[str]) -> CitedPlace | None:
    """The place in any passage that bears out a statement best; the names that it states must stand in the passage."""
    if len(words.keys(statement)) < statements.MIN_WORDS:
        return None
    best: CitedPlace | None = None
    for passage in passages:
        place = statements.find_best_window(statement, passage)
        if place.check == "unverified" or (best and best.share >= place.share):
            continue
        evidence = _collect_evidence(passage, place, question_values)
        if bears_out(statement, replace(evidence, headings=""), _SEARCHED_SHARE):
            best = replace(place, support="high")
    return best


def _list_assessed_statements(text: str) -> list[str]:
    """The statements of a section without those that say hardly anything ("In short:"), unless there are no others."""
    found = statements.split_sentences_of_section(text)
    telling = [one for one in found if len(words.keys(one)) >= statements.MIN_WORDS or words.numbers(words.keys(one))]
    return telling or found


def _collect_evidence(passage: Passage, place: CitedPlace, question_values: frozenset[str]) -> Evidence:
    hit = passage.hit
    text = hit.text[place.start : place.end]
    table_head = "\n".join((hit.markdown or "").splitlines()[:3])
    headings = "\n".join(filter(None, (hit.title, hit.section_title, table_head)))
    shown = f"{headings}\n{text}"
    values = comparison.find_values(shown) | {value for value in passage.values if "unit " in value}
    pages = frozenset(map(str, (hit.page_start, hit.page_end)))
    measures = comparison.find_measures(shown) if question_values else frozenset()
    figures = comparison.AllowedFigures(values, pages, question_values, measures)
    return Evidence(text, hit.text[max(0, place.start - _BEFORE_CHARS) : place.start], headings, hit.lang, figures)


def _join(evidences: Sequence[Evidence]) -> Evidence:
    first = evidences[0]
    figures = [evidence.figures for evidence in evidences]
    return Evidence(
        "\n".join(evidence.text for evidence in evidences),
        "\n".join(evidence.before for evidence in evidences),
        "\n".join(evidence.headings for evidence in evidences),
        first.lang,
        comparison.AllowedFigures(
            frozenset().union(*(one.values for one in figures)),
            frozenset().union(*(one.pages for one in figures)),
            first.figures.question_values,
            frozenset().union(*(one.measures for one in figures)),
        ),
    )
