"""Offers search and notes to AI assistants as tools of the Model Context Protocol (streamable HTTP)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from functions.adapters.postgres import users
from functions.core import errors, models
from functions.core.answering import tool_results
from functions.core.ports import ToolResult
from functions.runtime.services import Services
from functions.runtime.toolbox import Toolbox
from functions.web.deps import Reader, ServicesDep

router = APIRouter(prefix="/mcp")


@router.post("", response_model=None)
def exchange(user: Reader, services: ServicesDep) -> Response:
    """Answers one request with JSON. There are no sessions, so GET and DELETE do not exist."""
    from functions.web.mcp_server import Exchange  # loads the SDK

    return Exchange(LimitedTools(services, user))


class LimitedTools:
    """The tools of one user; each call counts as a request, and beyond the limit its result says when to try again."""

    def __init__(self, services: Services, user: models.User) -> None:
        self._services = services
        self._user = user
        self._tools = Toolbox(services, user)

    def run(self, name: str, arguments: str | Mapping[str, Any]) -> ToolResult:
        try:
            users.take_request(self._services.database, self._user, self._services.policy().settings)
        except errors.IbidError as exc:
            return tool_results.describe_error(exc.code, exc.message)
        return self._tools.run(name, arguments)
