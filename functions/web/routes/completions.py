"""OpenAI's chat completions, so that its clients can ask the library, which is the only model, `ibid`.

Requests, responses, streams and errors have OpenAI's form. The field `ibid` holds what that protocol lacks: the scope
in a request (schemas.completions.Library), and the fields of `_IBID_FIELDS` in a response. Nothing is saved: the client
keeps the conversation and sends it with each question.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response

from functions.core import errors, models
from functions.core.answering import export, follow_ups
from functions.runtime import asking
from functions.web import sse
from functions.web.deps import Asker, Caller, Deadline, ServicesDep
from functions.web.errors import describe_openai_error, describe_problem, refuse_openai
from functions.web.routes.chat import describe_answer
from functions.web.schemas import answers, completion_text, completions

router = APIRouter(prefix="/v1")

MODEL: Final = "ibid"
_MODEL_OBJECT: Final = {"id": MODEL, "object": "model", "created": 1_795_219_200, "owned_by": "ibid"}
_IBID_FIELDS: Final = (
    "sections",
    "sources",
    "scope",
    "mode",
    "status",
    "degraded",
    "search_degraded",
    "search_query",
    "translated_query",
)

Events = Generator[asking.Opened | asking.TextDelta | asking.Answered, None, None]

_log = logging.getLogger(__name__)


@router.get("/models", response_model=answers.ModelList)
def list_models(_: Caller) -> dict[str, Any]:
    return {"object": "list", "data": [_MODEL_OBJECT]}


@router.get("/models/{model}", response_model=answers.ModelObject)
def get_model(model: str, _: Caller) -> Response:
    return JSONResponse(_MODEL_OBJECT) if model == MODEL else _refuse_model(model)


@router.post(
    "/chat/completions",
    response_model=answers.ChatCompletion,
    responses=sse.RESPONSES | {404: {}, 409: {}},
)
def complete(body: completions.Completion, user: Asker, services: ServicesDep, deadline: Deadline) -> Response:
    if body.model != MODEL:
        return _refuse_model(body.model)
    question = _read_question(body)
    reply = _Reply(
        lang="fr" if follow_ups.find_language(body.question, body.history) == "fr" else "en",
        lists_sources=body.ibid.list_sources,
        counts_tokens=bool(body.stream_options and body.stream_options.include_usage),
    )
    events = asking.ask(services, user, question, deadline)
    # The first event comes after the scope was checked, so a wrong request still gets its own HTTP status.
    next(events)
    if body.stream:
        return sse.EventStream(_describe_chunks(reply, events), end="data: [DONE]\n\n")  # also after an error
    *_, last = events
    assert isinstance(last, asking.Answered)
    return JSONResponse(reply.describe_whole(last))


def _refuse_model(name: str) -> Response:
    return refuse_openai(
        404, "model_not_found", f"There is no model {name[:100]!r}. Use {MODEL!r}, which is the library.", "model"
    )


def _read_question(body: completions.Completion) -> asking.Question:
    scope = body.ibid
    return asking.Question(
        query_text=body.question,
        document_ids=tuple(str(document_id) for document_id in dict.fromkeys(scope.document_ids)),
        notebook_id=None if scope.notebook_id is None else str(scope.notebook_id),
        note_id=None if scope.note_id is None else str(scope.note_id),
        filters=scope.filters.as_dict(),
        history=body.history,
    )


@dataclass(frozen=True, slots=True)
class _Reply:
    """Writes one completion, as a whole or in chunks that share its id."""

    lang: export.Language
    lists_sources: bool
    counts_tokens: bool
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))

    def describe_whole(self, answered: asking.Answered) -> dict[str, Any]:
        answer = answered.answer
        message = {"role": "assistant", "content": answer.answer + self._list_sources(answer), "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(answer)}
        return {
            **self._head("chat.completion"),
            "choices": [choice],
            "usage": _describe_usage(answer.usage),
            "ibid": _describe_ibid_fields(answered),
        }

    def describe_chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        usage: dict[str, Any] = {"usage": None} if self.counts_tokens else {}
        return {**self._head("chat.completion.chunk"), "choices": [choice], **usage}

    def describe_end(self, answered: asking.Answered) -> Iterator[dict[str, Any]]:
        """The last chunks: the sources as text, the finish reason with the field `ibid`, and the usage."""
        answer = answered.answer
        if listed := self._list_sources(answer):
            yield self.describe_chunk({"content": listed})
        yield {**self.describe_chunk({}, _finish_reason(answer)), "ibid": _describe_ibid_fields(answered)}
        if self.counts_tokens:
            usage = _describe_usage(answer.usage)
            yield {**self._head("chat.completion.chunk"), "choices": [], "usage": usage}

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": MODEL}

    def _list_sources(self, answer: models.Answer) -> str:
        return completion_text.list_sources(answer, self.lang) if self.lists_sources else ""


def _describe_chunks(reply: _Reply, events: Events) -> Iterator[dict[str, Any]]:
    with closing(events):
        try:
            yield reply.describe_chunk({"role": "assistant", "content": ""})
            for event in events:
                if isinstance(event, asking.TextDelta):
                    yield reply.describe_chunk({"content": event.text})
                elif isinstance(event, asking.Answered) and event.failure is not None:
                    _log.warning("a completion was interrupted: %s", event.failure.code)
                    yield describe_openai_error(describe_problem(event.failure))
                elif isinstance(event, asking.Answered):
                    yield from reply.describe_end(event)
        except errors.IbidError as exc:
            _log.warning("a completion was interrupted: %s", exc.code)
            yield describe_openai_error(describe_problem(exc))
        except Exception:
            _log.exception("a completion was interrupted by an unexpected error")
            yield describe_openai_error(describe_problem(errors.IbidError()))


def _finish_reason(answer: models.Answer) -> str:
    """`length` for an interrupted answer, else `stop`, also when the answer is that the library has none."""
    return "length" if answer.status == "interrupted" else "stop"


def _describe_usage(usage: models.Usage) -> dict[str, int]:
    """The tokens that the model server counted; 0 if it counted none or no model was used."""
    prompt, completion = usage.prompt_tokens or 0, usage.completion_tokens or 0
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _describe_ibid_fields(answered: asking.Answered) -> dict[str, Any]:
    described = describe_answer(answered)
    described |= {"degraded": answered.answer.degraded, "search_degraded": described["degraded"]}
    return {name: described[name] for name in _IBID_FIELDS}
