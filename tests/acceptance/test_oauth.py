"""CHAT-9, SEC-1: an assistant that is told nothing but the address of /mcp finds out how to sign in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from pydantic import AnyUrl

from functions.core.answering import tools
from tests.support.fakes.key_server import EC_KEY, USER, claims, sign
from tests.support.fakes.oauth_server import OAuthServer, serve_oauth
from tests.support.local_server import LocalServer, problem_of, run_local_server

WELL_KNOWN = "/.well-known/oauth-protected-resource"


@pytest.fixture(scope="module")
def oauth() -> Iterator[OAuthServer]:
    with serve_oauth() as running:
        yield running


@pytest.fixture(scope="module")
def cloud(module_database: str, oauth: OAuthServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server that takes the tokens of a Supabase project."""
    home = tmp_path_factory.mktemp("home")
    with run_local_server(module_database, home, worker=False, supabase_url=oauth.url) as running:
        yield running


class Memory:
    """Where the client keeps what it got; the SDK's interface."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self.client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


def list_tools(server: LocalServer, oauth: OAuthServer) -> list[str]:
    """The tools that the SDK's client finds after it has signed in by itself."""
    came_back: list[tuple[str, str]] = []

    async def open_browser(address: str) -> None:
        came_back.append(oauth.consent(address))

    async def receive() -> AuthorizationCodeResult:
        code, state = came_back.pop()
        return AuthorizationCodeResult(code=code, state=state)

    async def connect() -> list[str]:
        url = f"{server.base_url}/mcp"
        metadata = OAuthClientMetadata(client_name="test", redirect_uris=[AnyUrl("http://127.0.0.1:1/callback")])
        auth = OAuthClientProvider(url, metadata, Memory(), open_browser, receive)
        async with (
            httpx2.AsyncClient(auth=auth, trust_env=False, verify=False, timeout=30) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            return [tool.name for tool in (await client.list_tools()).tools]

    return anyio.run(connect)


def token_of_a_client(oauth: OAuthServer, **changes: Any) -> dict[str, str]:
    body = claims(oauth.issuer, client_id="9a8b7c6d-5e4f-3a2b-1c0d-9e8f7a6b5c4d", **changes)
    return {"Authorization": f"Bearer {sign(body, EC_KEY, 'ES256', 'ec')}"}


def test_the_official_client_signs_in_by_itself(cloud: LocalServer, oauth: OAuthServer) -> None:
    """CHAT-9"""
    assert list_tools(cloud, oauth) == list(tools.BY_NAME)
    assert [path for path in oauth.visited if "jwks" not in path] == [
        "/.well-known/oauth-authorization-server/auth/v1",
        "/auth/v1/oauth/clients/register",
        "/auth/v1/oauth/token",
    ]


@pytest.mark.parametrize(("path", "resource"), [("", ""), ("/mcp", "/mcp")], ids=["origin", "mcp"])
def test_the_metadata_name_the_resource_and_the_projects_own_authorization_server(
    cloud: LocalServer, oauth: OAuthServer, path: str, resource: str
) -> None:
    assert cloud.http.get(WELL_KNOWN + path).json() == {
        "resource": cloud.base_url + resource,
        "resource_name": "Ibid",
        "authorization_servers": [oauth.issuer],
        "bearer_methods_supported": ["header"],
    }


@pytest.mark.parametrize("token", [None, "Bearer nonsense", "Bearer ibid_nonsense"])
def test_a_refusal_of_mcp_names_the_metadata(cloud: LocalServer, token: str | None) -> None:
    """SEC-1"""
    refused = cloud.http.post("/mcp", headers={} if token is None else {"Authorization": token}, json={})
    assert problem_of(refused) == (401, "not_signed_in")
    expected = f'Bearer resource_metadata="{cloud.base_url}{WELL_KNOWN}/mcp"'
    assert refused.headers["www-authenticate"] == expected
    elsewhere = cloud.http.get("/api/rag/documents")
    assert elsewhere.headers["www-authenticate"] == "Bearer"


def test_a_laptop_has_no_authorization_server_and_names_none(server: LocalServer) -> None:
    for path in (WELL_KNOWN, f"{WELL_KNOWN}/mcp"):
        assert problem_of(server.http.get(path)) == (404, "not_found")
    assert server.http.post("/mcp", json={}).headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("method", "path", "refusal"),
    [
        ("GET", "/api/rag/documents", None),
        ("POST", "/api/rag/notebooks", "missing_scope"),
        ("GET", "/api/rag/keys", "not_allowed"),
        ("POST", "/api/rag/keys", "not_allowed"),
        ("PATCH", "/api/rag/settings", "not_admin"),
    ],
)
def test_an_assistant_that_has_signed_in_reads_and_asks_and_no_more(
    cloud: LocalServer, oauth: OAuthServer, method: str, path: str, refusal: str | None
) -> None:
    """KEY-1, SET-4: also where the person is an administrator"""
    headers = token_of_a_client(oauth, app_metadata={"role": "admin"})
    answer = cloud.http.request(method, path, headers=headers, json={"title": "mine"})
    assert answer.status_code == 200 if refusal is None else problem_of(answer) == (403, refusal)


def test_the_statements_of_an_assistant_make_no_keys(cloud: LocalServer) -> None:
    """KEY-1: also where a route forgets to ask"""
    person = {"sub": USER, "role": "authenticated"}
    for more, rows in (({}, 1), ({"client_id": "an assistant"}, 0)):
        user = cloud.services.authenticator.authenticate(sign_for(cloud, person | more))
        with cloud.services.database.as_user(user) as connection:
            if not more:
                connection.execute(
                    "insert into rag.api_keys (owner_id, name, hint, key_hash, scopes, expires_at)"
                    " values (%s, 'k', 'ibid_', repeat('0', 64), '{read}', now() + interval '1 day')",
                    (USER,),
                )
            assert len(connection.execute("select id from rag.api_keys").fetchall()) == rows


def sign_for(server: LocalServer, body: dict[str, Any]) -> str:
    return sign(claims(f"{server.services.config.supabase_url}/auth/v1", **body), EC_KEY, "ES256", "ec")
