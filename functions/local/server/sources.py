"""Serves the page from its sources, one file a module, so that a reload shows a change; for work on the page only."""

from __future__ import annotations

import mimetypes

from fastapi import APIRouter
from fastapi.responses import FileResponse

from functions.core import errors
from functions.web.deps import ServicesDep
from functions.web.routes.page import STATIC, content_policy

router = APIRouter()

_NOT_STORED = {"Cache-Control": "no-store"}

# Some systems register neither type, and browsers refuse a module script that has the wrong one.
mimetypes.add_type("text/javascript", ".js")
mimetypes.add_type("image/svg+xml", ".svg")


@router.get("/", include_in_schema=False)
def get_page(services: ServicesDep) -> FileResponse:
    headers = {"Content-Security-Policy": content_policy(services)}
    return FileResponse(STATIC / "index.html", headers=_NOT_STORED | headers)


@router.get("/static/{name:path}", include_in_schema=False)
def get_source(name: str) -> FileResponse:
    """A lookup among the files that exist cannot leave the folder."""
    found = {path.relative_to(STATIC).as_posix(): path for path in STATIC.rglob("*") if path.is_file()}.get(name)
    if found is None:
        raise errors.NotFoundError
    return FileResponse(found, headers=_NOT_STORED)
