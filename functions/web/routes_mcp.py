"""The library for AI assistants: search and notes as tools of the Model Context Protocol (streamable HTTP)."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response

from functions.runtime.tool_calls import Toolbox
from functions.web.deps import CurrentUser, ServicesDep

router = APIRouter(prefix="/mcp")


@router.post("", response_model=None)
def exchange(user: CurrentUser, services: ServicesDep) -> Response:
    """One request, one answer as JSON; there is no session to open with GET or to end with DELETE."""
    from functions.web.mcp_server import Exchange  # loads the SDK

    return Exchange(Toolbox(services, user))
