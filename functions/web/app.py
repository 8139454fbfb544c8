"""Builds the ASGI app of one function: its routes, request ids, security headers, errors as problems."""

from __future__ import annotations

import json
import re
import uuid

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from functions.runtime.logging import request_id
from functions.runtime.wiring import Services
from functions.web import errors

MAX_BODY_BYTES = 1024 * 1024  # JSON bodies only; files go straight to storage

_REQUEST_ID = re.compile(r"[\w.-]{8,64}")
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

        async def send_framed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_HEADERS, (b"x-request-id", current.encode())]
            await send(message)

        try:
            if _is_too_large(scope["path"], headers):
                await _refuse_body(send_framed)
            else:
                await self.app(scope, receive, send_framed)
        finally:
            request_id.reset(token)


def _choose_request_id(sent: str) -> str:
    return sent if _REQUEST_ID.fullmatch(sent) else uuid.uuid4().hex


def _is_too_large(path: str, headers: dict[bytes, bytes]) -> bool:
    length = headers.get(b"content-length", b"0")
    return not path.startswith("/storage/") and length.isdigit() and int(length) > MAX_BODY_BYTES


async def _refuse_body(send: Send) -> None:
    body = json.dumps(
        {
            "type": "urn:ibid:error:too_large",
            "title": "Too large",
            "status": 413,
            "detail": f"The request is larger than {MAX_BODY_BYTES} bytes. Files are uploaded to the signed URL.",
            "code": "too_large",
            "request_id": request_id.get(),
        }
    ).encode()
    headers = [(b"content-type", b"application/problem+json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body})
