"""JSON log lines with the request's id; never the text of a document or a question."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import wraps
from typing import Any

from functions.core import errors
from functions.runtime.config import find_function_name

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, request_id, whatever was passed as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": request_id.get(),
        }
        line |= {key: value for key, value in vars(record).items() if key not in _STANDARD}
        if record.exc_info and record.exc_info[1] is not None:
            line["exception"] = describe_exception(record.exc_info[1])
        return json.dumps(line, default=str)


def describe_exception(exc: BaseException) -> str:
    """The stack trace, with the messages of our own errors and none of others', which quote what they could not take.

    A database names the value it refused, a parser the line, a model server the prompt. Of those stay the kind, and the
    codes by which they can be looked up.
    """
    lines: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = exc
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        frames = traceback.format_list(traceback.extract_tb(current.__traceback__))
        lines = [*frames, f"{_describe_kind(current)}\n", *(["caused:\n"] if lines else []), *lines]
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return "".join(lines)


def _describe_kind(exc: BaseException) -> str:
    kind = f"{type(exc).__module__}.{type(exc).__qualname__}"
    if isinstance(exc, errors.IbidError):
        return f"{kind}: {exc.message}"
    codes = ("sqlstate", "errno", "strerror", "status_code")
    known = {name: value for name in codes if (value := getattr(exc, name, None)) is not None}
    constraint = getattr(getattr(exc, "diag", None), "constraint_name", None)
    if constraint is not None:
        known["constraint"] = constraint
    return " ".join([kind, *(f"{name}={value}" for name, value in known.items())])


def configure(level: str) -> None:
    """Sends our log lines to stderr, once; what other libraries log below WARNING stays silent.

    On Lambda the platform's own handler writes what the others log: in the same form, then.
    """
    logger = logging.getLogger("functions")
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(JsonFormatter())
        logger.addHandler(handler)
        logger.propagate = False
        if find_function_name() is not None:
            for foreign in logging.getLogger().handlers:
                foreign.setFormatter(JsonFormatter())
    logger.setLevel(level.upper())


def with_request_id(handler: Handler) -> Handler:
    """A function without the web application: its lines carry the gateway's id of the request, or the invocation's."""

    @wraps(handler)
    def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
        called = event.get("requestContext", {}).get("requestId")  # the one that its answer names
        token = request_id.set(called or getattr(context, "aws_request_id", None))
        try:
            return handler(event, context)
        finally:
            request_id.reset(token)

    return handle
