"""Judges whether a passage bears out a statement: by its figures, names and words, and by what either denies.

Whether a quotation stands on the page says nothing about this, and is checked elsewhere. Where nothing decides, the
answer is no.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from functions.core.citations.figures import comparison
from functions.core.citations.figures.number_words import find_word_values
from functions.core.citations.support import names, negation
from functions.core.text import languages, words
from functions.core.text.sentences import split_sentences

LEAST_SHARE = 0.5
"""The share of a statement's content words, other than names and figures, that its evidence must have."""
MIN_KEPT_WEIGHT = 3
"""The names (1) and figures (2) that a statement in another language than its evidence must share with it."""
_STEM = 5
"""Words that begin with as many letters alike count as one: impair and impairment."""
_UNSURE_NUMBERS = frozenset(
    re.findall(
        r"\S+",
        """one un une first premier premiere premiers premieres may mai march
        second seconds seconde score pair paire couple
        both double cent cents part half demi demie quart quarts quarter quarters twice mar tiers sept mars
        thousand mille millier milliers million millions billion billions milliard milliards trillion trillions""",
    )
)
_PRONOUN = re.compile(
    r"\b(?:he|she|it|they|his|her|its|their|him|them|this|these|ils?|elles?|lui|son|sa|ses|leurs?|cette|cet|ces|celui"
    r"|celle|ceux|celles)\b",
    re.IGNORECASE,
)
_BESIDE_FIGURE = re.compile(r"\d \||\| \d")
_LETTERS = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Sentences of a passage, and what a reader knows when reading them: the sentences before, title and headings."""

    text: str
    before: str
    headings: str
    lang: str
    figures: comparison.AllowedFigures


def bears_out(statement: str, evidence: Evidence, least_share: float = LEAST_SHARE) -> bool:
    """Whether everything that can be compared in `statement` agrees with `evidence`."""
    is_foreign = languages.are_foreign(languages.detect_certain_language(statement) or "", evidence.lang)
    if comparison.find_unsupported(statement, evidence.figures) or _has_other_number_words(statement, evidence):
        return False
    named = names.find_names(statement, names.find_ordinary(f"{evidence.text} {evidence.before}"))
    known = [evidence.text, evidence.headings]
    if not is_foreign and len(_PRONOUN.findall(evidence.text)) > len(
        _PRONOUN.findall(statement)
    ):  # the claim says who is meant
        known.append(evidence.before)
    if names.list_missing(named, known, is_foreign=is_foreign):
        return False
    if is_foreign:
        kept = len({name.key for name in named}) + 2 * len(words.numbers(words.keys(statement)))
        return kept >= MIN_KEPT_WEIGHT and negation.is_negated(statement) == negation.is_negated(evidence.text)
    named_there = names.find_names(evidence.text)
    if names.have_swapped(named, named_there) or names.is_substituted(named, named_there):
        return False
    if names.have_figures_swapped(statement, evidence.text, named, named_there):
        return False
    if negation.differs(statement, evidence.text):
        return False
    if negation.says_opposite(statement, _find_nearest_sentence(statement, evidence.text)):
        return False
    return _share_words(statement, named, evidence) >= least_share


def _has_other_number_words(statement: str, evidence: Evidence) -> bool:
    """Whether the statement has a number or month in words that the evidence has neither in words nor in figures."""
    return any(values.isdisjoint(evidence.figures.values) for values in _find_number_words(statement))


@lru_cache(maxsize=64)  # each statement of an answer is compared with all its passages
def _find_number_words(statement: str) -> tuple[frozenset[str], ...]:
    """The values of each number or month in words, without the words that may mean something else."""
    found = []
    for match in _LETTERS.finditer(statement):
        word = match.group().casefold()
        values = find_word_values(word)
        if not values:
            continue
        is_date = _BESIDE_FIGURE.search(f"{statement[: match.start()][-2:]}|{statement[match.end() :][:2]}")
        is_unsure = not words.keys(word).isdisjoint(_UNSURE_NUMBERS) or word in _UNSURE_NUMBERS
        is_unsure &= not (is_date and any(value.startswith("month") for value in values))
        if not is_unsure:
            found.append(frozenset(values))
    return tuple(found)


def _find_nearest_sentence(statement: str, text: str) -> str:
    """The sentence of `text` with most words of the statement: another one may compare something else."""
    said = words.keys(statement)
    sentences = [text[start:end] for start, end in split_sentences(text)]
    return max(sentences, key=lambda sentence: len(said & words.keys(sentence)), default=text)


def _share_words(statement: str, named: list[names.Name], evidence: Evidence) -> float:
    """The share of the statement's content words, other than names and figures, in the evidence."""
    said = words.keys(statement)
    said = said - words.numbers(said) - {name.key for name in named} or said
    found = words.keys(evidence.text) | words.keys(evidence.headings)
    stems = {key[:_STEM] for key in found if len(key) >= _STEM}
    return sum(key in found or key[:_STEM] in stems for key in said) / max(len(said), 1)
