"""Builds the ASGI app of one function: its routes, request ids, security headers, errors as problems."""

from __future__ import annotations

import json
import logging
import os
import re
import time
import uuid

from fastapi import APIRouter, FastAPI
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from functions.runtime import metrics
from functions.runtime.config import find_function_name
from functions.runtime.logging import request_id
from functions.runtime.services import Services
from functions.web import errors

MAX_BODY_BYTES = 1024 * 1024  # JSON bodies only; files go straight to storage

_TOO_LARGE = (
    f"The request is larger than {MAX_BODY_BYTES} bytes."
    " Files, and texts as long as that, are uploaded to the signed URL."
)
_REQUEST_ID = re.compile(r"[A-Za-z0-9_.=-]{8,64}")
_log = logging.getLogger(__name__)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
# Pages of any host may speak OpenAI's protocol: who calls shows a token, and there are no cookies to ride on.
_SHARED = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"x-request-id, retry-after"),
]
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
]


def create_app(*routers: APIRouter, services: Services | None = None) -> FastAPI:
    """The app with these routes; without `services` they come from the environment on the first request."""
    app = FastAPI(title="Ibid", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.services = services
    app.state.readiness = None
    for router in routers:
        app.include_router(router)
    errors.install(app)
    app.add_middleware(RequestFrame)
    return app


class BrokenOffError(Exception):
    """The log says why, in the line before."""


class RequestFrame:
    """Gives each request its id, each response the security headers, turns oversized bodies away unread, and counts.

    Plain ASGI, because Starlette's BaseHTTPMiddleware buffers what should stream.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        is_head = scope["method"] == "HEAD"
        if is_head:  # as GET, but for the body (RFC 9110, 9.3.2); FastAPI's routes do not know it
            scope = {**scope, "method": "GET"}
        headers = {name: value for name, value in scope["headers"]}
        current = _choose_request_id(scope, headers)
        token = request_id.set(current)
        began = time.perf_counter()
        started, status = False, 500

        async def send_framed(message: Message) -> None:
            nonlocal started, status
            if message["type"] == "http.response.start":
                started, status = True, message["status"]
                message["headers"] = [*message["headers"], *_HEADERS, (b"x-request-id", current.encode())]
                message["headers"] += _SHARED if _is_shared(scope["path"]) else []
            elif is_head:
                message["body"] = b""
            await send(message)

        try:
            if _asks_whether_it_may(scope, headers):
                await _permit(headers)(scope, receive, send_framed)
            elif _is_too_large(scope["path"], headers):
                await errors.describe_http_error(scope["path"], 413, _TOO_LARGE)(scope, receive, send_framed)
            else:
                await self.app(scope, _count_body(scope["path"], receive), send_framed)
        except Exception as exc:
            if started:  # too late to say so: the server cuts the connection, and logs only what is raised here
                _log.error("an answer was broken off by a fault", exc_info=exc)
                raise BrokenOffError from None
            await errors.describe_fault(scope["path"], exc)(scope, receive, send_framed)
        finally:
            metrics.record_request(*_describe_route(scope), status, time.perf_counter() - began)
            request_id.reset(token)


def _asks_whether_it_may(scope: Scope, headers: dict[bytes, bytes]) -> bool:
    """A browser's question before it sends a request from a page of another host."""
    is_asked = scope["method"] == "OPTIONS" and b"access-control-request-method" in headers
    return is_asked and _is_shared(scope["path"])


def _is_shared(path: str) -> bool:
    """Not behind a Function URL, which says the same by itself: browsers refuse what is said twice."""
    return path.startswith(errors.OPENAI_PREFIX) and "AWS_LWA_PORT" not in os.environ


def _permit(headers: dict[bytes, bytes]) -> Response:
    asked = headers.get(b"access-control-request-headers", b"authorization, content-type").decode("latin-1")
    allowed = {"Access-Control-Allow-Methods": "GET, POST", "Access-Control-Allow-Headers": asked}
    return Response(status_code=204, headers=allowed | {"Access-Control-Max-Age": "86400"})


def _describe_route(scope: Scope) -> tuple[str, str]:
    """Method and route as labels: a pattern, never an address, which holds ids."""
    route = getattr(scope.get("route"), "path", "none")
    return scope["method"] if scope["method"] in _METHODS else "other", route


def _choose_request_id(scope: Scope, headers: dict[bytes, bytes]) -> str:
    """What the client says, else the id under which the gateway logs the request, else one of our own."""
    sent = headers.get(b"x-request-id", b"").decode("latin-1")
    return next(filter(_REQUEST_ID.fullmatch, (sent, _read_gateway_id(scope, headers))), uuid.uuid4().hex)


def _read_gateway_id(scope: Scope, headers: dict[bytes, bytes]) -> str:
    """From the event that Mangum keeps, or the header in which the Lambda Web Adapter hands it on; "" for none."""
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


def _count_body(path: str, receive: Receive) -> Receive:
    """The same limit for a body that comes in pieces and does not say how long it is."""
    if path.startswith("/storage/"):
        return receive
    left = MAX_BODY_BYTES

    async def receive_counted() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        if left < 0:
            raise HTTPException(413, _TOO_LARGE)
        return message

    return receive_counted
