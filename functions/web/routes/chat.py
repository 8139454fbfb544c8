"""Answers a question with citations: as JSON, or as a stream while the answer is written."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response

from functions.core import errors, models
from functions.core.citations.description import describe_citation, describe_section
from functions.runtime import asking, metrics
from functions.web import sse
from functions.web.deps import Asker, Deadline, ServicesDep
from functions.web.errors import describe_problem
from functions.web.schemas import requests
from functions.web.schemas.answers import Answer

router = APIRouter(prefix="/api/rag/chat")

_log = logging.getLogger(__name__)


@router.post("", response_model=Answer, responses=sse.RESPONSES | {404: {}, 409: {}})
def ask(body: requests.Question, user: Asker, services: ServicesDep, deadline: Deadline) -> Response:
    """Answers a question with citations, or with `stream` as server-sent events while the answer is written."""
    question = asking.Question(
        query_text=body.query,
        conversation_id=_text(body.conversation_id),
        document_ids=tuple(str(i) for i in dict.fromkeys(body.document_ids)),
        notebook_id=_text(body.notebook_id),
        note_id=_text(body.note_id),
        whole_library=body.scope == "library",
        filters=body.filters.as_dict(),
        replaces=_text(body.replaces),
    )
    events = asking.ask(services, user, question, deadline)
    # The first event comes before the response starts, so a wrong request still gets its own HTTP status.
    opened = next(events)
    assert isinstance(opened, asking.Opened)
    if body.stream:
        return sse.EventStream(_describe_events(opened, events))
    try:
        *_, last = events
    except errors.IbidError as exc:
        exc.details["conversation_id"] = opened.conversation_id
        raise
    assert isinstance(last, asking.Answered)
    failure = {} if last.failure is None else {"error": describe_problem(last.failure)}
    return JSONResponse(describe_answer(last) | failure)


def describe_answer(answered: asking.Answered) -> dict[str, Any]:
    """The body of a finished answer."""
    answer = answered.answer
    return {
        "conversation_id": answered.conversation_id,
        "question_id": answered.question_id,
        "message_id": answered.message_id,
        "answer": answer.answer,
        "sections": [describe_section(section) for section in answer.sections],
        "sources": [describe_citation(citation) for citation in answer.sources],
        "scope": describe_scope(answered.scope),
        "status": answer.status,
        "mode": answer.mode,
        "usage": metrics.describe_usage(answer, answered.cost),
        "search_query": answered.search_query,
        "translated_query": answered.translated_query,
        "degraded": list(answered.degraded),
        "suggestions": list(answered.suggestions),
    }


def describe_scope(scope: models.Scope) -> dict[str, Any]:
    """The scope without its empty fields."""
    return {key: value for key, value in asdict(scope).items() if value}


def _describe_events(
    opened: asking.Opened | asking.TextDelta | asking.Answered,
    events: Iterator[asking.Opened | asking.TextDelta | asking.Answered],
) -> Iterator[dict[str, Any]]:
    assert isinstance(opened, asking.Opened)
    ids = {"conversation_id": opened.conversation_id, "question_id": opened.question_id}
    yield {"meta": ids | {"scope": describe_scope(opened.scope)}}
    try:
        for event in events:
            if isinstance(event, asking.TextDelta):
                yield {"text": event.text}
            elif isinstance(event, asking.Answered) and event.failure is not None:
                _log.warning("an answer was interrupted: %s", event.failure.code)
                yield {"error": describe_problem(event.failure)}
            elif isinstance(event, asking.Answered):
                yield {"done": True, **describe_answer(event)}
    except errors.IbidError as exc:
        _log.warning("an answer was interrupted: %s", exc.code)
        yield {"error": describe_problem(exc)}
    except Exception:
        _log.exception("an answer was interrupted by an unexpected error")
        yield {"error": describe_problem(errors.IbidError("Something went wrong on our side. The question is saved."))}
    finally:
        close = getattr(events, "close", None)
        if close is not None:
            close()


def _text(value: object) -> str | None:
    return None if value is None else str(value)
