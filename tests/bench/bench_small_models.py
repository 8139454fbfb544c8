"""Compares the compact prompt with the full one: `OPENAI_BASE_URL=… CHAT_MODEL=… make bench-small_models`.

The model server is not part of the project: llama.cpp, Ollama or any other, with a model of up to about 2 billion
parameters. Both prompts get the same passages of the question set `xquad_en` (`IBID_EVAL_DATA`), ranked by the words
that they share with the question, and the same limit of output. `--limit N` sets the number of questions (30). Prints a
table and, as the last line, a JSON object.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from functions.adapters.models.openai_chat import OpenAIChatModel
from functions.core import errors, models, ports
from functions.core.answering import answers
from functions.core.answering.model_writer import TextDelta, TimeLimits
from functions.core.text import words
from functions.core.text.token_estimate import estimate_tokens
from functions.local.evaluation import question_sets
from tests.bench.report import at_most, figure, print_figures
from tests.support.fakes.search_hits import make_hit

PASSAGES = 8
MAX_OUTPUT_TOKENS = 400
FIRST_WORD_SECONDS = 300.0
PROFILES: tuple[models.PromptProfile, ...] = ("full", "compact")


@dataclass(slots=True)
class Recorder:
    """A chat model that keeps the prompt and the reply of one answer, whatever the server says of its tokens."""

    model: OpenAIChatModel
    read: str = ""
    pieces: list[str] = field(default_factory=list)
    takes_tools: bool = False

    def stream(self, messages: Sequence[ports.ChatMessage], **fields: Any) -> _Recording:
        self.read = "\n".join(message.content for message in messages)
        return _Recording(self.model.stream(messages, **fields), self.pieces)


class _Recording:
    """A stream whose pieces are kept."""

    def __init__(self, stream: ports.ChatStream, pieces: list[str]) -> None:
        self._stream, self._pieces = stream, pieces
        self.close = stream.close
        self.tool_calls = ()

    @property
    def usage(self) -> models.Usage:
        return self._stream.usage

    def __iter__(self) -> Iterator[str]:
        for piece in self._stream:
            self._pieces.append(piece)
            yield piece


@dataclass(frozen=True, slots=True)
class Outcome:
    """One answer: whether it holds the gold answer, its verified citations, estimated tokens, and seconds."""

    is_right: bool
    verified: int
    prompt_tokens: int
    output_tokens: int
    first_word: float
    mode: str
    reply: str


def rank_passages(
    passages: Sequence[question_sets.Passage], questions: Sequence[question_sets.Question]
) -> list[list[models.SearchHit]]:
    """For each question, the passages with most of its words, rare words first."""
    keys = [words.keys(passage.text) for passage in passages]
    counts = Counter(word for found in keys for word in found)
    ranked = []
    for question in questions:
        asked = words.keys(question.text)
        scores = [sum(math.log(len(passages) / counts[word]) for word in asked & found) for found in keys]
        best = sorted(range(len(passages)), key=lambda at: -scores[at])[:PASSAGES]
        ranked.append([make_hit(passages[at].text, document=f"d{at}") for at in best])
    return ranked


def ask(
    model: OpenAIChatModel,
    question: question_sets.Question,
    hits: list[models.SearchHit],
    profile: models.PromptProfile,
) -> Outcome:
    recorder = Recorder(model)
    started, first_word, answer = time.monotonic(), math.inf, None
    limits = TimeLimits(FIRST_WORD_SECONDS)
    try:
        for item in answers.answer_question(
            question.text, hits, lang="en", history=[], chat_model=recorder, profile=profile, limits=limits
        ):
            if isinstance(item, TextDelta):
                first_word = min(first_word, time.monotonic() - started)
            else:
                answer = item.answer
    except errors.UnavailableError as exc:
        print(f"{question.id}: {exc.message}", file=sys.stderr)
    is_written = answer is not None and answer.mode == "model"
    text = answer.answer if answer is not None and is_written else ""
    checks = [source.check for source in answer.sources] if answer is not None and is_written else []
    return Outcome(
        is_right=any(re.search(rf"(?<!\w){re.escape(gold)}(?!\w)", text, re.IGNORECASE) for gold in question.answers),
        verified=sum(check != "unverified" for check in checks),
        prompt_tokens=estimate_tokens(recorder.read),
        output_tokens=estimate_tokens("".join(recorder.pieces)),
        first_word=first_word,
        mode=answer.mode if answer is not None else "failed",
        reply="".join(recorder.pieces),
    )


def compare(outcomes: dict[str, list[Outcome]]) -> list[dict[str, Any]]:
    """The figures of the compact profile, each with that of the full one as its baseline."""
    full, compact = outcomes["full"], outcomes["compact"]

    def total(of: list[Outcome], name: str) -> float:
        return float(sum(getattr(outcome, name) for outcome in of))

    def median_wait(of: list[Outcome]) -> float:
        return round(statistics.median(outcome.first_word for outcome in of), 2)

    return [
        figure("right answers", total(compact, "is_right"), total(full, "is_right"), 1.0),
        figure("verified citations", total(compact, "verified"), total(full, "verified"), 2.0),
        at_most("output tokens", total(compact, "output_tokens"), total(full, "output_tokens"), 0.6),
        at_most("prompt tokens", total(compact, "prompt_tokens"), total(full, "prompt_tokens"), 0.6),
        at_most("first word, median s", median_wait(compact), median_wait(full)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=30)
    parser.add_argument("--verbose", action="store_true", help="prints each answer")
    options = parser.parse_args()
    base_url, name = os.environ.get("OPENAI_BASE_URL"), os.environ.get("CHAT_MODEL")
    if not (base_url and name and os.environ.get("IBID_EVAL_DATA")):
        print("MISSING: OPENAI_BASE_URL, CHAT_MODEL or IBID_EVAL_DATA is not set, so nothing was measured")
        return
    asked = question_sets.read_set("xquad_en", limit=options.limit)
    model = OpenAIChatModel(
        model=name,
        base_url=base_url,
        api_key=os.environ.get("OPENAI_API_KEY"),
        max_tokens=MAX_OUTPUT_TOKENS,
        read_seconds=FIRST_WORD_SECONDS,
    )
    outcomes: dict[str, list[Outcome]] = {profile: [] for profile in PROFILES}
    for question, hits in zip(asked.questions, rank_passages(asked.passages, asked.questions), strict=True):
        for profile in PROFILES:
            outcome = ask(model, question, hits, profile)
            outcomes[profile].append(outcome)
            if options.verbose:
                print(f"{profile:8}{outcome.mode:12}{outcome.is_right!s:6}{outcome.verified:3} {question.text}")
                print(f"    {outcome.output_tokens} tokens: {outcome.reply!r}", flush=True)
    print(f"{len(asked.questions)} questions to {name}; the baseline is the full prompt")
    print_figures("small_models", compare(outcomes))


if __name__ == "__main__":
    main()
