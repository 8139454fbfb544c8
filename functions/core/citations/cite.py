"""Turns the ids and quotations that a model wrote into checked citations, or searches the passages for citations.

Nothing the model writes is trusted: ids of passages that it was not given are dropped, and the text shown as a
quotation is always the text of the page. Whether the words stand there (`check`) and whether they bear out what is said
(`support`) are two questions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from functions.core import models
from functions.core.citations import quotes
from functions.core.citations.assessment import assess_places
from functions.core.citations.figures import comparison
from functions.core.citations.numbering import RANK, CitedPlace, Numbering
from functions.core.citations.passage import Passage, collect_allowed_figures, remove_file_names
from functions.core.citations.sections import SECTION_BREAK, Quotation, WrittenSection
from functions.core.citations.statements import MIN_WORDS, find_best_window, split_statements
from functions.core.retrieval import guard
from functions.core.text import words

MIN_SHARE = 0.2
"""A cited passage with a smaller share of a section's words is dropped when another passage supports the section."""

_WRAPPING = re.compile(r"^\W*seg\s*[=:]\s*|[\s\[\]()<>\"'`【】]+", re.IGNORECASE)
_NUMBER_MARK = re.compile(r"\[(\s*\d{1,4}(?:\s*[,;–-]\s*\d{1,4})*\s*)\]")


def cite_sections(
    sections: Sequence[WrittenSection], hits: Sequence[models.SearchHit], question: str = ""
) -> tuple[tuple[models.CitedSection, ...], tuple[models.Citation, ...]]:
    """The sections with the numbers of their citations, and the citations in the order of their first appearance.

    Where the cited places do not bear out a statement, the other passages are searched for one that does. A figure that
    neither a cited passage nor the question contains (see `comparison.AllowedFigures`) is listed in the section's
    `unsupported_numbers`.
    """
    passages = {hit.segment_id.lower(): Passage(hit) for hit in reversed(hits)}
    numbering = Numbering()
    question_values = comparison.find_values(question)
    cited_sections = []
    for section in sections:
        found = _place_section(section, passages)
        claim = remove_file_names(section.text, list(passages.values()))
        places = assess_places(claim, found, list(passages.values()), question_values)
        cited_passages = [passages[place.hit.segment_id.lower()] for place in places]
        unsupported = comparison.find_unsupported(claim, collect_allowed_figures(cited_passages, question_values))
        cited_sections.append(_build_section(section.text, places, numbering, unsupported))
    return tuple(cited_sections), tuple(numbering.citations)


def cite_extracts(
    quotations: Iterable[Quotation], question: str = "", lang: str = "en", *, least_evidence: float = 0.0
) -> tuple[tuple[models.CitedSection, ...], tuple[models.Citation, ...]]:
    """The sections and citations of an answer made of quotations.

    A quotation says what it quotes, so its support is whether its passage has `least_evidence` for the question.
    """
    numbering = Numbering()
    cited_sections = []
    for quotation in quotations:
        is_supported = guard.find_evidence([(question, lang)], [quotation.hit]) >= least_evidence
        support: models.SupportResult = "high" if is_supported else "low"
        places = [CitedPlace(quotation.hit, *span, "exact", support=support) for span in quotation.spans]
        section = _build_section(quotation.text, places, numbering)
        cited_sections.append(replace(section, emphasis=quotation.emphasis))
    return tuple(cited_sections), tuple(numbering.citations)


def mark_answer(sections: Iterable[models.CitedSection]) -> str:
    """The sections joined, each followed by its marks: `It rose by 5 %. [1][2]`.

    Every number in square brackets in the result is a mark; those of the text itself get round brackets.
    """
    return SECTION_BREAK.join(_append_marks(section) for section in sections)


def _append_marks(section: models.CitedSection) -> str:
    text = _NUMBER_MARK.sub(r"(\1)", section.text)
    marks = "".join(f"[{number}]" for number in section.citations)
    if not marks:
        return text
    after_block = text.endswith(("|", "```"))  # a mark on the same line would become part of the table or code
    return f"{text}{SECTION_BREAK if after_block else ' '}{marks}"


def _build_section(
    text: str, places: Sequence[CitedPlace], numbering: Numbering, unsupported: tuple[str, ...] = ()
) -> models.CitedSection:
    numbers = tuple(dict.fromkeys(numbering.number(place) for place in places))
    ids = tuple(dict.fromkeys(place.hit.segment_id for place in places))
    return models.CitedSection(text, ids, numbers, unsupported)


def _place_section(section: WrittenSection, passages: dict[str, Passage]) -> list[CitedPlace]:
    cited = [passages[key] for key in _find_known_ids(section.segment_ids, passages)]
    quoted = list(_place_by_quotes(section.quotes, cited, passages.values()))
    quoted_ids = {place.hit.segment_id for place in quoted}
    inferred = [
        place
        for passage in cited
        if passage.hit.segment_id not in quoted_ids
        for place in _place_by_words(section.text, passage)
    ]
    places = quoted + _drop_unrelated(inferred, has_quotes=bool(quoted))
    return places or _place_by_search(section.text, passages.values())


def _find_known_ids(segment_ids: Iterable[str], passages: dict[str, Passage]) -> list[str]:
    """The keys of `passages` among the ids that a model wrote, without brackets, quotes or "SEG="; each once."""
    keys = (_WRAPPING.sub("", part).lower() for item in segment_ids for part in re.split(r"[,;\s]+(?=\S)", item))
    return list(dict.fromkeys(key for key in keys if key in passages))


def _place_by_quotes(
    quotations: Iterable[str], cited: Sequence[Passage], passages: Iterable[Passage]
) -> Iterator[CitedPlace]:
    """An exact quotation is accepted from any passage, a similar wording only from a passage that the model cited."""
    others = [passage for passage in passages if passage not in cited]
    for quote in quotations:
        exact = next(((p, span) for p in [*cited, *others] if (span := p.find_quote(quote))), None)
        if exact:
            yield CitedPlace(exact[0].hit, *exact[1], "exact")
            continue
        similar = next(((p, span) for p in cited if (span := quotes.find_similar(quote, p.hit.text))), None)
        if similar:
            yield CitedPlace(similar[0].hit, *similar[1], "fuzzy")


def _place_by_words(text: str, passage: Passage) -> list[CitedPlace]:
    """The parts of a passage that support the statements of a section; if none does, the best one as unverified."""
    candidates = [find_best_window(statement, passage) for statement in split_statements(text)]
    candidates = candidates or [CitedPlace(passage.hit, 0, len(passage.hit.text), "unverified", 0.0)]
    verified = [place for place in candidates if place.check != "unverified"]
    return verified or [max(candidates, key=lambda place: place.share)]


def _place_by_search(text: str, passages: Iterable[Passage]) -> list[CitedPlace]:
    """For a section without a usable id: for each statement, the passage that contains most of its words, if any."""
    places = []
    candidates = list(passages)
    for statement in split_statements(text):
        if len(words.keys(statement)) < MIN_WORDS:
            continue
        best = max((find_best_window(statement, p) for p in candidates), key=_rank_place, default=None)
        if best is not None and best.check != "unverified":
            places.append(best)
    return places


def _rank_place(place: CitedPlace) -> tuple[int, float]:
    return RANK[place.check], place.share


def _drop_unrelated(places: list[CitedPlace], has_quotes: bool) -> list[CitedPlace]:
    """`places` without unrelated passages if one supports the section: some models cite every passage they saw."""
    if not has_quotes and all(place.check == "unverified" for place in places):
        return places
    return [place for place in places if place.check != "unverified" or place.share >= MIN_SHARE]
