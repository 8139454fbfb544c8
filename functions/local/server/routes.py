"""Replaces Supabase on a laptop: signs the local user in, and serves the signed URLs of the storage."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any
from urllib.parse import urlsplit

import anyio.from_thread
import anyio.to_thread
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field
from starlette.requests import ClientDisconnect

from functions import retention
from functions.adapters import auth
from functions.adapters.laptop import object_rows
from functions.adapters.laptop.object_store import LocalObjectStore
from functions.core import errors
from functions.local.server.sign_in import COOKIE_SECONDS, SignIn
from functions.runtime.services import Services
from functions.web.deps import DESCRIBED, Authorization, ServicesDep, check_secret, read_bearer
from functions.web.schemas.operations import Retention

router = APIRouter()

LOCAL_USER = "local"
TOKEN_SECONDS = 12 * 3600
_LOOPBACK_CLIENTS = {"127.0.0.1", "::1"}
_LOOPBACK_NAMES = {"127.0.0.1", "localhost", "::1"}


class LocalKey(BaseModel):
    """The key from the address that was printed."""

    key: str = Field(default="", max_length=200)


@router.post("/api/local/token", include_in_schema=False)
def create_token(
    request: Request, response: Response, services: ServicesDep, body: LocalKey | None = None
) -> dict[str, Any]:
    """Signs the local user in, for a page of this server in a browser on this machine that has a key.

    The Host header is checked too: another site can make its own name resolve to 127.0.0.1, but not use `localhost`.
    """
    host = urlsplit("//" + request.headers.get("host", "")).hostname
    client = request.client.host if request.client else ""
    origin = request.headers.get("origin")
    same_origin = origin is None or origin == f"http://{request.headers.get('host')}"
    if client not in _LOOPBACK_CLIENTS or host not in _LOOPBACK_NAMES or not same_origin:
        raise errors.NotFoundError("There is no such address.")
    sign_in: SignIn = request.app.state.sign_in
    # Browsers send a cookie to every port, so each server of this machine has a cookie of its own.
    name = f"ibid_{request.url.port}"
    cookie = sign_in.accept(body.key if body else "", request.cookies.get(name))
    response.set_cookie(name, cookie, COOKIE_SECONDS, path=request.url.path, httponly=True, samesite="strict")
    user_id = auth.local_user_id(LOCAL_USER)
    token = auth.issue_local_token(services.local_secret, user_id, LOCAL_USER, admin=True, lifetime=TOKEN_SECONDS)
    return {"token": token, "user": {"id": user_id, "name": LOCAL_USER, "is_admin": True}}


@router.get("/api/cron/retention", response_model=Retention)
def run_retention(services: ServicesDep, authorization: Authorization, _: object = DESCRIBED) -> dict[str, int]:
    """Runs the daily clean-up now, for callers that know CRON_SECRET; the worker also runs it once a day."""
    check_secret(read_bearer(authorization), services.config.cron_secret)
    return retention.purge(services)


@router.put("/storage/v1/object/upload/sign/{bucket}/{path:path}", include_in_schema=False)
async def receive_object(bucket: str, path: str, request: Request, services: ServicesDep, token: str) -> dict[str, str]:
    """Stores the bytes of a signed upload, in one of the threads of uploads.

    They have threads of their own, because a thread waits for the next piece of its upload as long as the client likes.
    """
    receive = partial(_receive_object, bucket, path, request, services, token)
    return await anyio.to_thread.run_sync(receive, limiter=request.app.state.upload_threads)


def _receive_object(bucket: str, path: str, request: Request, services: Services, token: str) -> dict[str, str]:
    """The row in storage.objects fires the triggers, which refuse a second file or queue the first."""
    store = _local_store(services, bucket)
    limit = services.policy().settings.max_file_bytes
    length = request.headers.get("content-length", "")
    try:
        store.receive(
            path,
            token,
            read_body(request),
            max_bytes=limit,
            mime_type=request.headers.get("content-type"),
            expected_size=int(length) if length.isdigit() else None,
            record=partial(object_rows.record, services.database, operation=object_rows.SIGNED_UPLOAD),
        )
    except ClientDisconnect as exc:
        raise errors.InvalidInputError("The upload was interrupted.") from exc
    return {"Key": f"{bucket}/{path}"}


@router.get("/storage/v1/object/sign/{bucket}/{path:path}", include_in_schema=False)
def send_object(
    bucket: str,
    path: str,
    services: ServicesDep,
    token: str,
    download: Annotated[str | None, Query(max_length=255)] = None,
) -> FileResponse:
    file = _local_store(services, bucket).open_signed(path, token)
    return FileResponse(file, filename=download)


def read_body(request: Request) -> Iterator[bytes]:
    """Reads the body in pieces, for a route that runs in a worker thread."""
    stream = request.stream()

    async def read_piece() -> bytes:
        return await anext(stream, b"")

    while piece := anyio.from_thread.run(read_piece):
        yield piece


def _local_store(services: Services, bucket: str) -> LocalObjectStore:
    if not isinstance(services.objects, LocalObjectStore) or services.objects.bucket != bucket:
        raise errors.NotFoundError
    return services.objects
