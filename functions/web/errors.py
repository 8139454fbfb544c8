"""Maps errors to HTTP responses: problem+json (RFC 9457), and OpenAI's form under /v1/."""

from __future__ import annotations

import logging
import math
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from functions.core import errors
from functions.runtime.logging import request_id

# An error has the status of its nearest ancestor in this table.
STATUS: Final[dict[type[errors.IbidError], int]] = {
    errors.IbidError: 500,
    errors.InvalidInputError: 400,
    errors.UnsupportedTypeError: 415,
    errors.TooLargeError: 413,
    errors.NotAllowedError: 403,
    errors.NotSignedInError: 401,
    errors.NotFoundError: 404,
    errors.ConflictError: 409,
    errors.LimitReachedError: 429,
    errors.UnreadableDocumentError: 422,
    errors.UnavailableError: 503,
    errors.ModelRateLimitedError: 429,
    errors.ModelRejectedError: 502,
}
TITLES: Final = {
    400: "Not valid",
    401: "Not signed in",
    403: "Not allowed",
    404: "Not found",
    405: "Not possible here",
    408: "Too slow",
    409: "Not possible now",
    413: "Too large",
    415: "Not accepted",
    422: "Not readable",
    429: "Too many requests",
    500: "Internal error",
    502: "Refused by the model server",
    503: "Unavailable",
}

OPENAI_PREFIX: Final = "/v1/"
"""Errors of paths below it have the form that OpenAI's clients read."""
_OPENAI_TYPES: Final = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}

# The details that responses contain: the invalid fields, the conversation in which the question was saved, and how many
# documents and notes an embedding server holds.
PUBLIC_DETAILS: Final = ("faults", "conversation_id", "documents", "notes")

_log = logging.getLogger(__name__)


def status_of(error: errors.IbidError) -> int:
    """The HTTP status of an error."""
    return next(STATUS[cls] for cls in type(error).__mro__ if cls in STATUS)


def describe_problem(error: errors.IbidError) -> dict[str, Any]:
    """The problem+json body of an error."""
    body = _problem(status_of(error), error.code, error.message)
    return body | {key: error.details[key] for key in PUBLIC_DETAILS if key in error.details}


def _problem(status: int, code: str, detail: str) -> dict[str, Any]:
    return {
        "type": f"urn:ibid:error:{code}",
        "title": TITLES.get(status, "Error"),
        "status": status,
        "detail": detail,
        "code": code,
        "request_id": request_id.get(),
    }


def describe_openai_error(problem: dict[str, Any]) -> dict[str, Any]:
    """A problem in OpenAI's form: `{error: {message, type, param, code}}`; `param` is the first invalid field."""
    status, faults = problem["status"], problem.get("faults") or [{"key": None}]
    kind = _OPENAI_TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {
        "error": {"message": problem["detail"], "type": kind, "param": faults[0]["key"], "code": problem["code"]},
    }


def refuse_openai(status: int, code: str, message: str, param: str) -> JSONResponse:
    """An error response with a code of OpenAI's protocol instead of one of ours."""
    problem = _problem(status, code, message) | {"faults": [{"key": param, "message": message}]}
    return _respond(OPENAI_PREFIX, problem)


def _respond(path: str, body: dict[str, Any], headers: dict[str, str] | None = None) -> JSONResponse:
    if path.startswith(OPENAI_PREFIX):
        return JSONResponse(describe_openai_error(body), body["status"], headers)
    return JSONResponse(body, body["status"], headers, "application/problem+json")


def install(app: FastAPI) -> None:
    """Registers the handlers that turn errors of routes into responses; RequestFrame handles unexpected errors."""
    app.add_exception_handler(errors.IbidError, _on_ibid_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_exception)


def _on_ibid_error(request: Request, exc: Exception) -> JSONResponse:
    assert isinstance(exc, errors.IbidError)
    body = describe_problem(exc)
    if body["status"] >= 500:
        _log.error("request failed: %s", exc.code, exc_info=exc)
    headers = {"WWW-Authenticate": _describe_challenge(exc)} if body["status"] == 401 else {}
    if exc.retryable:
        headers["Retry-After"] = str(math.ceil(exc.details.get("retry_after", 5)))
    return _respond(request.scope["path"], body, headers)


def _describe_challenge(error: errors.IbidError) -> str:
    """The challenge of a 401; `resource_metadata` tells an OAuth client where sign-in is described (RFC 9728)."""
    address = error.details.get("resource_metadata")
    return "Bearer" if address is None else f'Bearer resource_metadata="{address}"'


def _on_invalid_request(request: Request, exc: Exception) -> JSONResponse:
    assert isinstance(exc, RequestValidationError)
    faults = [_describe_invalid_field(e) for e in exc.errors()]
    detail = "; ".join(f"{fault['key']}: {fault['message']}" for fault in faults)
    return _respond(request.scope["path"], _problem(400, "invalid_input", detail) | {"faults": faults})


def _describe_invalid_field(error: Any) -> dict[str, str]:
    if error["type"] == "json_invalid":  # its location is a character offset and no field
        return {"key": "body", "message": "The body is not valid JSON"}
    if error["type"] in ("model_attributes_type", "dict_type") and len(error["loc"]) == 1:
        return {"key": "body", "message": "Send a JSON object with Content-Type: application/json"}
    return {
        "key": ".".join(map(str, error["loc"][1:])) or "body",
        "message": error["msg"].removeprefix("Value error, "),
    }


def _on_http_exception(request: Request, exc: Exception) -> JSONResponse:
    assert isinstance(exc, HTTPException)
    return describe_http_error(request.scope["path"], exc.status_code, str(exc.detail), dict(exc.headers or {}))


def describe_http_error(path: str, status: int, detail: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """The response to a request that fails before it reaches a route."""
    descriptions = {
        400: ("invalid_input", "The body of the request cannot be read. Send JSON in UTF-8."),
        404: ("not_found", "There is no such address."),
        405: ("method_not_allowed", "This address does not accept that method."),
        408: ("request_timeout", detail),
        413: ("too_large", detail),
    }
    code, text = descriptions.get(status, ("http_error", detail))
    return _respond(path, _problem(status, code, text), headers)


def describe_unexpected_error(path: str, exc: Exception) -> JSONResponse:
    """The response to an unexpected error, which is logged with the request id."""
    _log.error("unexpected error", exc_info=exc)
    return _respond(
        path, _problem(500, "internal", "Something went wrong on our side. It has been logged under this request id.")
    )
