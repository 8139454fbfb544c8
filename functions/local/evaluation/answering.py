"""Lets a chat model answer the questions of a set, once with each prompt over the same passages: `eval SET --answers`.

The model is the one that OPENAI_BASE_URL and CHAT_MODEL name, reached and limited as in the product; no tools are
offered, with which it could read other passages.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from functions.adapters.models import model_server
from functions.core import errors, models, ports
from functions.core.answering import answers
from functions.core.answering.model_writer import TextDelta, TimeLimits
from functions.core.text.token_estimate import estimate_tokens
from functions.local.evaluation import asking, question_sets
from functions.runtime.config import Config
from functions.runtime.services import Services

PROFILES: Final[tuple[models.PromptProfile, ...]] = ("full", "compact")
FAR_REQUESTS: Final = 4
"""Questions asked at the same time of a server elsewhere; a near one is asked how many it takes."""

_REFUSAL: Final = models.Answer("", (), (), "guarded", "guard")


@dataclass(frozen=True, slots=True)
class Written:
    """What came of one question with one prompt.

    `cited` are the units that `answer.sources` stand in, in the same order. The tokens are those that the server
    counted, or estimates. `first_word` is in seconds, infinite if the model wrote none. `failure` is the code of the
    error that the reader would have got in place of an answer.
    """

    question: question_sets.Question
    profile: models.PromptProfile
    answer: models.Answer | None
    cited: tuple[question_sets.Unit, ...] = ()
    prompt_tokens: int = 0
    output_tokens: int = 0
    first_word: float = math.inf
    reply: str = ""
    failure: str | None = None

    @property
    def code(self) -> str | None:
        """The code of the error that kept the model from answering, whether the passages were quoted instead or not."""
        return self.failure or (self.answer.degraded if self.answer else None)


@dataclass(frozen=True, slots=True)
class Examinee:
    """The chat model, how long a reader waits for its first word, and how many questions it is asked at a time."""

    model: ports.ChatModel
    first_word_seconds: float
    parallel: int


@dataclass(frozen=True, slots=True)
class Record:
    """A file that gets a line for each question at once, so that an interrupted measurement keeps those it has.

    A line holds what the model was given and what it wrote, so that the answers can be made again without the model.
    """

    path: Path

    def add(self, found: asking.Found, written: Sequence[Written]) -> None:
        """Adds a question with its gold answers and units, its passages, and the reply to each prompt."""
        question = found.question
        row = {
            "query_id": question.id,
            "question": question.text,
            "lang": found.lang,
            "answers": question.answers,
            "gold": sorted(question.gold, key=str),
            "is_refused": found.is_refused,
            "passages": [asdict(hit) | {"unit": found.units[hit.segment_id]} for hit in found.context],
            "replies": {one.profile: {"text": one.reply, "code": one.code} for one in written},
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def open_model(config: Config, parallel: int | None = None) -> Examinee:
    """The model of the environment; raises ConflictError when it names none."""
    services = Services(config)
    if services.chat_model is None:
        raise errors.ConflictError("CHAT_MODEL is not set, so no model can answer. Set it, and OPENAI_BASE_URL.")
    return Examinee(services.chat_model, services.first_word_seconds, parallel or _count_requests(services))


def _count_requests(services: Services) -> int:
    address = services.config.openai_base_url
    if address is None or not model_server.is_near(address):
        return FAR_REQUESTS
    return model_server.ask_slots(address, services.chat_key) or 1


def answer_all(examinee: Examinee, found: Sequence[asking.Found], record: Record | None = None) -> Iterator[Written]:
    """Answers every question with each prompt, several questions at a time, and yields the results in order."""
    with ThreadPoolExecutor(examinee.parallel, thread_name_prefix="ibid-eval") as threads:
        results = threads.map(partial(_answer_with_each, examinee), found)
        for one, written in zip(found, results, strict=True):
            if record is not None:
                record.add(one, written)
            yield from written


def _answer_with_each(examinee: Examinee, found: asking.Found) -> list[Written]:
    return [answer(examinee, found, profile) for profile in PROFILES]


def answer(examinee: Examinee, found: asking.Found, profile: models.PromptProfile) -> Written:
    """Answers one question with one prompt; a question that the guard refuses is not sent to the model."""
    if found.is_refused:
        return Written(found.question, profile, _REFUSAL)
    recorder, ready, failure = _Recorder(examinee.model), None, None
    started = time.monotonic()
    first_word = math.inf
    try:
        for item in answers.answer_question(
            found.question.text,
            found.context,
            lang=found.lang,
            history=[],
            chat_model=recorder,
            profile=profile,
            limits=TimeLimits(examinee.first_word_seconds),
        ):
            if isinstance(item, TextDelta):
                first_word = min(first_word, time.monotonic() - started)
            else:
                ready = item.answer
    except errors.UnavailableError as exc:
        failure = exc.code if ready is None else None  # a model that fails after some text leaves an answer
    usage = ready.usage if ready else models.Usage()
    return Written(
        found.question,
        profile,
        ready,
        tuple(found.units[f"{one.source_id}:{one.chunk_index}"] for one in ready.sources) if ready else (),
        usage.prompt_tokens or estimate_tokens(recorder.prompt),
        usage.completion_tokens or estimate_tokens("".join(recorder.pieces)),
        first_word if ready and ready.mode == "model" else math.inf,
        "".join(recorder.pieces),
        failure,
    )


@dataclass(slots=True)
class _Recorder:
    """A chat model that keeps the prompt and the reply of one answer."""

    model: ports.ChatModel
    prompt: str = ""
    pieces: list[str] = field(default_factory=list)
    takes_tools: bool = False

    def stream(self, messages: Sequence[ports.ChatMessage], **fields: Any) -> _Recording:
        self.prompt = "\n".join(message.content for message in messages)
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
