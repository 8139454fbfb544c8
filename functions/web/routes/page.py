"""The web page, its static files, and the routes that tell the page about sign-in and the user."""

from __future__ import annotations

import mimetypes
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter
from fastapi.responses import FileResponse

from functions.core import errors
from functions.runtime.services import Services
from functions.web.deps import CurrentUser, ServicesDep

router = APIRouter()

STATIC = Path(__file__).parents[1] / "static"

# Some systems register neither type, and browsers refuse a module script that has the wrong one.
mimetypes.add_type("text/javascript", ".js")
mimetypes.add_type("image/svg+xml", ".svg")


@router.get("/", include_in_schema=False)
def get_page(services: ServicesDep) -> FileResponse:
    return FileResponse(
        STATIC / "index.html",
        headers={"Content-Security-Policy": content_policy(services), "Cache-Control": "no-cache"},
    )


@router.get("/static/{name:path}", include_in_schema=False)
def get_static(name: str) -> FileResponse:
    path = _static_files().get(name)
    if path is None:
        raise errors.NotFoundError
    return FileResponse(path, headers={"Cache-Control": "public, max-age=60, stale-while-revalidate=86400"})


@router.get("/api/rag/sign-in")
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


@router.get("/api/rag/me")
def get_me(user: CurrentUser, services: ServicesDep) -> dict[str, Any]:
    return {
        "id": user.id,
        "is_admin": user.is_admin,
        "mode": "local" if services.is_local else "cloud",
        "chat": "extractive" if services.config.chat_model is None else "model",
        "chat_model": services.config.chat_model,
        "chat_url": services.config.chat_stream_url or "/api/rag/chat",
    }


@cache
def _static_files() -> dict[str, Path]:
    """The served files by their path below STATIC; a lookup cannot leave the folder, because no key contains `..`."""
    return {path.relative_to(STATIC).as_posix(): path for path in STATIC.rglob("*") if path.is_file()}


def content_policy(services: Services) -> str:
    """The Content-Security-Policy: the page's own files, and connections to the hosts of storage and streaming."""
    urls = (urlsplit(url or "") for url in (services.config.supabase_url, services.config.chat_stream_url))
    hosts = "".join(f" {url.scheme}://{url.netloc}" for url in urls if url.netloc)
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:;"
        f" connect-src 'self'{hosts};"
        " font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )
