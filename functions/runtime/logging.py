"""JSON log lines with the id of the request. They never contain the text of a document or a question."""

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
    """One JSON object per line: time, level, logger, message, request_id and everything passed as `extra`."""

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
    """The stack trace of an exception and its causes; only our own errors keep their messages.

    Messages of libraries quote user data: a database names the refused value, a parser the line, a model server the
    prompt. Their exceptions are therefore reduced to the class and to error codes.
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
    found = {name: value for name in codes if (value := getattr(exc, name, None)) is not None}
    constraint = getattr(getattr(exc, "diag", None), "constraint_name", None)
    if constraint is not None:
        found["constraint"] = constraint
    return " ".join([kind, *(f"{name}={value}" for name, value in found.items())])


def configure(level: str) -> None:
    """Sends our log lines to stderr; calling it again only sets the level. Libraries log from WARNING on.

    On Lambda the platform's handler writes the lines of libraries, so it gets the same formatter.
    """
    logger = logging.getLogger("functions")
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(JsonFormatter())
        logger.addHandler(handler)
        logger.propagate = False
        if find_function_name() is not None:
            for platform_handler in logging.getLogger().handlers:
                platform_handler.setFormatter(JsonFormatter())
    logger.setLevel(level.upper())


def with_request_id(handler: Handler) -> Handler:
    """Wraps a handler without the web application, so that its log lines carry the id of the request or invocation."""

    @wraps(handler)
    def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
        gateway_id = event.get("requestContext", {}).get("requestId")  # also the one in the response
        token = request_id.set(gateway_id or getattr(context, "aws_request_id", None))
        try:
            return handler(event, context)
        finally:
            request_id.reset(token)

    return handle
