"""Rules for every response of the server."""

from __future__ import annotations

import statistics
import time

import pytest

from tests.acceptance.conftest import CRON_SECRET
from tests.support import page_files
from tests.support.local_server import LocalServer, Person, problem_of


@pytest.mark.parametrize("path", ["/", "/static/none.js", "/api/rag/me", "/nowhere", "/health"])
def test_every_answer_carries_an_id_and_the_security_headers(server: LocalServer, path: str) -> None:
    """SEC-6"""
    answer = server.http.get(path, headers={"X-Request-Id": "my-request-1"})
    wanted = {"x-request-id": "my-request-1", "x-content-type-options": "nosniff", "x-frame-options": "DENY"}
    assert {key: answer.headers[key] for key in wanted} == wanted


def test_the_files_of_the_page_are_compressed_and_never_asked_for_twice(server: LocalServer) -> None:
    """WEB-1"""
    answers = [server.http.get(path) for path in page_files.linked(server.http.get("/").text)]
    names = ("content-encoding", "vary", "cache-control")
    found = {tuple(answer.headers[name] for name in names) for answer in answers}
    assert found == {("gzip", "Accept-Encoding", "public, max-age=31536000, immutable")}


@pytest.mark.parametrize("accepted", ["", "identity", "br", "gzip;q=0", "gzip;q=0.00, *", "*;q=0"])
def test_a_client_that_does_not_take_gzip_gets_plain_text(server: LocalServer, accepted: str) -> None:
    plain = server.http.get("/", headers={"Accept-Encoding": accepted})
    assert (plain.headers.get("content-encoding"), plain.headers["vary"]) == (None, "Accept-Encoding")
    assert plain.text == server.http.get("/").text


def test_a_page_that_has_not_changed_is_not_sent_again(server: LocalServer) -> None:
    first = server.http.get("/")
    again = server.http.get("/", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    assert (again.headers["cache-control"], again.headers["vary"]) == ("no-cache", "Accept-Encoding")
    assert server.http.get("/", headers={"If-None-Match": 'W/"0"'}).status_code == 200


def test_an_internal_error_reveals_no_details(
    server: LocalServer, bob: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-6"""

    def break_down(*_: object) -> None:
        raise RuntimeError("select secret from /etc/passwd")

    monkeypatch.setattr("functions.web.routes.conversations.conversations.list_page", break_down)
    answer = bob.http.get("/api/rag/conversations", headers={"X-Request-Id": "my-request-2"})
    assert problem_of(answer) == (500, "internal")
    assert (answer.json()["request_id"], answer.headers["x-content-type-options"]) == ("my-request-2", "nosniff")
    assert "secret" not in answer.text


@pytest.mark.parametrize("path", ["/", "/health", "/api/rag/documents", "/api/rag/documents/none"])
def test_head_is_answered_like_get_without_the_body(server: LocalServer, ada: Person, path: str) -> None:
    read, asked = ada.http.get(path), ada.http.head(path)
    assert (asked.status_code, asked.content) == (read.status_code, b"")
    assert asked.headers["content-length"] == read.headers["content-length"]
    assert asked.headers["content-type"] == read.headers["content-type"]


@pytest.mark.parametrize(
    "sent", ["short", "with space and more", "x" * 65, "a\u00e9bcdefgh", "<script>alert(1)</script>"]
)
def test_an_invalid_request_id_is_replaced(server: LocalServer, sent: str) -> None:
    answer = server.http.get("/health", headers=[(b"X-Request-Id", sent.encode("latin-1"))])
    assert answer.headers["x-request-id"] != sent
    assert len(answer.headers["x-request-id"]) == 32


def test_answers_on_a_kept_connection_are_not_delayed(server: LocalServer) -> None:
    """Nagle's algorithm and delayed acknowledgements together would add 40 ms or more to each."""
    seconds = []
    for _ in range(15):
        started = time.perf_counter()
        server.http.get("/health")
        seconds.append(time.perf_counter() - started)
    assert statistics.median(seconds) < 0.03


@pytest.mark.parametrize("body", [b"", b"null", b"7", b"[1]", b'"a"', b"{\xff}"])
@pytest.mark.parametrize("operation", ["POST documents", "POST chat", "PATCH settings"])
def test_a_body_that_is_not_an_object_is_refused(admin: Person, operation: str, body: bytes) -> None:
    method, path = operation.split()
    headers = {"Content-Type": "application/json"}
    answer = admin.http.request(method, f"/api/rag/{path}", content=body, headers=headers)
    assert problem_of(answer) == (400, "invalid_input")


def test_an_unknown_path_and_a_wrong_method_are_problem_documents(server: LocalServer) -> None:
    """SEC-6"""
    assert problem_of(server.http.get("/api/rag/nowhere")) == (404, "not_found")
    assert problem_of(server.http.delete("/health")) == (405, "method_not_allowed")


def test_readiness_reports_every_check(server: LocalServer) -> None:
    """OPS-4"""
    answer = server.http.get("/ready").json()
    assert answer["status"] == "ok"
    assert {name: check["ok"] for name, check in answer["checks"].items()} == dict.fromkeys(
        ("database", "storage", "models", "ingestion", "library"), True
    )
    assert "Postgres 1" in answer["checks"]["database"]["detail"]


def test_retention_runs_with_its_secret(server: LocalServer, ada: Person) -> None:
    """OPS-1"""
    conversation_id = ada.ask("Anything?")["conversation_id"]
    with server.services.database.as_worker() as connection:
        connection.execute(
            "update rag.conversations set updated_at = now() - interval '31 days' where id = %s", (conversation_id,)
        )
    assert problem_of(ada.http.get("/api/cron/retention")) == (401, "not_signed_in")
    assert problem_of(server.http.get(f"/api/cron/retention?secret={CRON_SECRET}")) == (401, "not_signed_in")
    answer = server.http.get("/api/cron/retention", headers={"Authorization": f"Bearer {CRON_SECRET}"})
    assert (answer.status_code, answer.json()) == (200, {"deleted": 1})
    assert ada.get("/conversations")["items"] == []
