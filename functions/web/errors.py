"""Every error as problem+json (RFC 9457), and under /v1/ in OpenAI's form: the one table from classes to statuses."""

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

# The nearest ancestor in this table decides.
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
_TITLES: Final = {
    400: "Not valid",
    401: "Not signed in",
    403: "Not allowed",
    404: "Not found",
    405: "Not possible here",
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
"""Below it, errors have the form that OpenAI's clients read."""
_OPENAI_TYPES: Final = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}

# Details of an error that its reader can use: what is wrong where, and which conversation keeps the question.
_TOLD: Final = ("faults", "conversation_id")

_log = logging.getLogger(__name__)


def status_of(error: errors.IbidError) -> int:
    """The HTTP status of an error."""
    return next(STATUS[cls] for cls in type(error).__mro__ if cls in STATUS)


def describe_problem(error: errors.IbidError) -> dict[str, Any]:
    """The problem+json body of an error."""
    body = _problem(status_of(error), error.code, error.message)
    return body | {key: error.details[key] for key in _TOLD if key in error.details}


def _problem(status: int, code: str, detail: str) -> dict[str, Any]:
    return {
        "type": f"urn:ibid:error:{code}",
        "title": _TITLES.get(status, "Error"),
        "status": status,
        "detail": detail,
        "code": code,
        "request_id": request_id.get(),
    }


def describe_openai_error(problem: dict[str, Any]) -> dict[str, Any]:
    """A problem in OpenAI's form: `{error: {message, type, param, code}}`; `param` is the first field at fault."""
    status, faults = problem["status"], problem.get("faults") or [{"key": None}]
    kind = _OPENAI_TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {
        "error": {"message": problem["detail"], "type": kind, "param": faults[0]["key"], "code": problem["code"]},
    }


def refuse_openai(status: int, code: str, message: str, param: str) -> JSONResponse:
    """A refusal whose code is of OpenAI's protocol and not one of ours."""
    problem = _problem(status, code, message) | {"faults": [{"key": param, "message": message}]}
    return _respond(OPENAI_PREFIX, problem)


def _respond(path: str, body: dict[str, Any], headers: dict[str, str] | None = None) -> JSONResponse:
    if path.startswith(OPENAI_PREFIX):
        return JSONResponse(describe_openai_error(body), body["status"], headers)
    return JSONResponse(body, body["status"], headers, "application/problem+json")


def install(app: FastAPI) -> None:
    """Answers what a route raises as a problem; what nobody foresaw is left to the outermost frame of the app."""
    app.add_exception_handler(errors.IbidError, _on_ibid_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_exception)


def _on_ibid_error(request: Request, exc: Exception) -> JSONResponse:
    assert isinstance(exc, errors.IbidError)
    body = describe_problem(exc)
    if body["status"] >= 500:
        _log.error("request failed: %s", exc.code, exc_info=exc)
    headers = {"WWW-Authenticate": "Bearer"} if body["status"] == 401 else {}
    if exc.retryable:
        headers["Retry-After"] = str(math.ceil(exc.details.get("retry_after", 5)))
    return _respond(request.scope["path"], body, headers)


def _on_invalid_request(request: Request, exc: Exception) -> JSONResponse:
    assert isinstance(exc, RequestValidationError)
    faults = [_describe_fault_of(e) for e in exc.errors()]
    detail = "; ".join(f"{fault['key']}: {fault['message']}" for fault in faults)
    return _respond(request.scope["path"], _problem(400, "invalid_input", detail) | {"faults": faults})


def _describe_fault_of(error: Any) -> dict[str, str]:
    if error["type"] == "json_invalid":  # its place is a count of characters
        return {"key": "body", "message": "The body is not valid JSON"}
    if error["type"] in ("model_attributes_type", "dict_type") and len(error["loc"]) == 1:
        return {"key": "body", "message": "Send a JSON object, with Content-Type: application/json"}
    return {
        "key": ".".join(map(str, error["loc"][1:])) or "body",
        "message": error["msg"].removeprefix("Value error, "),
    }


def _on_http_exception(request: Request, exc: Exception) -> JSONResponse:
    assert isinstance(exc, HTTPException)
    return describe_http_error(request.scope["path"], exc.status_code, str(exc.detail), dict(exc.headers or {}))


def describe_http_error(path: str, status: int, detail: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """The answer to what is wrong with a request as such, before any route has looked at it."""
    known = {
        400: ("invalid_input", "The body of the request cannot be read: it is not JSON in UTF-8."),
        404: ("not_found", "There is no such address."),
        405: ("method_not_allowed", "This address does not take that method."),
        413: ("too_large", detail),
    }
    code, text = known.get(status, ("http_error", detail))
    return _respond(path, _problem(status, code, text), headers)


def describe_fault(path: str, exc: Exception) -> JSONResponse:
    """The answer to what nobody foresaw; what it was stands in the log, under the request's id."""
    _log.error("unhandled fault", exc_info=exc)
    return _respond(
        path, _problem(500, "internal", "Something went wrong on our side. It has been logged under this request id.")
    )
