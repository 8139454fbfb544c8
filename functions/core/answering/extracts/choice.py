"""Answers a question without a language model, by quoting the sentences and rows that fit it best."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

from functions.core import models
from functions.core.answering.extracts import quotation, wording
from functions.core.answering.extracts.emphasis import find_emphasis
from functions.core.answering.extracts.units import Unit, collect_units, split_passage
from functions.core.citations.sections import Quotation
from functions.core.retrieval import question_forms
from functions.core.text import languages, words

MAX_UNITS = 3
MAX_UNITS_OF_PART = 2
"""For each question in a question of many parts."""
MAX_DOCUMENTS = 5
"""Documents with a unit that has all words of the question are quoted too, up to so many."""
MAX_COMPARED = 96
"""Units whose meaning is compared with the question's: those with most of its words."""
_ENOUGH_COMPARED = 10
"""The deviation of fewer similarities says little about their scale."""

_ALL_WORDS = 0.95  # the share of the question's words, weighed by rarity, that counts as all
_CONTEXT_WEIGHT = 0.8  # of words of the question in the header or caption of a row, or above it
_LEANING_WEIGHT = 0.8  # of words in the sentence to which a pronoun refers
_PASSAGE_WEIGHT = 0.4  # of the reciprocal rank of the unit's passage
_MEANING_WEIGHT = 0.2  # of a standard deviation of the similarities
_ROW_BONUS = 0.1
_FIGURE_BONUS = 0.2  # of a new figure, if the question asks for one
_DEFINITION_BONUS = 0.8
_FRAGMENT_MALUS = 0.2
_CAPTION_MALUS = 1.0
_NOTHING_NEW_MALUS = 0.2  # of a unit with hardly a word that is not the question's
_QUESTION_FACTOR = 0.5  # for a sentence that is a question itself
_FLOOR, _OTHER_FLOOR = 0.55, 0.95
"""Units that score less than this share of the best score are left out: of its document, and of others.

Without a comparison in meaning the best unit is less sure, so the first one is for all documents.
"""
_FOREIGN_PER_PASSAGE = 2  # sentences of one foreign passage, if only words are compared
_ROWS_PER_PASSAGE = 2

Compare = Callable[[str, Sequence[str]], Sequence[float]]
"""The similarities of a question and texts in meaning."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A unit, whether it has all words of the question, and whether its score is near enough to the best one."""

    unit: Unit
    has_all_words: bool
    is_near_best: bool


def extract_answer(
    question: str, hits: Sequence[models.SearchHit], *, lang: str = "", compare: Compare | None = None
) -> list[Quotation]:
    """Quotations of at most MAX_UNITS sentences and rows that fit the question, whose language is `lang`, best first.

    `hits` come best first, as the search ranked them. Without `compare` only words are compared, which say little if
    the best sentence is foreign (French for an English question); the answer then has sentences of several passages.
    Each question in a question of many parts has its own.
    """
    passages = [split_passage(hit, rank) for rank, hit in enumerate(hits)]
    parts = question_forms.split_question(question) or (question,)
    most = MAX_DOCUMENTS if len(parts) == 1 else MAX_UNITS_OF_PART
    chosen = []
    for part in parts:
        wanted = wording.read_question(part)
        for at, unit in enumerate(_find_units(part, wanted, passages, lang, compare)[:most]):
            # only the best one, because the others are quoted for those whom it does not answer
            chosen.append((wanted, unit, "" if at else find_emphasis(part, wanted.keys, unit)))
    return quotation.quote_units(chosen, passages)


def is_foreign(hit: models.SearchHit, lang: str) -> bool:
    """Whether a passage is in the other of English and French than a question in `lang`."""
    return languages.are_foreign(hit.lang, lang)


def _find_units(
    question: str, wanted: wording.Wanted, passages: Sequence[Sequence[Unit]], lang: str, compare: Compare | None
) -> list[Unit]:
    """The units that answer a question, best first."""
    units = collect_units(wanted.keys, passages)
    if not units:
        return []
    shares = _share_words(wanted, units)
    scores = _score(wanted, units, shares)
    if compare is not None:
        for at, meaning in _compare_meaning(question, units, shares, compare).items():
            scores[at] += _MEANING_WEIGHT * meaning
    ranked = sorted(range(len(units)), key=lambda at: (-scores[at], at))
    is_blind = compare is None and is_foreign(units[ranked[0]].hit, lang)
    if not _is_fragment(units[ranked[0]]):
        ranked = [at for at in ranked if not _is_fragment(units[at])]
    best, best_source = scores[ranked[0]], units[ranked[0]].hit.source_id

    def is_near_best(at: int) -> bool:
        floor = _OTHER_FLOOR if compare and units[at].hit.source_id != best_source else _FLOOR
        return is_blind or best < 0 or scores[at] >= floor * best

    candidates = [_Candidate(units[at], shares[at] >= _ALL_WORDS, is_near_best(at)) for at in ranked]
    return _choose(candidates, _FOREIGN_PER_PASSAGE if is_blind else MAX_UNITS)


def _score(wanted: wording.Wanted, units: Sequence[Unit], shares: Sequence[float]) -> list[float]:
    """The score of each unit: its share of the question's words, its passage's rank, and its form."""
    scores = []
    for at, (unit, share) in enumerate(zip(units, shares, strict=True)):
        before = _find_sentence_before(units, at)
        score = share + _PASSAGE_WEIGHT / (1 + unit.rank)
        new = unit.keys - wanted.keys
        if wanted.asks_figure and words.numbers(new):
            score += _FIGURE_BONUS
        if wording.defines(unit.text, before.text if before else "", wanted.terms):
            score += _DEFINITION_BONUS
        if len(new) < 2:
            score -= _NOTHING_NEW_MALUS
        if unit.row:
            score += _ROW_BONUS
        elif wording.is_caption(unit.text):
            score -= _CAPTION_MALUS
        elif _is_fragment(unit):
            score -= _FRAGMENT_MALUS
        scores.append(score)
    return scores


def _is_fragment(unit: Unit) -> bool:
    return unit.row is None and wording.is_fragment(unit.text)


def _share_words(wanted: wording.Wanted, units: Sequence[Unit]) -> list[float]:
    """The share of the question's words in each unit; the rarer a word is among the units, the more it weighs."""
    counts = Counter(key for unit in units for key in unit.keys & wanted.keys)
    weights = {key: math.log(1 + len(units) / (1 + counts[key])) for key in wanted.keys}
    total = sum(weights.values()) or 1.0
    shares = [sum(weights[key] for key in unit.keys & wanted.keys) / total for unit in units]
    for at, unit in enumerate(units):
        before = _find_sentence_before(units, at)
        tells = unit.keys & wanted.keys or wanted.terms or (wanted.asks_figure and words.numbers(unit.keys))
        if before and tells and wording.leans_back(unit.text):
            inherited = (before.keys - unit.keys) & wanted.keys
            shares[at] += _LEANING_WEIGHT * sum(weights[key] for key in inherited) / total
        if unit.row:
            shares[at] += _CONTEXT_WEIGHT * sum(weights[k] for k in (unit.context - unit.keys) & wanted.keys) / total
        elif wording.is_question(unit.text):  # it resembles the reader's question, so the next sentence answers both
            if at + 1 < len(units) and units[at + 1].rank == unit.rank:
                shares[at + 1] = max(shares[at], shares[at + 1])
            shares[at] *= _QUESTION_FACTOR
    return shares


def _find_sentence_before(units: Sequence[Unit], at: int) -> Unit | None:
    before = units[at - 1] if at else None
    is_before = before is not None and before.rank == units[at].rank and not (before.row or units[at].row)
    return before if is_before else None


def _compare_meaning(
    question: str, units: Sequence[Unit], shares: Sequence[float], compare: Compare
) -> dict[int, float]:
    """How many standard deviations each unit is nearer to the question than the others are: models differ in scale."""
    compared = sorted(range(len(units)), key=lambda at: (-shares[at], units[at].rank, at))[:MAX_COMPARED]
    similarities = compare(question, [units[at].readable for at in compared])
    mean, deviation = fmean(similarities), pstdev(similarities) or 1.0
    trust = min(1.0, len(compared) / _ENOUGH_COMPARED)
    meanings = {at: trust * (one - mean) / deviation for at, one in zip(compared, similarities, strict=True)}
    return dict.fromkeys(range(len(units)), min(meanings.values())) | meanings


def _choose(ranked: Sequence[_Candidate], most_of_passage: int) -> list[Unit]:
    """The best units, and one of each other document that has all words of the question."""
    chosen: list[Unit] = []
    per_passage: Counter[tuple[int, bool]] = Counter()
    for candidate in ranked:
        unit = candidate.unit
        kind = (unit.rank, unit.row is not None)
        is_full = per_passage[kind] >= (_ROWS_PER_PASSAGE if unit.row else most_of_passage)
        if is_full or any(unit.text == other.text for other in chosen):
            continue
        is_first = all(unit.hit.source_id != other.hit.source_id for other in chosen)
        is_needed = is_first and candidate.has_all_words
        if len(chosen) < (MAX_DOCUMENTS if is_needed else MAX_UNITS) and (is_needed or candidate.is_near_best):
            chosen.append(unit)
            per_passage[kind] += 1
    return chosen
