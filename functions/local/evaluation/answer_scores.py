"""Judges the answers that a chat model wrote, and compares the compact prompt with the full one."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from functions.core import models
from functions.core.text import sentences, words
from functions.local.evaluation import ranking_scores
from functions.local.evaluation.answering import Written
from functions.local.evaluation.scores import Goals, figure, limit

Verdict = Literal["right", "partly", "wrong", "refused", "quoted", "failed", "unjudged"]
"""`quoted`: the passages were quoted in the model's place; `unjudged`: the set knows no answer in words."""
VERDICTS: tuple[Verdict, ...] = ("right", "partly", "wrong", "refused", "quoted", "failed", "unjudged")
PARTLY = 0.5
"""The share of a gold answer's words from which one sentence says it partly."""


@dataclass(frozen=True, slots=True)
class AnswerScores:
    """The answers of one prompt to the questions of a set.

    The verdicts and citations are those of the questions that the set answers. `claims` are sections with a citation of
    high support, and `held` those of them that stand (see `count_claims`). The waits are in seconds.
    """

    verdicts: Counter[Verdict]
    unanswerable: int
    unanswerable_refused: int
    claims: int
    held: int
    verified: int
    citation_recall: float
    prompt_tokens: int
    output_tokens: int
    first_word: float
    failures: Counter[str]

    @property
    def held_share(self) -> float:
        return self.held / self.claims if self.claims else 0.0


def judge(written: Written) -> Verdict:
    """Whether the answer says a gold answer, from the words of the model alone."""
    answer, question = written.answer, written.question
    if answer is None:
        return "failed"
    if answer.mode == "guard":
        return "refused"
    if answer.mode == "extractive":
        return "quoted"
    if not question.answers:
        return "unjudged"
    share = max(_find_share(answer, gold, words.keys(question.text)) for gold in question.answers)
    return "right" if share == 1 else "partly" if share >= PARTLY else "wrong"


def _find_share(answer: models.Answer, gold: str, asked: frozenset[str]) -> float:
    """The largest share of the gold answer's words, without those of the question, that one sentence says."""
    every = frozenset(word.key for word in words.all_words(gold))
    wanted = (words.keys(gold) or every) - asked or every
    return max((len(wanted & said) / len(wanted) for said in _split(answer)), default=0.0) if wanted else 0.0


def _split(answer: models.Answer) -> Iterator[frozenset[str]]:
    """The words of each sentence; the marks of citations are no words of it."""
    for section in answer.sections:
        for start, end in sentences.split_sentences(section.text):
            yield frozenset(word.key for word in words.all_words(section.text[start:end]))


def count_claims(written: Written, verdict: Verdict) -> tuple[int, int]:
    """How many sections have a citation of high support, and how many of these stand.

    A claim stands if such a citation is of a gold unit and the answer is not wrong. Since a page that is not marked
    may say the same, the share that stands is a lower bound.
    """
    if written.answer is None or written.answer.mode != "model":
        return 0, 0
    high = {
        source.number: unit
        for source, unit in zip(written.answer.sources, written.cited, strict=True)
        if source.support == "high"
    }
    claims = [{high[number] for number in one.citations if number in high} for one in written.answer.sections]
    claims = [units for units in claims if units]
    return len(claims), sum(bool(units & written.question.gold) for units in claims) if verdict != "wrong" else 0


def score(written: Sequence[Written]) -> AnswerScores:
    """The scores of the answers that one prompt brought."""
    judged = [(one, judge(one)) for one in written]
    answerable = [(one, verdict) for one, verdict in judged if one.question.gold]
    others = [verdict for one, verdict in judged if not one.question.gold]
    claims = [count_claims(one, verdict) for one, verdict in judged]
    verified = [_find_verified(one) for one, _ in answerable]
    waits = [one.first_word for one in written if one.first_word < math.inf]
    return AnswerScores(
        Counter(verdict for _, verdict in answerable),
        len(others),
        others.count("refused"),
        sum(count for count, _ in claims),
        sum(held for _, held in claims),
        sum(map(len, verified)),
        ranking_scores.mean(
            [
                len(one.question.gold & set(units)) / len(one.question.gold)
                for (one, _), units in zip(answerable, verified, strict=True)
            ]
        ),
        sum(one.prompt_tokens for one in written),
        sum(one.output_tokens for one in written),
        statistics.median(waits) if waits else math.inf,
        Counter(one.code for one in written if one.code),
    )


def _find_verified(written: Written) -> list[Any]:
    """The unit of each citation in the model's answer whose words stand on the page."""
    if written.answer is None or written.answer.mode != "model":
        return []
    pairs = zip(written.answer.sources, written.cited, strict=True)
    return [unit for source, unit in pairs if source.check != "unverified"]


def list_figures(name: str, full: AnswerScores, compact: AnswerScores, goals: Goals) -> list[dict[str, Any]]:
    """The figures of the compact prompt, each with that of the full one as its baseline."""
    least, most = goals.compact_at_least, goals.compact_at_most
    rows = [
        figure("right answers", compact.verdicts["right"], full.verdicts["right"], least.get("right")),
        figure("verified citations", compact.verified, full.verified, least.get("verified")),
        figure("citation recall", compact.citation_recall, full.citation_recall, None),
        figure("claims of high support that stand", compact.held_share, full.held_share, None),
        _at_most("output tokens", compact.output_tokens, full.output_tokens, most.get("output")),
        figure("prompt tokens", compact.prompt_tokens, full.prompt_tokens, None),
        limit("answers that failed", sum(one.verdicts["failed"] for one in (full, compact)), 0),
    ]
    return [row | {"figure": f"{name}: compact prompt, {row['figure']}"} for row in rows]


def _at_most(name: str, value: float, baseline: float, goal: float | None) -> dict[str, Any]:
    """A figure whose ratio to its baseline must not exceed `goal`; None where it is only reported."""
    return figure(name, value, baseline, goal) | {"ok": goal is None or value <= goal * baseline}
