"""Answers without a language model: the sentences that fit the question best, word for word."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from functions.core import models
from functions.core.text import words
from functions.core.text.sentences import split_sentences

MAX_SENTENCES = 5
_MIN_LETTERS = 12
_NEIGHBOUR = 0.2  # what a sentence gains from the words of the ones beside it
_PASSAGE = 0.4  # what it gains from the rank of its passage
_QUESTION = 0.5  # what is left of its score to a sentence that asks something itself
_CLOSING = " \n”\"'’»)]"
_RELATIVE_FLOOR = 0.55  # sentences below this share of the best score are left out


@dataclass(frozen=True, slots=True)
class Extract:
    """One or more sentences of a hit that follow each other: hit.text[start:end]."""

    hit: models.SearchHit
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.hit.text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class _Sentence:
    hit: models.SearchHit
    rank: int  # of its passage, from 0
    index: int  # in its passage
    start: int
    end: int
    keys: frozenset[str]
    is_question: bool

    @property
    def place(self) -> tuple[str, int, int, int]:
        offset = self.hit.start_offset
        return self.hit.source_id, self.hit.page_start, offset + self.start, offset + self.end


def extract_answer(question: str, hits: Sequence[models.SearchHit], *, limit: int = MAX_SENTENCES) -> list[Extract]:
    """At most `limit` sentences that support an answer, neighbours joined, documents best first and each in its order.

    `hits` come best first, as the search ranked them.
    """
    wanted = words.keys(question)
    sentences = _candidates(wanted, hits)
    if not sentences:
        return []
    scores = _score(wanted, sentences)
    ranked = sorted(range(len(sentences)), key=lambda at: (-scores[at], at))
    floor = _RELATIVE_FLOOR * scores[ranked[0]]
    chosen = [sentences[at] for at in ranked[:limit] if scores[at] >= floor]
    return _join_neighbours(_in_document_order(chosen))


def _candidates(wanted: frozenset[str], hits: Sequence[models.SearchHit]) -> list[_Sentence]:
    """The sentences of all passages; one that two overlapping passages share counts for the better one.

    A short one ("Rent: 900 EUR", "No.") has to say something of the question and something more, or to follow one.
    """
    found: dict[tuple[str, int, int, int], _Sentence] = {}
    for rank, hit in enumerate(hits):
        follows_question = False
        for index, (start, end) in enumerate(split_sentences(hit.text)):
            text = hit.text[start:end]
            keys, is_question = words.keys(text), text.rstrip(_CLOSING).endswith(("?", "？"))
            is_long = sum(map(str.isalpha, text)) >= _MIN_LETTERS
            if is_long or follows_question or (keys & wanted and keys - wanted):
                sentence = _Sentence(hit, rank, index, start, end, keys, is_question)
                found.setdefault(sentence.place, sentence)
            follows_question = is_question
    return list(found.values())


def _score(wanted: frozenset[str], sentences: Sequence[_Sentence]) -> list[float]:
    weights = _weights(wanted, sentences)
    total = sum(weights.values()) or 1.0
    own = [sum(weights[key] for key in sentence.keys & wanted) / total for sentence in sentences]
    for at, sentence in enumerate(sentences):
        if sentence.is_question:  # its words are those of the reader's; what follows is the answer to both
            if _are_neighbours(sentences, at, at + 1):
                own[at + 1] = max(own[at], own[at + 1])
            own[at] *= _QUESTION
    scores = []
    for at, sentence in enumerate(sentences):
        beside = max((own[near] for near in (at - 1, at + 1) if _are_neighbours(sentences, at, near)), default=0.0)
        scores.append(own[at] + _NEIGHBOUR * beside + _PASSAGE / (1 + sentence.rank))
    return scores


def _weights(wanted: frozenset[str], sentences: Sequence[_Sentence]) -> dict[str, float]:
    """How rare each word of the question is among the sentences."""
    counts = Counter(key for sentence in sentences for key in sentence.keys & wanted)
    return {key: math.log(1 + len(sentences) / (1 + counts[key])) for key in wanted}


def _are_neighbours(sentences: Sequence[_Sentence], one: int, other: int) -> bool:
    return 0 <= other < len(sentences) and sentences[one].rank == sentences[other].rank


def _in_document_order(chosen: Sequence[_Sentence]) -> list[_Sentence]:
    best: dict[str, int] = {}
    for order, sentence in enumerate(chosen):
        best.setdefault(sentence.hit.source_id, order)
    return sorted(chosen, key=lambda sentence: (best[sentence.hit.source_id], sentence.place))


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
