"""No route shows a second user anything of the first, and every route needs a valid token."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import jwt
import pytest

from tests.support import documents, page_files
from tests.support.local_server import Json, LocalServer, Person, problem_of

SECRET_WORDS = "The zeppelin Quastenflosser crossed the Barents Sea in silence."
SECRET_NOTE = "The captain of the zeppelin wrote poems."
QUESTION = "What crossed the Barents Sea in silence?"

# Every route is in one of these lists; until a new one is, `test_every_route_is_in_exactly_one_list` fails.
PUBLIC = {
    "GET /",
    "GET /static/{name:path}",
    "GET /health",
    "GET /ready",
    "GET /metrics",  # for local clients, or with METRICS_TOKEN: see test_metrics_endpoint.py
    "GET /api/rag/sign-in",
    "POST /api/local/token",
    "GET /openapi.json",
    "GET /docs",
    "GET /.well-known/oauth-protected-resource",
    "GET /.well-known/oauth-protected-resource/mcp",
    "GET /api/cron/retention",  # has its own secret
    # Signed for one object and one purpose, as Supabase Storage does: see test_documents.py.
    "PUT /storage/v1/object/upload/sign/{bucket}/{path:path}",
    "GET /storage/v1/object/sign/{bucket}/{path:path}",
}
# Routes whose path names something that a user owns, with a valid body.
FOREIGN: dict[str, Json | None] = {
    "GET /api/rag/documents/{document_id}": None,
    "DELETE /api/rag/documents/{document_id}": None,
    "PATCH /api/rag/documents/{document_id}": {"note_id": None},
    "POST /api/rag/documents/{document_id}/finalize": None,
    "POST /api/rag/documents/{document_id}/retry": None,
    "POST /api/rag/documents/{document_id}/reindex": None,
    "POST /api/rag/documents/{document_id}/translate": None,
    "POST /api/rag/documents/{document_id}/trash": None,
    "POST /api/rag/documents/{document_id}/restore": None,
    "GET /api/rag/documents/{document_id}/text": None,
    "GET /api/rag/documents/{document_id}/outline": None,
    "GET /api/rag/documents/{document_id}/find": None,
    "GET /api/rag/documents/{document_id}/pages/{number}.png": None,
    "GET /api/rag/documents/{document_id}/download": None,
    "GET /api/rag/notebooks/{notebook_id}": None,
    "PATCH /api/rag/notebooks/{notebook_id}": {"title": "mine"},
    "DELETE /api/rag/notebooks/{notebook_id}": None,
    "GET /api/rag/notes/{note_id}": None,
    "PATCH /api/rag/notes/{note_id}": {"title": "mine"},
    "POST /api/rag/notes/{note_id}/trash": None,
    "POST /api/rag/notes/{note_id}/restore": None,
    "POST /api/rag/notes/{note_id}/reindex": None,
    "DELETE /api/rag/notes/{note_id}": None,
    "GET /api/rag/notes/{note_id}/text": None,
    "GET /api/rag/conversations/{conversation_id}/messages": None,
    "PATCH /api/rag/conversations/{conversation_id}": {"title": "mine"},
    "DELETE /api/rag/conversations/{conversation_id}": None,
    "GET /api/rag/conversations/{conversation_id}/documents": None,
    "PUT /api/rag/conversations/{conversation_id}/documents": {"document_ids": []},
    "POST /api/rag/conversations/{conversation_id}/documents": {"document_ids": []},
    "DELETE /api/rag/conversations/{conversation_id}/documents/{document_id}": None,
    "GET /api/rag/conversations/{conversation_id}/export": None,
    "POST /api/rag/conversations/{conversation_id}/messages/{message_id}/note": {},
    "PUT /api/rag/conversations/{conversation_id}/messages/{message_id}/rating": {"rating": "up"},
    "DELETE /api/rag/conversations/{conversation_id}/messages/{message_id}/rating": None,
    "DELETE /api/rag/keys/{key_id}": None,
}
# Routes that answer from the caller's own data; `test_the_second_user_finds_nothing` calls each.
OWN = {
    "GET /api/rag/documents",
    "POST /api/rag/documents",
    "GET /api/rag/notebooks",
    "POST /api/rag/notebooks",
    "GET /api/rag/notes",
    "POST /api/rag/notes",
    "GET /api/rag/conversations",
    "GET /api/rag/conversations/ratings",
    "GET /api/rag/search",
    "GET /api/rag/search/suggestions",
    "GET /api/rag/usage",
    "POST /api/rag/chat",
    "POST /v1/chat/completions",
    "POST /mcp",
    "GET /api/rag/keys",
    "POST /api/rag/keys",
}
# Routes without user data: the same for all, but only for signed-in users.
SHARED = {
    "GET /api/rag/me",
    "GET /api/rag/settings",
    "GET /api/rag/settings/schema",
    "GET /v1/models",
    "GET /v1/models/{model}",
}
ADMIN = {
    "PATCH /api/rag/settings",
    "GET /api/rag/settings/audit",
    "GET /api/rag/embedding-servers",
    "POST /api/rag/embedding-servers",
    "POST /api/rag/embedding-servers/adopt",
    "PATCH /api/rag/embedding-servers/{server_id}",
    "DELETE /api/rag/embedding-servers/{server_id}",
    "POST /api/rag/embedding-servers/{server_id}/test",
    "POST /api/rag/embedding-servers/retry",
    "GET /api/rag/embedding-servers/{server_id}/reindex",
    "POST /api/rag/embedding-servers/{server_id}/reindex",
    "POST /api/rag/embedding-servers/reindexing/{action}",
    "POST /api/rag/embed",
}

# The scope that a route takes of an API key: `read` for GET and `write` for other methods, except for these.
OTHER_SCOPES = {
    "POST /api/rag/chat": "ask",
    "POST /v1/chat/completions": "ask",
    "POST /mcp": "read",
}
# Routes that a key of any scope may call, and those that no key may.
ANY_SCOPE = {"GET /api/rag/me", "GET /v1/models", "GET /v1/models/{model}"}
NO_SCOPE = dict.fromkeys(ADMIN, "not_admin") | dict.fromkeys(
    ("GET /api/rag/keys", "POST /api/rag/keys", "DELETE /api/rag/keys/{key_id}"), "not_allowed"
)


@dataclass(frozen=True)
class Owned:
    """The ids of everything that the first user owns, under the names that routes and bodies use."""

    person: Person
    document_id: str
    conversation_id: str
    message_id: str
    notebook_id: str
    note_id: str
    key_id: str

    @property
    def ids(self) -> dict[str, str]:
        return {key: value for key, value in vars(self).items() if key.endswith("_id")}


@pytest.fixture(scope="module")
def owned(server: LocalServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Owned]:
    path = documents.make_pdf(tmp_path_factory.mktemp("owned") / "zeppelin.pdf", SECRET_WORDS)
    with server.person("owner") as person:
        notebook_id = str(person.post("/notebooks", title="Airships")["id"])
        note_id = str(person.post("/notes", title="Airship", content=SECRET_NOTE, notebook_id=notebook_id)["id"])
        assert person.get(f"/notes/{note_id}", wait=20)["status"] == "indexed"
        document = person.add(path, notebook_id=notebook_id, note_id=note_id)
        assert document["status"] == "indexed"
        answer = person.ask(QUESTION)
        assert answer["status"] == "complete"
        rating = f"/api/rag/conversations/{answer['conversation_id']}/messages/{answer['message_id']}/rating"
        assert person.http.put(rating, json={"rating": "up", "reason": SECRET_WORDS}).status_code == 204
        key = person.post("/keys", name="script", scopes=["read"])
        yield Owned(
            person, document["id"], answer["conversation_id"], answer["message_id"], notebook_id, note_id, key["id"]
        )


def operations(server: LocalServer) -> set[str]:
    """METHOD and path of every route, including those left out of the API's description."""
    routers = [getattr(route, "original_router", None) for route in server.app.routes]
    routes = [route for router in routers if router is not None for route in router.routes]
    routes += [route for route, router in zip(server.app.routes, routers, strict=True) if router is None]
    return {f"{method} {route.path}" for route in routes for method in route.methods}


def call(http: httpx.Client, operation: str, body: Json | None = None, **ids: Any) -> httpx.Response:
    method, path = operation.split(" ")
    known = {
        "number": 1,
        "name": "app.js",
        "bucket": "documents",
        "model": "ibid",
        "server_id": uuid4(),
        "action": "pause",
    }
    return http.request(method, path.replace(":path", "").format_map(known | ids), json=body)


def refusal_of(response: httpx.Response) -> tuple[int, str]:
    """Status and code of a refusal; OpenAI's protocol has its own form of error."""
    if not response.url.path.startswith("/v1/"):
        return problem_of(response)
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}
    return response.status_code, response.json()["error"]["code"]


def without_id(response: httpx.Response) -> Json:
    return {key: value for key, value in response.json().items() if key != "request_id"}


def test_every_route_is_in_exactly_one_list(server: LocalServer) -> None:
    """SEC-3"""
    found = operations(server)
    assert {f"{m.upper()} {p}" for p, ms in server.app.openapi()["paths"].items() for m in ms} <= {
        operation.replace(":path", "") for operation in found
    }
    lists = [PUBLIC, set(FOREIGN), OWN, SHARED, ADMIN]
    assert found == set().union(*lists)
    assert len(found) == sum(map(len, lists))


# Another user's content


@pytest.mark.parametrize("who", ["bob", "admin"])
@pytest.mark.parametrize("operation", FOREIGN)
def test_another_users_id_is_answered_like_an_unknown_id(
    request: pytest.FixtureRequest, owned: Owned, operation: str, who: str
) -> None:
    """SEC-3"""
    stranger = request.getfixturevalue(who)
    body = FOREIGN[operation]
    answer = call(stranger.http, operation, body, **owned.ids)
    nothing = call(stranger.http, operation, body, **{key: str(uuid4()) for key in owned.ids})
    assert problem_of(answer) == (404, "not_found")
    assert without_id(answer) == without_id(nothing)


@pytest.mark.parametrize("name", ["conversation_id", "document_ids", "notebook_id", "note_id"])
def test_no_question_can_be_scoped_to_another_users_content(bob: Person, owned: Owned, name: str) -> None:
    """SEC-3"""
    foreign: Any = [owned.document_id] if name == "document_ids" else getattr(owned, name)
    unknown: Any = [str(uuid4())] if name == "document_ids" else str(uuid4())
    answer, nothing = (
        bob.http.post("/api/rag/chat", json={"query": QUESTION, name: value}) for value in (foreign, unknown)
    )
    assert problem_of(answer) == (404, "not_found")
    assert without_id(answer) == without_id(nothing)
    assert bob.get("/conversations")["items"] == []


@pytest.mark.parametrize("name", ["document_id", "notebook_id", "note_id"])
def test_no_search_can_be_scoped_to_another_users_content(bob: Person, owned: Owned, name: str) -> None:
    """SEC-3"""
    answer = bob.http.get("/api/rag/search", params={"q": QUESTION, name: getattr(owned, name)})
    assert problem_of(answer) == (404, "not_found")


@pytest.mark.parametrize("name", ["notebook_id", "note_id"])
def test_nothing_can_be_added_to_another_users_content(bob: Person, owned: Owned, name: str) -> None:
    """SEC-3"""
    assert problem_of(bob.announce("a.txt", **{name: getattr(owned, name)})) == (404, "not_found")
    assert bob.get("/documents")["items"] == []


def test_another_users_documents_cannot_be_attached_to_a_conversation(bob: Person, owned: Owned) -> None:
    """SEC-3"""
    own = bob.ask(QUESTION)
    address = f"/api/rag/conversations/{own['conversation_id']}"
    for method in ("PUT", "POST"):
        answer, nothing = (
            bob.http.request(method, f"{address}/documents", json={"document_ids": [value]})
            for value in (owned.document_id, str(uuid4()))
        )
        assert problem_of(answer) == (404, "not_found")
        assert without_id(answer) == without_id(nothing)
    assert bob.http.delete(f"{address}/documents/{owned.document_id}").status_code == 204
    for path, body in (
        (f"{address}/messages/{owned.message_id}/note", {}),
        (f"{address}/messages/{own['message_id']}/note", {"notebook_id": owned.notebook_id}),
    ):
        assert problem_of(bob.http.post(path, json=body)) == (404, "not_found")
    assert bob.get("/notes")["items"] == []


def test_no_note_can_be_moved_into_another_users_notebook(bob: Person, owned: Owned) -> None:
    """SEC-3"""
    foreign, unknown = ({"notebook_id": value, "title": "mine"} for value in (owned.notebook_id, str(uuid4())))
    own = bob.post("/notes", title="own")
    for method, path in (("POST", "/api/rag/notes"), ("PATCH", f"/api/rag/notes/{own['id']}")):
        answer, nothing = (bob.http.request(method, path, json=body) for body in (foreign, unknown))
        assert problem_of(answer) == (404, "not_found")
        assert without_id(answer) == without_id(nothing)
    assert bob.get("/notes")["items"][0]["title"] == "own"
    assert owned.person.get(f"/notebooks/{owned.notebook_id}")["note_count"] == 1


@pytest.mark.parametrize("who", ["bob", "admin"])
def test_the_second_user_finds_nothing(request: pytest.FixtureRequest, owned: Owned, who: str) -> None:
    """SEC-2, SEC-3"""
    stranger: Person = request.getfixturevalue(who)
    assert stranger.get("/documents") == {"items": [], "next_cursor": None}
    assert stranger.get("/documents", notebook_id=owned.notebook_id)["items"] == []
    for path in ("/conversations", "/conversations/ratings", "/notebooks", "/notes"):
        assert stranger.get(path) == {"items": [], "next_cursor": None}
    assert stranger.get("/notes", notebook_id=owned.notebook_id)["items"] == []
    assert stranger.get("/conversations", q="zeppelin")["items"] == []
    assert stranger.get("/search/suggestions") == {"items": []}
    assert {day["questions"] for day in stranger.get("/usage")["days"]} == {0}
    found = stranger.get("/search", q=SECRET_WORDS, debug=True)
    assert (found["hits"], found["debug"]["candidate_sources"]) == ([], 0)
    own = stranger.post("/keys", name="script", scopes=["read"])
    assert [key["id"] for key in stranger.get("/keys")["items"]] == [own["id"]]
    answer = stranger.ask(QUESTION)
    assert (answer["mode"], answer["sources"]) == ("guard", [])
    assert "zeppelin" not in answer["answer"]
    body: Json = {"model": "ibid", "messages": [{"role": "user", "content": QUESTION}]}
    completion = stranger.http.post("/v1/chat/completions", json=body).json()
    assert (completion["ibid"]["mode"], completion["ibid"]["sources"]) == ("guard", [])
    assert "zeppelin" not in completion["choices"][0]["message"]["content"]
    tool = {"name": "document_search", "arguments": {"query": SECRET_WORDS}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool}
    called = stranger.http.post("/mcp", json=body, headers={"Accept": "application/json"}).json()
    assert called["result"]["structuredContent"] == {"passages": []}
    known = owned.person.get("/documents")["items"][0]
    twin = stranger.announce("twin.pdf", size=known["size_bytes"], sha256=digest_of(owned))
    assert (twin.status_code, twin.json()["duplicate"]) == (201, False)
    assert stranger.get("/me")["id"] == stranger.id


def digest_of(owned: Owned) -> str:
    with owned.person.server.services.database.as_user(owned.person.user) as connection:
        row = connection.execute("select sha256 from rag.documents where id = %s", (owned.document_id,)).fetchone()
    assert row is not None
    return str(row["sha256"])


def test_the_first_users_content_is_unchanged_by_the_second_user(owned: Owned, bob: Person) -> None:
    for operation, body in FOREIGN.items():
        call(bob.http, operation, body, **owned.ids)
    assert [item["status"] for item in owned.person.get("/documents")["items"]] == ["indexed"]
    assert [item["title"] for item in owned.person.get("/conversations")["items"]] == [QUESTION]
    assert [item["title"] for item in owned.person.get("/notebooks")["items"]] == ["Airships"]
    note = owned.person.get(f"/notes/{owned.note_id}")
    assert (note["title"], note["content"], note["notebook_id"]) == ("Airship", SECRET_NOTE, owned.notebook_id)
    assert owned.person.get(f"/documents/{owned.document_id}/text")["pages"][0]["text"] == SECRET_WORDS
    assert [key["id"] for key in owned.person.get("/keys")["items"]] == [owned.key_id]
    assert [answer["rating"] for answer in owned.person.get("/conversations/ratings")["items"]] == ["up"]


# Tokens


def forge(server: LocalServer, *, secret: bytes | None = None, algorithm: str = "HS256", **claims: Any) -> str:
    """A token that is valid except for the given changes; a claim of None is left out."""
    now = int(time.time())
    good = {"iss": "ibid-local", "aud": "authenticated", "role": "authenticated", "sub": str(uuid4()), "exp": now + 600}
    body = {key: value for key, value in (good | claims).items() if value is not None}
    key: str | bytes = "" if algorithm == "none" else secret or server.services.local_secret
    return jwt.encode(body, key, algorithm=algorithm)


BAD: dict[str, Json] = {
    "another-secret": {"secret": b"x" * 32},
    "unsigned": {"algorithm": "none"},
    "another-algorithm": {"algorithm": "HS512", "secret": b"x" * 64},
    "expired": {"exp": int(time.time()) - 3600},
    "never-expires": {"exp": None},
    "anon": {"role": "anon"},
    "service-role": {"role": "service_role"},
    "worker-role": {"role": "rag_worker"},
    "no-role": {"role": None},
    "another-audience": {"aud": "somewhere"},
    "another-issuer": {"iss": "https://evil.example/auth/v1"},
    "nobody": {"sub": None},
    "no-id": {"sub": "admin"},
}


def list_protected_routes(server: LocalServer) -> list[str]:
    return sorted(operations(server) - PUBLIC)


def statuses(server: LocalServer, headers: dict[str, str]) -> dict[str, tuple[int, str]]:
    """What every route that is not public answers to a request with these headers."""
    kinds = ("document", "conversation", "message", "notebook", "note", "key")
    ids: Json = {f"{kind}_id": str(uuid4()) for kind in kinds}
    with server.open_client(**headers) as http:
        return {operation: refusal_of(call(http, operation, **ids)) for operation in list_protected_routes(server)}


def test_a_valid_token_is_accepted(server: LocalServer) -> None:
    """Without this, the refusals below could have other reasons than those they name."""
    headers = {"Authorization": f"Bearer {forge(server)}"}
    assert server.http.get("/api/rag/me", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Basic YWRhOmFkYQ=="},
        {"Authorization": "Bearer " + "a" * 20_000},
        {"Authorization": "Bearer a.b.c"},
        {"Cookie": "token=abc"},
    ],
    ids=["none", "empty", "no-token", "basic", "long", "junk", "cookie"],
)
def test_every_route_but_the_public_ones_needs_a_token(server: LocalServer, headers: dict[str, str]) -> None:
    """SEC-1"""
    assert statuses(server, headers) == dict.fromkeys(list_protected_routes(server), (401, "not_signed_in"))


@pytest.mark.parametrize("claims", BAD.values(), ids=BAD)
def test_no_route_accepts_an_invalid_token(server: LocalServer, claims: Json) -> None:
    """SEC-1"""
    headers = {"Authorization": f"Bearer {forge(server, **claims)}"}
    assert statuses(server, headers) == dict.fromkeys(list_protected_routes(server), (401, "not_signed_in"))


# API keys


def call_each_route(server: LocalServer, key: str) -> dict[str, str | None]:
    """For every protected route, the code with which it refuses a key for what the key may not do; else None."""
    ids: Json = {
        f"{kind}_id": str(uuid4()) for kind in ("document", "conversation", "message", "notebook", "note", "key")
    }
    found: dict[str, str | None] = {}
    with server.open_client(Authorization=f"Bearer {key}") as http:
        for operation in list_protected_routes(server):
            answer = call(http, operation, **ids)
            assert answer.status_code != 401
            found[operation] = refusal_of(answer)[1] if answer.status_code == 403 else None
    return found


def expect_refusals(server: LocalServer, scopes: set[str]) -> dict[str, str | None]:
    expected: dict[str, str | None] = {}
    for operation in list_protected_routes(server):
        usual = "read" if operation.startswith("GET ") else "write"
        has_scope = operation in ANY_SCOPE or OTHER_SCOPES.get(operation, usual) in scopes
        expected[operation] = NO_SCOPE.get(operation, None if has_scope else "missing_scope")
    return expected


@pytest.mark.parametrize(
    "scopes", [{"read"}, {"ask"}, {"write"}, {"read", "ask", "write"}], ids=lambda scopes: "-".join(sorted(scopes))
)
def test_a_key_may_do_what_its_scopes_say_on_every_route(admin: Person, server: LocalServer, scopes: set[str]) -> None:
    """KEY-1, SET-4: not even a key of an administrator changes settings, and no key manages keys."""
    key = admin.post("/keys", name="script", scopes=sorted(scopes))["key"]
    assert call_each_route(server, key) == expect_refusals(server, scopes)


@pytest.mark.parametrize("fate", ["unknown", "revoked", "expired"])
def test_no_route_accepts_a_key_that_is_no_longer_valid(ada: Person, server: LocalServer, fate: str) -> None:
    """KEY-1"""
    made = ada.post("/keys", name="script", scopes=["read", "ask", "write"])
    if fate == "revoked":
        ada.http.delete(f"/api/rag/keys/{made['id']}")
    elif fate == "expired":
        with server.services.database.as_worker() as connection:
            connection.execute("update rag.api_keys set expires_at = created_at where id = %s", (made["id"],))
    headers = {"Authorization": f"Bearer {'ibid_' + 'A' * 43 if fate == 'unknown' else made['key']}"}
    assert statuses(server, headers) == dict.fromkeys(list_protected_routes(server), (401, "not_signed_in"))


@pytest.mark.parametrize("operation", FOREIGN)
def test_a_key_reaches_nothing_of_another_user(bob: Person, owned: Owned, server: LocalServer, operation: str) -> None:
    """KEY-1, SEC-3"""
    key = bob.post("/keys", name="script", scopes=["read", "ask", "write"])["key"]
    with server.open_client(Authorization=f"Bearer {key}") as http:
        answer = call(http, operation, FOREIGN[operation], **owned.ids)
    refused = (403, NO_SCOPE[operation]) if operation in NO_SCOPE else (404, "not_found")
    assert problem_of(answer) == refused


def test_a_key_finds_nothing_of_another_user(bob: Person, owned: Owned, server: LocalServer) -> None:
    """KEY-1, SEC-2"""
    key = bob.post("/keys", name="script", scopes=["read", "ask"])["key"]
    with server.open_client(Authorization=f"Bearer {key}") as http:
        assert http.get("/api/rag/documents").json()["items"] == []
        assert http.get("/api/rag/search", params={"q": SECRET_WORDS}).json()["hits"] == []
        assert http.post("/api/rag/chat", json={"query": QUESTION}).json()["mode"] == "guard"


def test_a_token_in_the_address_is_ignored(server: LocalServer) -> None:
    answer = server.http.get("/api/rag/me", params={"token": forge(server)})
    assert problem_of(answer) == (401, "not_signed_in")
    assert answer.headers["www-authenticate"] == "Bearer"


def test_the_public_routes_need_no_token(server: LocalServer) -> None:
    script = page_files.script_of(server.http.get("/").text)
    opened = {path: server.http.get(path).status_code for path in ("/", script, "/health", "/ready")}
    assert opened == {"/": 200, script: 200, "/health": 200, "/ready": 200}


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "%2e",
        "..%2fapp.py",
        "%2e%2e/app.py",
        "..%5capp.py",
        "shared/%2e%2e/%2e%2e/app.py",
        "%2fetc%2fpasswd",
        "%00",
        "a" * 300,
        "no.js",
        "app.js",
        "index.html",
        "app.js%00.png",
        "app.js/",
        "shared",
        "shared/",
    ],
)
def test_static_files_are_those_of_the_page_and_no_others(server: LocalServer, name: str) -> None:
    """SEC-1"""
    answer = server.http.get(f"/static/{name}", follow_redirects=True)
    assert problem_of(answer) == (404, "not_found")


# The local sign-in


def test_the_page_on_this_machine_signs_in_the_local_user(server: LocalServer) -> None:
    """FIX-6"""
    origin = {"Origin": server.base_url}
    answer = server.http.post("/api/local/token", headers=origin, json={"key": server.app.state.sign_in.key}).json()
    headers = {"Authorization": f"Bearer {answer['token']}"}
    me = server.http.get("/api/rag/me", headers=headers).json()
    assert (me["id"], me["is_admin"], me["mode"]) == (answer["user"]["id"], True, "local")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Host": "evil.example:8000"},
        {"Host": "localhost.evil.example:8000"},
    ],
    ids=["foreign-page", "sandboxed-page", "rebound-name", "look-alike"],
)
def test_a_page_of_another_origin_cannot_sign_in_the_local_user(server: LocalServer, headers: dict[str, str]) -> None:
    """SEC-1"""
    answer = server.http.post("/api/local/token", headers=headers, json={"key": server.app.state.sign_in.key})
    assert problem_of(answer) == (404, "not_found")


# Administrators


@pytest.mark.parametrize(
    "claims",
    [{}, {"user_metadata": {"role": "admin"}}, {"app_metadata": {"role": "Admin"}}, {"app_metadata": "admin"}],
    ids=["nobody", "self-made", "look-alike", "odd"],
)
def test_only_an_administrator_changes_settings(server: LocalServer, claims: Json) -> None:
    """SET-4"""
    headers = {"Authorization": f"Bearer {forge(server, **claims)}"}
    with server.open_client(**headers) as http:
        before = http.get("/api/rag/settings").json()
        assert problem_of(http.patch("/api/rag/settings", json={"rrf_k": 7})) == (403, "not_admin")
        assert http.get("/api/rag/settings").json() == before


def test_an_administrator_changes_settings_for_everybody(admin: Person, bob: Person) -> None:
    """SET-3, SET-4"""
    before = bob.get("/settings")
    try:
        changed = admin.http.patch("/api/rag/settings", json={"guard_message": "Ask the librarian."}).json()
        assert changed == bob.get("/settings") == before | {"guard_message": "Ask the librarian."}
        assert bob.ask(QUESTION)["answer"].startswith("Ask the librarian.")
    finally:
        admin.http.patch("/api/rag/settings", json={"guard_message": ""})
