"""Turns the ids and quotations a model wrote into checked places in the documents, or finds them itself.

Nothing the model says is believed: ids outside the given passages are dropped, and what is shown as a quotation is
always the text of the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from functions.core import models
from functions.core.citations import quotes
from functions.core.citations.figures import comparison
from functions.core.citations.passage import Passage, know_figures, without_names
from functions.core.citations.sections import SECTION_BREAK, WrittenSection
from functions.core.retrieval import guard
from functions.core.text import words
from functions.core.text.sentences import split_sentences

FUZZY_SHARE = 0.6
"""The share of a statement's content words that must stand together in a passage to support it."""
MIN_WORDS = 3
"""Statements of fewer content words are never matched to a passage that the model did not name."""
FLOOR = 0.2
"""A cited passage below it is dropped when another one supports the section."""
PREVIEW_CHARS = 200

_RANK = {"exact": 2, "fuzzy": 1, "unverified": 0}
_DEMOTED: dict[models.CheckResult, models.CheckResult] = {
    "exact": "fuzzy",
    "fuzzy": "unverified",
    "unverified": "unverified",
}
_LIST_MARK = re.compile(r"(?m)^\s*(?:[-*•]|\d{1,3}[.)])\s+")
_WRAPPING = re.compile(r"^\W*seg\s*[=:]\s*|[\s\[\]()<>\"'`【】]+", re.IGNORECASE)
_CLAUSE_END = re.compile(r";\s+")
_NUMBER_MARK = re.compile(r"\[(\s*\d{1,4}(?:\s*[,;–-]\s*\d{1,4})*\s*)\]")


@dataclass(frozen=True, slots=True)
class Support:
    """A stretch of a hit's text and how well it supports a section."""

    hit: models.SearchHit
    start: int
    end: int
    check: models.CheckResult
    share: float = 1.0


def cite_sections(
    sections: Sequence[WrittenSection], hits: Sequence[models.SearchHit], question: str = ""
) -> tuple[tuple[models.CitedSection, ...], tuple[models.Citation, ...]]:
    """The sections with the numbers of their citations, and the citations in the order of their first appearance.

    A figure that neither a cited passage nor the question holds (see `figures.Known`) is named, and makes every check
    of its section one step weaker.
    """
    passages = {hit.segment_id.lower(): Passage(hit) for hit in reversed(hits)}
    numbering = _Numbering()
    asked = comparison.find_values(question)
    cited = []
    for section in sections:
        supports = _support_section(section, passages)
        cited_passages = [passages[support.hit.segment_id.lower()] for support in supports]
        unsupported = comparison.find_unsupported(
            without_names(section.text, cited_passages), know_figures(cited_passages, asked)
        )
        if unsupported:
            supports = [replace(support, check=_DEMOTED[support.check]) for support in supports]
        cited.append(_cited_section(section.text, supports, numbering, unsupported))
    return tuple(cited), tuple(numbering.citations)


def cite_extracts(
    extracts: Iterable[tuple[models.SearchHit, int, int]],
) -> tuple[tuple[models.CitedSection, ...], tuple[models.Citation, ...]]:
    """Sections that are themselves quotations: (hit, start, end) in the hit's text."""
    numbering = _Numbering()
    cited = [
        _cited_section(hit.text[start:end], [Support(hit, start, end, "exact")], numbering)
        for hit, start, end in extracts
    ]
    return tuple(cited), tuple(numbering.citations)


def mark_answer(sections: Iterable[models.CitedSection]) -> str:
    """The sections joined, each followed by its marks: `It rose by 5 %. [1][2]`.

    Every bracketed number in the result is a mark; those of the text itself get round brackets.
    """
    return SECTION_BREAK.join(_marked(section) for section in sections)


def _marked(section: models.CitedSection) -> str:
    text = _NUMBER_MARK.sub(r"(\1)", section.text)
    marks = "".join(f"[{number}]" for number in section.citations)
    if not marks:
        return text
    after_block = text.endswith(("|", "```"))  # a mark on the same line would become part of the table or code
    return f"{text}{SECTION_BREAK if after_block else ' '}{marks}"


def _cited_section(
    text: str, supports: Sequence[Support], numbering: _Numbering, unsupported: tuple[str, ...] = ()
) -> models.CitedSection:
    found = list(dict.fromkeys(numbering.number(support) for support in supports))
    ids = tuple(dict.fromkeys(support.hit.segment_id for support in supports))
    return models.CitedSection(text, ids, tuple(found), unsupported)


def _support_section(section: WrittenSection, passages: dict[str, Passage]) -> list[Support]:
    cited = [passages[key] for key in _known_ids(section.segment_ids, passages)]
    quoted = list(_support_by_quotes(section.quotes, cited, passages.values()))
    named = {support.hit.segment_id for support in quoted}
    inferred = [
        support
        for passage in cited
        if passage.hit.segment_id not in named
        for support in _support_by_words(section.text, passage)
    ]
    supports = quoted + _without_strangers(inferred, bool(quoted))
    return supports or _support_by_search(section.text, passages.values())


def _known_ids(segment_ids: Iterable[str], passages: dict[str, Passage]) -> list[str]:
    """Ids of given passages, whatever they were wrapped in; each once."""
    written = (
        _WRAPPING.sub("", part).lower() for written in segment_ids for part in re.split(r"[,;\s]+(?=\S)", written)
    )
    return list(dict.fromkeys(key for key in written if key in passages))


def _support_by_quotes(
    quotations: Iterable[str], cited: Sequence[Passage], given: Iterable[Passage]
) -> Iterator[Support]:
    """A quotation may stand in a passage the model failed to name; a similar wording counts only where it did."""
    others = [passage for passage in given if passage not in cited]
    for quote in quotations:
        exact = next(((p, span) for p in [*cited, *others] if (span := p.find_quote(quote))), None)
        if exact:
            yield Support(exact[0].hit, *exact[1], "exact")
            continue
        similar = next(((p, span) for p in cited if (span := quotes.find_similar(quote, p.hit.text))), None)
        if similar:
            yield Support(similar[0].hit, *similar[1], "fuzzy")


def _support_by_words(text: str, passage: Passage) -> list[Support]:
    """Where a passage supports the statements of a section; at least its best guess, marked unverified."""
    tried = [_best_window(statement, passage) for statement in _statements(text)]
    tried = tried or [Support(passage.hit, 0, len(passage.hit.text), "unverified", 0.0)]
    good = [support for support in tried if support.check != "unverified"]
    return good or [max(tried, key=lambda support: support.share)]


def _support_by_search(text: str, given: Iterable[Passage]) -> list[Support]:
    """For a section without a usable id: the passages that hold most words of its statements, if any does."""
    supports = []
    candidates = list(given)
    for statement in _statements(text):
        if len(words.keys(statement)) < MIN_WORDS:
            continue
        best = max((_best_window(statement, p) for p in candidates), key=_quality, default=None)
        if best is not None and best.check != "unverified":
            supports.append(best)
    return supports


def _best_window(statement: str, passage: Passage) -> Support:
    verbatim = passage.find_quote(statement)
    if verbatim:
        return Support(passage.hit, *verbatim, "exact")
    wanted = words.keys(statement)
    weight = sum(map(_weight, wanted)) or 1
    share, span = 0.0, (0, len(passage.hit.text))
    best = 0.0
    for window, held, more in passage.windows:
        covered = sum(map(_weight, wanted & held)) / weight
        if covered - 0.1 * more > best:
            best, share, span = covered - 0.1 * more, covered, window
    return Support(passage.hit, *span, _judge(passage.hit.text[slice(*span)], wanted, share), share)


def _judge(evidence: str, wanted: frozenset[str], share: float) -> models.CheckResult:
    """Words are never as good as a quotation: the same ones in another order may say something else."""
    if share < FUZZY_SHARE or not words.numbers(wanted) <= words.keys(evidence):
        return "unverified"
    return "fuzzy"


def _statements(text: str) -> list[str]:
    """The sentences of a section that say something, cut at semicolons: each part may rest on a passage of its own."""
    plain = _LIST_MARK.sub("", text)
    return [part for start, end in split_sentences(plain) for part in _clauses(plain[start:end]) if words.keys(part)]


def _clauses(sentence: str) -> list[str]:
    """Only clauses that say enough by themselves: two words are found anywhere."""
    parts = _CLAUSE_END.split(sentence)
    return parts if all(len(words.keys(part)) >= MIN_WORDS for part in parts) else [sentence]


def _weight(key: str) -> int:
    return 2 if key[0].isdigit() else 1


def _quality(support: Support) -> tuple[int, float]:
    return _RANK[support.check], support.share


def _without_strangers(supports: list[Support], quoted: bool) -> list[Support]:
    """Models cite every passage they were shown: where one supports the section, unrelated ones go."""
    if not quoted and all(support.check == "unverified" for support in supports):
        return supports
    return [support for support in supports if support.check != "unverified" or support.share >= FLOOR]


class _Numbering:
    """Gives each place in a document one number; a place inside a cited one with the same check shares its number."""

    def __init__(self) -> None:
        self.citations: list[models.Citation] = []

    def number(self, support: Support) -> int:
        new = _citation(support, len(self.citations) + 1)
        for at, old in enumerate(self.citations):
            if (old.source, old.source_id, old.page_start) != (new.source, new.source_id, new.page_start):
                continue
            if (old.start_offset, old.end_offset) == (new.start_offset, new.end_offset):
                self.citations[at] = replace(old, check=min(old.check, new.check, key=_RANK.__getitem__))
                return old.number
            inside = old.start_offset <= new.start_offset and new.end_offset <= old.end_offset
            if inside and old.check == new.check:
                return old.number
        self.citations.append(new)
        return new.number


def _citation(support: Support, number: int) -> models.Citation:
    hit = support.hit
    quote = hit.text[support.start : support.end]
    return models.Citation(
        number=number,
        source_id=hit.source_id,
        chunk_index=hit.chunk_index,
        source=hit.source,
        file_name=hit.file_name,
        file_type=hit.file_type,
        page_start=hit.page_start,
        page_end=hit.page_end,
        start_offset=hit.start_offset + support.start,
        end_offset=hit.start_offset + support.end,
        quote=quote,
        snippet_preview=_preview(quote),
        section_title=hit.section_title,
        score=round(guard.weigh_evidence(hit), 4),
        check=support.check,
    )


def _preview(quote: str) -> str:
    line = " ".join(quote.split())
    if len(line) <= PREVIEW_CHARS:
        return line
    cut = line[: PREVIEW_CHARS - 1]
    return (cut[: cut.rfind(" ")] if " " in cut[PREVIEW_CHARS // 2 :] else cut) + "…"
