"""Splits a section into statements, and finds the sentences of a passage that have most of a statement's words."""

from __future__ import annotations

import re
from functools import lru_cache

from functions.core import models
from functions.core.citations.numbering import CitedPlace
from functions.core.citations.passage import Passage
from functions.core.text import languages, words
from functions.core.text.sentences import split_sentences

FUZZY_SHARE = 0.6
"""The share of a statement's content words that one run of sentences must contain to match it."""
MIN_WORDS = 3
"""A statement with fewer content words is never matched to a passage that the model did not cite."""
MIN_KEPT_WEIGHT = 3
"""The names (1) and numbers (2) that a statement in another language than a passage needs to be matched to it."""
_EXTRA_SENTENCE = 0.1  # what a run of sentences loses of its share for each sentence after the first

_LIST_MARK = re.compile(r"(?m)^\s*(?:[-*•]|\d{1,3}[.)])\s+")
_CLAUSE_END = re.compile(r";\s+")


def split_sentences_of_section(text: str) -> list[str]:
    """The sentences of a section that have content words."""
    plain = _LIST_MARK.sub("", text)
    return [plain[start:end] for start, end in split_sentences(plain) if words.keys(plain[start:end])]


def split_statements(text: str) -> list[str]:
    """The sentences of a section that have content words, split at semicolons: each part may have its own passage."""
    parts = (part for sentence in split_sentences_of_section(text) for part in _split_clauses(sentence))
    return [part for part in parts if words.keys(part)]


def find_best_window(statement: str, passage: Passage, within: CitedPlace | None = None) -> CitedPlace:
    """The run of up to three sentences that contains most of a statement's words; a longer run must gain by it.

    If the statement translates the passage, only the words that a translation keeps are compared, if there are enough.
    With `within`, only runs that share characters with that place are compared.
    """
    verbatim = passage.find_quote(statement)
    if verbatim and within is None:
        return CitedPlace(passage.hit, *verbatim, "exact")
    statement_words, numbers, is_translated = _find_comparable_words(statement, passage.hit.lang)
    total_weight = len(statement_words) + len(numbers)
    if is_translated and within is None and total_weight < MIN_KEPT_WEIGHT:
        return CitedPlace(passage.hit, 0, len(passage.hit.text), "unverified", 0.0)
    best_score, best_share, best_span = 0.0, 0.0, (0, len(passage.hit.text))
    if within is not None:
        best_score, best_span = -1.0, (within.start, within.end)
    for span, window_words, extra_sentences in passage.windows:
        if within is not None and not (span[0] < within.end and within.start < span[1]):
            continue
        shared = statement_words & window_words
        share = (len(shared) + len(shared & numbers)) / max(total_weight, 1)
        score = share - _EXTRA_SENTENCE * extra_sentences
        if score > best_score:
            best_score, best_share, best_span = score, share, span
    check = _check_words(passage.hit.text[slice(*best_span)], statement_words, best_share)
    return CitedPlace(passage.hit, *best_span, check, best_share)


@lru_cache(maxsize=64)  # each statement of an answer is compared with all its passages
def _find_comparable_words(statement: str, lang: str) -> tuple[frozenset[str], frozenset[str], bool]:
    """The words of a statement that a passage in `lang` can share, its numbers, and whether it is a translation.

    A number weighs as much as two other words.
    """
    is_translated = languages.are_foreign(languages.detect_certain_language(statement) or "", lang)
    found = words.names_and_numbers(statement) if is_translated else words.keys(statement)
    return found, words.numbers(found), is_translated


def _check_words(evidence: str, statement_words: frozenset[str], share: float) -> models.CheckResult:
    """Never "exact": the same words in another order may mean something else."""
    if share < FUZZY_SHARE or not words.numbers(statement_words) <= words.keys(evidence):
        return "unverified"
    return "fuzzy"


def _split_clauses(sentence: str) -> list[str]:
    """The clauses of a sentence; the whole sentence if one of them has so few words that any passage contains them."""
    parts = _CLAUSE_END.split(sentence)
    return parts if all(len(words.keys(part)) >= MIN_WORDS for part in parts) else [sentence]
