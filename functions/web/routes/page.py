"""The web page, its static files, and the routes that tell the page about sign-in and the user."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Request, Response

from functions.core import errors
from functions.runtime.services import Services
from functions.web import page_bundle
from functions.web.deps import Caller, ServicesDep
from functions.web.page_bundle import PageFile
from functions.web.schemas import operations

router = APIRouter()

STATIC = Path(__file__).parents[1] / "static"


@router.get("/", include_in_schema=False)
def get_page(request: Request, services: ServicesDep) -> Response:
    headers = {"Content-Security-Policy": content_policy(services), "Cache-Control": "no-cache"}
    return _send(request, page_files()[page_bundle.PAGE], headers)


@router.get("/static/{name:path}", include_in_schema=False)
def get_static(name: str, request: Request) -> Response:
    """A file of the page; its address has a digest of the contents, so browsers never ask for it twice."""
    file = page_files().get(name)
    if file is None or name == page_bundle.PAGE:
        raise errors.NotFoundError
    return _send(request, file, {"Cache-Control": "public, max-age=31536000, immutable"})


@router.get("/api/rag/sign-in", response_model=operations.SignIn, response_model_exclude_unset=True)
def get_sign_in(services: ServicesDep) -> dict[str, Any]:
    """How the page signs users in; `key` is the publishable key, which Supabase intends for browsers."""
    if services.is_local:
        return {"method": "local"}
    config = services.config
    if config.supabase_publishable_key is None:
        return {"method": "token"}
    return {
        "method": "supabase",
        "url": (config.supabase_url or "").rstrip("/"),
        "key": config.supabase_publishable_key,
    }


@router.get("/api/rag/me", response_model=operations.Me)
def get_me(user: Caller, services: ServicesDep) -> dict[str, Any]:
    return {
        "id": user.id,
        "is_admin": user.is_admin,
        "scopes": None if user.scopes is None else sorted(user.scopes),
        "mode": "local" if services.is_local else "cloud",
        "chat": "extractive" if services.config.chat_model is None else "model",
        "chat_model": services.config.chat_model,
        "chat_url": services.config.chat_stream_url or "/api/rag/chat",
    }


@cache
def page_files() -> dict[str, PageFile]:
    """The files of the page by their path; a lookup cannot leave the static folder."""
    return page_bundle.bundle(STATIC)


def _send(request: Request, file: PageFile, headers: Mapping[str, str]) -> Response:
    """Sends the file compressed if the browser takes that, or 304 if it already has the file."""
    headers = {**headers, "ETag": file.etag, "Vary": "Accept-Encoding"}
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if not _takes_gzip(request.headers.get("accept-encoding", "")):
        return Response(file.body, headers=headers, media_type=file.media_type)
    return Response(file.gzipped, headers={**headers, "Content-Encoding": "gzip"}, media_type=file.media_type)


def _takes_gzip(accepted: str) -> bool:
    """Reads an Accept-Encoding header, such as `br;q=1.0, gzip;q=0.8` (RFC 9110, 12.5.3)."""
    weights = dict(part.replace(" ", "").lower().partition(";q=")[::2] for part in accepted.split(","))
    weight = weights.get("gzip", weights.get("*", "0"))
    return weight.strip("0.") != "" or weight == ""


def content_policy(services: Services) -> str:
    """The Content-Security-Policy: the page's own files, and connections to the hosts of storage and streaming."""
    urls = (urlsplit(url or "") for url in (services.config.supabase_url, services.config.chat_stream_url))
    hosts = "".join(f" {url.scheme}://{url.netloc}" for url in urls if url.netloc)
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:;"
        f" connect-src 'self'{hosts};"
        " font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )
