"""Builds the ASGI app of one function: its routes, request ids, security headers, errors as problems."""

from __future__ import annotations

import json
import logging
import math
import os
import re
import time
import uuid

import anyio
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from functions.runtime import metrics
from functions.runtime.config import find_function_name
from functions.runtime.logging import request_id
from functions.runtime.services import Services
from functions.web import errors

MAX_BODY_BYTES = 1024 * 1024  # JSON bodies only; files go straight to storage
BODY_SECONDS = 20.0
BODY_BYTES_PER_SECOND = 20_000
"""A body must arrive in `BODY_SECONDS`, and a second more for each of these bytes."""

_TOO_LARGE = (
    f"The request is larger than {MAX_BODY_BYTES} bytes. Upload files and longer texts to the signed URL of a document."
)
_TOO_SLOW = "The body of the request did not arrive in time. Send it again."
_REQUEST_ID = re.compile(r"[A-Za-z0-9_.=-]{8,64}")
_log = logging.getLogger(__name__)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
# Pages of any host may call /v1: every caller sends a token, and there are no cookies that a foreign page could use.
_CORS_HEADERS = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"x-request-id, retry-after"),
]
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
]


def create_app(*routers: APIRouter, services: Services | None = None) -> FastAPI:
    """The app with these routes; without `services`, the first request creates them from the environment."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, generate_unique_id_function=_name_operation)
    app.state.services = services
    app.state.readiness = None
    for router in routers:
        app.include_router(router)
    errors.install(app)
    app.add_middleware(RequestFrame)
    return app


def _name_operation(route: APIRoute) -> str:
    """The name of a route for generated clients: that of its module and of its function."""
    return f"{route.endpoint.__module__.rpartition('.')[2]}_{route.name}"


class BrokenOffError(Exception):
    """Raised to the server when a response fails after its start; the log line before it has the cause."""


class RequestFrame:
    """Sets the request id and the response headers, refuses oversized and slow bodies, counts requests.

    Plain ASGI, because Starlette's BaseHTTPMiddleware buffers responses that should stream. CORS is part of it,
    because pages of other hosts must be able to read the 413 and 500 responses that are made here.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        is_head = scope["method"] == "HEAD"
        if is_head:  # answered as GET without the body (RFC 9110, 9.3.2); FastAPI has no routes for HEAD
            scope = {**scope, "method": "GET"}
        headers = {name: value for name, value in scope["headers"]}
        chosen_id = _choose_request_id(scope, headers)
        token = request_id.set(chosen_id)
        began = time.perf_counter()
        started, status = False, 500

        async def send_framed(message: Message) -> None:
            nonlocal started, status
            if message["type"] == "http.response.start":
                started, status = True, message["status"]
                message["headers"] = [*message["headers"], *_HEADERS, (b"x-request-id", chosen_id.encode())]
                message["headers"] += _CORS_HEADERS if _is_open_to_all_hosts(scope["path"]) else []
            elif is_head:
                message["body"] = b""
            await send(message)

        try:
            if _is_cors_preflight(scope, headers):
                await _answer_preflight(headers)(scope, receive, send_framed)
            elif _is_too_large(scope["path"], headers):
                await errors.describe_http_error(scope["path"], 413, _TOO_LARGE)(scope, receive, send_framed)
            else:
                await self.app(scope, _limit_body(scope["path"], receive), send_framed)
        except Exception as exc:
            if started:  # too late for an error response: the server cuts the connection and logs what is raised here
                _log.error("a response was cut off by an unexpected error", exc_info=exc)
                raise BrokenOffError from None
            await errors.describe_unexpected_error(scope["path"], exc)(scope, receive, send_framed)
        finally:
            metrics.record_request(*_describe_route(scope), status, time.perf_counter() - began)
            request_id.reset(token)


def _is_cors_preflight(scope: Scope, headers: dict[bytes, bytes]) -> bool:
    """Whether a browser asks if a page of another host may send its request."""
    is_preflight = scope["method"] == "OPTIONS" and b"access-control-request-method" in headers
    return is_preflight and _is_open_to_all_hosts(scope["path"])


def _is_open_to_all_hosts(path: str) -> bool:
    """False behind a Function URL, which adds the same headers: browsers refuse a response that has them twice."""
    return path.startswith(errors.OPENAI_PREFIX) and "AWS_LWA_PORT" not in os.environ


def _answer_preflight(headers: dict[bytes, bytes]) -> Response:
    requested = headers.get(b"access-control-request-headers", b"authorization, content-type").decode("latin-1")
    allowed = {"Access-Control-Allow-Methods": "GET, POST", "Access-Control-Allow-Headers": requested}
    return Response(status_code=204, headers=allowed | {"Access-Control-Max-Age": "86400"})


def _describe_route(scope: Scope) -> tuple[str, str]:
    """Method and route as metric labels; the route is a pattern, because paths contain ids."""
    route = getattr(scope.get("route"), "path", "none")
    return scope["method"] if scope["method"] in _METHODS else "other", route


def _choose_request_id(scope: Scope, headers: dict[bytes, bytes]) -> str:
    """The client's id if it sent a valid one, else the id in the gateway's log, else a new one."""
    sent = headers.get(b"x-request-id", b"").decode("latin-1")
    return next(filter(_REQUEST_ID.fullmatch, (sent, _read_gateway_id(scope, headers))), uuid.uuid4().hex)


def _read_gateway_id(scope: Scope, headers: dict[bytes, bytes]) -> str:
    """The id in Mangum's copy of the event, or in the header that the Lambda Web Adapter adds; "" for none."""
    if find_function_name() is None:
        return ""
    try:
        context = json.loads(headers.get(b"x-amzn-request-context", b"{}"))
        context = scope.get("aws.event", {}).get("requestContext", context)
        return str(context.get("requestId", ""))
    except (ValueError, AttributeError):
        return ""


def _is_too_large(path: str, headers: dict[bytes, bytes]) -> bool:
    length = headers.get(b"content-length", b"0")
    return not path.startswith("/storage/") and length.isdigit() and int(length) > MAX_BODY_BYTES


def _limit_body(path: str, receive: Receive) -> Receive:
    """Limits the time that a body takes, and the size of one that is sent in pieces, without a Content-Length."""
    max_bytes = math.inf if path.startswith("/storage/") else MAX_BODY_BYTES
    began: float | None = None
    received, is_complete = 0, False

    async def receive_limited() -> Message:
        nonlocal began, received, is_complete
        if is_complete:  # what follows is the end of the connection, for which a stream waits
            return await receive()
        began = began or time.monotonic()
        left = began + BODY_SECONDS + received / BODY_BYTES_PER_SECOND - time.monotonic()
        try:
            with anyio.fail_after(left):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408, _TOO_SLOW) from None
        received += len(message.get("body", b""))
        is_complete = not message.get("more_body", False)
        if received > max_bytes:
            raise HTTPException(413, _TOO_LARGE)
        return message

    return receive_limited
