"""Builds the ASGI app of one function: its routes, request ids, security headers, errors as problems."""

from __future__ import annotations

import re
import uuid

from fastapi import APIRouter, FastAPI
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from functions.runtime.logging import request_id
from functions.runtime.wiring import Services
from functions.web import errors

MAX_BODY_BYTES = 1024 * 1024  # JSON bodies only; files go straight to storage

_TOO_LARGE = (
    f"The request is larger than {MAX_BODY_BYTES} bytes."
    " Files, and texts as long as that, are uploaded to the signed URL."
)
_REQUEST_ID = re.compile(r"[A-Za-z0-9_.-]{8,64}")
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
]


def create_app(*routers: APIRouter, services: Services | None = None) -> FastAPI:
    """The app with these routes; without `services` they come from the environment on the first request."""
    app = FastAPI(title="Ibid", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.services = services
    for router in routers:
        app.include_router(router)
    errors.install(app)
    app.add_middleware(RequestFrame)
    return app


class RequestFrame:
    """Gives each request its id, each response the security headers, and turns oversized bodies away unread.

    Plain ASGI, because Starlette's BaseHTTPMiddleware buffers what should stream.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name: value for name, value in scope["headers"]}
        current = _choose_request_id(headers.get(b"x-request-id", b"").decode("latin-1"))
        token = request_id.set(current)
        started = False

        async def send_framed(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message["headers"], *_HEADERS, (b"x-request-id", current.encode())]
            await send(message)

        try:
            if _is_too_large(scope["path"], headers):
                await errors.describe_http_error(scope["path"], 413, _TOO_LARGE)(scope, receive, send_framed)
            else:
                await self.app(scope, _count_body(scope["path"], receive), send_framed)
        except Exception as exc:
            if started:
                raise  # too late to say so: the server cuts the connection
            await errors.describe_fault(scope["path"], exc)(scope, receive, send_framed)
        finally:
            request_id.reset(token)


def _choose_request_id(sent: str) -> str:
    return sent if _REQUEST_ID.fullmatch(sent) else uuid.uuid4().hex


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
