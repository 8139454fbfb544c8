"""Turns the ids and quotations that a model wrote into checked citations, or searches the passages for citations.

Nothing the model writes is trusted: ids of passages that it was not given are dropped, and the text shown as a
quotation is always the text of the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from functions.core import models
from functions.core.citations import quotes
from functions.core.citations.figures import comparison
from functions.core.citations.passage import Passage, collect_allowed_figures, remove_file_names
from functions.core.citations.sections import SECTION_BREAK, WrittenSection
from functions.core.retrieval import guard
from functions.core.text import languages, words
from functions.core.text.sentences import split_sentences

FUZZY_SHARE = 0.6
"""The share of a statement's content words that one run of sentences must contain to support it."""
MIN_WORDS = 3
"""A statement with fewer content words is never matched to a passage that the model did not cite."""
MIN_KEPT_WEIGHT = 3
"""The names (1) and numbers (2) that a statement in another language than a passage needs to be matched to it."""
MIN_SHARE = 0.2
"""A cited passage with a smaller share of a section's words is dropped when another passage supports the section."""
PREVIEW_CHARS = 200
_EXTRA_SENTENCE = 0.1  # what a run of sentences loses of its share for each sentence after the first

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
    """The part [start, end) of a hit's text, and how well it supports a section; `share` is as for FUZZY_SHARE."""

    hit: models.SearchHit
    start: int
    end: int
    check: models.CheckResult
    share: float = 1.0


def cite_sections(
    sections: Sequence[WrittenSection], hits: Sequence[models.SearchHit], question: str = ""
) -> tuple[tuple[models.CitedSection, ...], tuple[models.Citation, ...]]:
    """The sections with the numbers of their citations, and the citations in the order of their first appearance.

    A figure that neither a cited passage nor the question contains (see `comparison.AllowedFigures`) is listed in the
    section's `unsupported_numbers`, and weakens every check of the section by one step.
    """
    passages = {hit.segment_id.lower(): Passage(hit) for hit in reversed(hits)}
    numbering = _Numbering()
    question_values = comparison.find_values(question)
    cited_sections = []
    for section in sections:
        supports = _support_section(section, passages)
        cited_passages = [passages[support.hit.segment_id.lower()] for support in supports]
        unsupported = comparison.find_unsupported(
            remove_file_names(section.text, cited_passages), collect_allowed_figures(cited_passages, question_values)
        )
        if unsupported:
            supports = [replace(support, check=_DEMOTED[support.check]) for support in supports]
        cited_sections.append(_build_section(section.text, supports, numbering, unsupported))
    return tuple(cited_sections), tuple(numbering.citations)


def cite_extracts(
    extracts: Iterable[tuple[models.SearchHit, int, int]],
) -> tuple[tuple[models.CitedSection, ...], tuple[models.Citation, ...]]:
    """The sections and citations of an answer made of quotations; each extract is hit.text[start:end]."""
    numbering = _Numbering()
    cited_sections = [
        _build_section(hit.text[start:end], [Support(hit, start, end, "exact")], numbering)
        for hit, start, end in extracts
    ]
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
    text: str, supports: Sequence[Support], numbering: _Numbering, unsupported: tuple[str, ...] = ()
) -> models.CitedSection:
    numbers = tuple(dict.fromkeys(numbering.number(support) for support in supports))
    ids = tuple(dict.fromkeys(support.hit.segment_id for support in supports))
    return models.CitedSection(text, ids, numbers, unsupported)


def _support_section(section: WrittenSection, passages: dict[str, Passage]) -> list[Support]:
    cited = [passages[key] for key in _find_known_ids(section.segment_ids, passages)]
    quoted = list(_support_by_quotes(section.quotes, cited, passages.values()))
    quoted_ids = {support.hit.segment_id for support in quoted}
    inferred = [
        support
        for passage in cited
        if passage.hit.segment_id not in quoted_ids
        for support in _support_by_words(section.text, passage)
    ]
    supports = quoted + _drop_unrelated(inferred, has_quotes=bool(quoted))
    return supports or _support_by_search(section.text, passages.values())


def _find_known_ids(segment_ids: Iterable[str], passages: dict[str, Passage]) -> list[str]:
    """The keys of `passages` among the ids that a model wrote, without brackets, quotes or "SEG="; each once."""
    keys = (_WRAPPING.sub("", part).lower() for item in segment_ids for part in re.split(r"[,;\s]+(?=\S)", item))
    return list(dict.fromkeys(key for key in keys if key in passages))


def _support_by_quotes(
    quotations: Iterable[str], cited: Sequence[Passage], passages: Iterable[Passage]
) -> Iterator[Support]:
    """An exact quotation is accepted from any passage, a similar wording only from a passage that the model cited."""
    others = [passage for passage in passages if passage not in cited]
    for quote in quotations:
        exact = next(((p, span) for p in [*cited, *others] if (span := p.find_quote(quote))), None)
        if exact:
            yield Support(exact[0].hit, *exact[1], "exact")
            continue
        similar = next(((p, span) for p in cited if (span := quotes.find_similar(quote, p.hit.text))), None)
        if similar:
            yield Support(similar[0].hit, *similar[1], "fuzzy")


def _support_by_words(text: str, passage: Passage) -> list[Support]:
    """The parts of a passage that support the statements of a section; if none does, the best one as unverified."""
    candidates = [_find_best_window(statement, passage) for statement in _split_statements(text)]
    candidates = candidates or [Support(passage.hit, 0, len(passage.hit.text), "unverified", 0.0)]
    verified = [support for support in candidates if support.check != "unverified"]
    return verified or [max(candidates, key=lambda support: support.share)]


def _support_by_search(text: str, passages: Iterable[Passage]) -> list[Support]:
    """For a section without a usable id: for each statement, the passage that contains most of its words, if any."""
    supports = []
    candidates = list(passages)
    for statement in _split_statements(text):
        if len(words.keys(statement)) < MIN_WORDS:
            continue
        best = max((_find_best_window(statement, p) for p in candidates), key=_rank_support, default=None)
        if best is not None and best.check != "unverified":
            supports.append(best)
    return supports


def _find_best_window(statement: str, passage: Passage) -> Support:
    """The run of up to three sentences that contains most of a statement's words; a longer run must gain by it.

    If the statement translates the passage, only the words that a translation keeps are compared, if there are enough.
    """
    verbatim = passage.find_quote(statement)
    if verbatim:
        return Support(passage.hit, *verbatim, "exact")
    statement_words = words.keys(statement)
    if languages.are_foreign(languages.detect_certain_language(statement) or "", passage.hit.lang):
        statement_words = words.names_and_numbers(statement)
        if sum(map(_weigh_word, statement_words)) < MIN_KEPT_WEIGHT:
            return Support(passage.hit, 0, len(passage.hit.text), "unverified", 0.0)
    total_weight = sum(map(_weigh_word, statement_words)) or 1
    best_score, best_share, best_span = 0.0, 0.0, (0, len(passage.hit.text))
    for span, window_words, extra_sentences in passage.windows:
        share = sum(map(_weigh_word, statement_words & window_words)) / total_weight
        score = share - _EXTRA_SENTENCE * extra_sentences
        if score > best_score:
            best_score, best_share, best_span = score, share, span
    check = _check_words(passage.hit.text[slice(*best_span)], statement_words, best_share)
    return Support(passage.hit, *best_span, check, best_share)


def _check_words(evidence: str, statement_words: frozenset[str], share: float) -> models.CheckResult:
    """Never "exact": the same words in another order may mean something else."""
    if share < FUZZY_SHARE or not words.numbers(statement_words) <= words.keys(evidence):
        return "unverified"
    return "fuzzy"


def _split_statements(text: str) -> list[str]:
    """The sentences of a section that have content words, split at semicolons: each part may have its own passage."""
    plain = _LIST_MARK.sub("", text)
    return [
        part for start, end in split_sentences(plain) for part in _split_clauses(plain[start:end]) if words.keys(part)
    ]


def _split_clauses(sentence: str) -> list[str]:
    """The clauses of a sentence; the whole sentence if one of them has so few words that any passage contains them."""
    parts = _CLAUSE_END.split(sentence)
    return parts if all(len(words.keys(part)) >= MIN_WORDS for part in parts) else [sentence]


def _weigh_word(key: str) -> int:
    return 2 if key[0].isdigit() else 1


def _rank_support(support: Support) -> tuple[int, float]:
    return _RANK[support.check], support.share


def _drop_unrelated(supports: list[Support], has_quotes: bool) -> list[Support]:
    """`supports` without unrelated passages if one supports the section: some models cite every passage they saw."""
    if not has_quotes and all(support.check == "unverified" for support in supports):
        return supports
    return [support for support in supports if support.check != "unverified" or support.share >= MIN_SHARE]


class _Numbering:
    """Gives each cited place one number; a place inside another one with the same check shares its number."""

    def __init__(self) -> None:
        self.citations: list[models.Citation] = []

    def number(self, support: Support) -> int:
        """The number of the citation of this place, which is added or, with a weaker check, updated."""
        new = _build_citation(support, len(self.citations) + 1)
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


def _build_citation(support: Support, number: int) -> models.Citation:
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
        snippet_preview=_shorten_quote(quote),
        section_title=hit.section_title,
        score=round(guard.weigh_evidence(hit), 4),
        check=support.check,
    )


def _shorten_quote(quote: str) -> str:
    line = " ".join(quote.split())
    if len(line) <= PREVIEW_CHARS:
        return line
    cut = line[: PREVIEW_CHARS - 1]
    return (cut[: cut.rfind(" ")] if " " in cut[PREVIEW_CHARS // 2 :] else cut) + "…"
