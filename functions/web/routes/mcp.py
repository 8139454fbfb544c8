"""Offers search and notes to AI assistants as tools of the Model Context Protocol (streamable HTTP)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from functions.adapters import auth
from functions.adapters.postgres import users
from functions.core import errors, models
from functions.core.answering import tool_results
from functions.core.ports import ToolResult
from functions.runtime.services import Services
from functions.runtime.toolbox import Toolbox
from functions.web.deps import DESCRIBED, Authorization, ServicesDep, authenticate, check_scope, read_bearer
from functions.web.schemas.answers import RpcReply
from functions.web.schemas.requests import ProtectedResource

router = APIRouter()

_RPC_SCHEMA: Final = {
    "type": "object",
    "required": ["jsonrpc", "method"],
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": {"type": ["string", "integer"]},
        "method": {"type": "string"},
        "params": {"type": "object"},
    },
}
_RPC_REQUEST: Final = {"requestBody": {"required": True, "content": {"application/json": {"schema": _RPC_SCHEMA}}}}
_RPC_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    202: {"description": "A notification, which has no reply"},
    400: {"model": RpcReply},
}
METADATA: Final = "/.well-known/oauth-protected-resource"


def get_reader(
    request: Request, services: ServicesDep, authorization: Authorization, _: object = DESCRIBED
) -> models.User:
    """The user, who needs the scope `read`; a refusal says where an OAuth client learns how to sign in."""
    try:
        return check_scope(authenticate(services, read_bearer(authorization)), "read")
    except errors.NotSignedInError as exc:
        if not services.is_local:
            exc.details["resource_metadata"] = f"{_find_origin(request)}{METADATA}/mcp"
        raise


Reader = Annotated[models.User, Depends(get_reader)]


@router.get(METADATA, responses={404: {}})
def describe_origin(request: Request, services: ServicesDep) -> ProtectedResource:
    """The same for clients that do not look below the path of the resource."""
    return _describe_resource(services, _find_origin(request))


@router.get(f"{METADATA}/mcp", responses={404: {}})
def describe_resource(request: Request, services: ServicesDep) -> ProtectedResource:
    """How an OAuth client gets a token for `/mcp` (RFC 9728): from Supabase Auth; there is none on a laptop."""
    return _describe_resource(services, f"{_find_origin(request)}/mcp")


@router.post("/mcp", response_model=RpcReply, responses=_RPC_RESPONSES, openapi_extra=_RPC_REQUEST)
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


def _describe_resource(services: Services, resource: str) -> ProtectedResource:
    if services.config.supabase_url is None:
        raise errors.NotFoundError("There is no sign-in for assistants here. Send a token or an API key.")
    return ProtectedResource(resource=resource, authorization_servers=[auth.issuer_of(services.config.supabase_url)])


def _find_origin(request: Request) -> str:
    return str(request.base_url).rstrip("/")
