"""Answers a question without a language model, by quoting the sentences that fit it best."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from functions.core import models
from functions.core.text import languages, words
from functions.core.text.sentences import split_sentences

MAX_SENTENCES = 5
_MIN_LETTERS = 12
_NEIGHBOUR_WEIGHT = 0.2  # of the better adjacent sentence's own score
_PASSAGE_WEIGHT = 0.4  # of the reciprocal rank of the sentence's passage
_QUESTION_FACTOR = 0.5  # for a sentence that is a question itself
_FIGURE_WEIGHT = 0.1  # of a figure in a foreign sentence, if the question asks for one
_FOREIGN_PER_PASSAGE = 2  # foreign sentences of one passage that an answer has
_ASKS_FIGURE = re.compile(
    r"""\b(?:how\ (?:many|much|long|old|far|large|often|high)|when|percent(?:age)?|combien|quand|pour\ cent|pourcentage
    |number|share|proportion|rate|amount|cost|price|year|nombre|part|taux|montant|co[ûu]t|prix|ann[ée]e|dur[ée]e)s?\b""",
    re.IGNORECASE | re.VERBOSE,
)
_CLOSING = " \n”\"'’»)]"
_RELATIVE_FLOOR = 0.55  # sentences that score less than this share of the best score are left out


@dataclass(frozen=True, slots=True)
class Extract:
    """One or more consecutive sentences of a hit: hit.text[start:end]."""

    hit: models.SearchHit
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.hit.text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class _Sentence:
    hit: models.SearchHit
    rank: int  # of its passage among the hits, from 0
    index: int  # in its passage, from 0
    start: int
    end: int
    keys: frozenset[str]
    is_question: bool

    @property
    def place(self) -> tuple[str, int, int, int]:
        """Source, page and offsets in the page: the same for a sentence in two overlapping passages."""
        offset = self.hit.start_offset
        return self.hit.source_id, self.hit.page_start, offset + self.start, offset + self.end


def extract_answer(
    question: str, hits: Sequence[models.SearchHit], *, lang: str = "", limit: int = MAX_SENTENCES
) -> list[Extract]:
    """At most `limit` sentences that fit the question, whose language is `lang`; consecutive ones are joined.

    `hits` come best first, as the search ranked them. The document with the best sentence comes first, and the
    sentences of a document are in its order. If the best sentence is foreign (French for an English question), words
    say little about the others too, so the answer has sentences from several passages.
    """
    question_words = words.keys(question)
    sentences = _collect_sentences(question_words, hits)
    if not sentences:
        return []
    scores = _score(question_words, sentences)
    if _ASKS_FIGURE.search(question):
        scores = [
            score + _FIGURE_WEIGHT * (is_foreign(sentence.hit, lang) and bool(words.numbers(sentence.keys)))
            for score, sentence in zip(scores, sentences, strict=True)
        ]
    ranked = sorted(range(len(sentences)), key=lambda at: (-scores[at], at))
    if is_foreign(sentences[ranked[0]].hit, lang):
        chosen = _spread([sentences[at] for at in ranked])[:limit]
    else:
        floor = _RELATIVE_FLOOR * scores[ranked[0]]
        chosen = [sentences[at] for at in ranked[:limit] if scores[at] >= floor]
    return _join_neighbours(_sort_by_document(chosen))


def is_foreign(hit: models.SearchHit, lang: str) -> bool:
    """Whether a passage is in the other of English and French than a question in `lang`."""
    return languages.are_foreign(hit.lang, lang)


def _collect_sentences(question_words: frozenset[str], hits: Sequence[models.SearchHit]) -> list[_Sentence]:
    """The sentences of all passages; one that overlapping passages share belongs to the better passage.

    A short sentence ("Rent: 900 EUR", "No.") counts only if it has words of the question and others, or follows a
    question.
    """
    sentences: dict[tuple[str, int, int, int], _Sentence] = {}
    for rank, hit in enumerate(hits):
        follows_question = False
        for index, (start, end) in enumerate(split_sentences(hit.text)):
            text = hit.text[start:end]
            keys, is_question = words.keys(text), text.rstrip(_CLOSING).endswith(("?", "？"))
            is_long = sum(map(str.isalpha, text)) >= _MIN_LETTERS
            if is_long or follows_question or (keys & question_words and keys - question_words):
                sentence = _Sentence(hit, rank, index, start, end, keys, is_question)
                sentences.setdefault(sentence.place, sentence)
            follows_question = is_question
    return list(sentences.values())


def _score(question_words: frozenset[str], sentences: Sequence[_Sentence]) -> list[float]:
    """The score of each sentence: its share of the question's words, its neighbours' share, and its passage's rank."""
    weights = _weigh_words(question_words, sentences)
    total = sum(weights.values()) or 1.0
    own = [sum(weights[key] for key in sentence.keys & question_words) / total for sentence in sentences]
    for at, sentence in enumerate(sentences):
        if sentence.is_question:  # it resembles the reader's question, so the next sentence answers both
            if _are_neighbours(sentences, at, at + 1):
                own[at + 1] = max(own[at], own[at + 1])
            own[at] *= _QUESTION_FACTOR
    scores = []
    for at, sentence in enumerate(sentences):
        beside = max((own[near] for near in (at - 1, at + 1) if _are_neighbours(sentences, at, near)), default=0.0)
        scores.append(own[at] + _NEIGHBOUR_WEIGHT * beside + _PASSAGE_WEIGHT / (1 + sentence.rank))
    return scores


def _weigh_words(question_words: frozenset[str], sentences: Sequence[_Sentence]) -> dict[str, float]:
    """The weight of each word of the question: the rarer it is among the sentences, the more it weighs."""
    counts = Counter(key for sentence in sentences for key in sentence.keys & question_words)
    return {key: math.log(1 + len(sentences) / (1 + counts[key])) for key in question_words}


def _spread(ranked: Sequence[_Sentence]) -> list[_Sentence]:
    """`ranked` with only the best sentences of each passage."""
    taken: Counter[int] = Counter()
    kept = []
    for sentence in ranked:
        taken[sentence.rank] += 1
        if taken[sentence.rank] <= _FOREIGN_PER_PASSAGE:
            kept.append(sentence)
    return kept


def _are_neighbours(sentences: Sequence[_Sentence], one: int, other: int) -> bool:
    return 0 <= other < len(sentences) and sentences[one].rank == sentences[other].rank


def _sort_by_document(ranked: Sequence[_Sentence]) -> list[_Sentence]:
    best_ranks: dict[str, int] = {}
    for rank, sentence in enumerate(ranked):
        best_ranks.setdefault(sentence.hit.source_id, rank)
    return sorted(ranked, key=lambda sentence: (best_ranks[sentence.hit.source_id], sentence.place))


def _join_neighbours(chosen: Sequence[_Sentence]) -> list[Extract]:
    joined: list[Extract] = []
    last: _Sentence | None = None
    for sentence in chosen:
        if last is not None and last.rank == sentence.rank and sentence.index == last.index + 1:
            joined[-1] = Extract(sentence.hit, joined[-1].start, sentence.end)
        else:
            joined.append(Extract(sentence.hit, sentence.start, sentence.end))
        last = sentence
    return joined
