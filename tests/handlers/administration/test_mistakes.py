"""Mistakes in configuring embedding servers end in a sentence that says what to set, and are mended by setting it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from functions.runtime import policy, readiness
from functions.runtime.services import Services, shared_services
from tests.handlers import events
from tests.handlers.administration.conftest import FACT, ROUTE
from tests.handlers.conftest import QUEUE, Caller
from tests.handlers.events import Json
from tests.support.fakes.model_server import FakeModelServer, Reply

QUOTA = Reply(status=429, error={"message": "quota", "type": "insufficient_quota", "code": "insufficient_quota"})
Deploy = Callable[..., Caller]


@pytest.fixture
def deploy(database: str, tmp_path: Path, model: FakeModelServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deploy]:
    """Starts processes with other variables over one database; the caller stays the same administrator."""
    base = {"DATABASE_URL": database, "IBID_HOME": str(tmp_path), "INGEST_QUEUE_URL": QUEUE, "LOG_LEVEL": "CRITICAL"}
    started: list[Services] = []
    callers: list[Caller] = []
    for name, value in (base | {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "sk-one"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(policy, "POLICY_SECONDS", 0.0)
    monkeypatch.setattr(readiness, "MODELS_FRESH_SECONDS", 0.0)

    def run(**variables: str | None) -> Caller:
        for name, value in variables.items():
            monkeypatch.setenv(name, value) if value is not None else monkeypatch.delenv(name)
        shared_services.cache_clear()
        started.append(shared_services())
        if not callers:
            callers.append(Caller(started[0], admin=True))
        callers[0].services = started[-1]
        return callers[0]

    yield run
    for services in started:
        services.database.close()
    shared_services.cache_clear()


def stored_model(caller: Caller) -> str:
    found = caller.call("settings", "GET", ROUTE).json
    return str(found["stored"]["model"])


def ready(part: str) -> Json:
    checks: Json = events.send("page", events.http("GET", "/ready")).json["checks"]
    return dict(checks[part])


def upload(caller: Caller) -> str:
    """Uploads a document and lets a worker take its job; returns the id of the document."""
    document = caller.announce()
    caller.services.make_worker().ingest_next(caller.store(document, FACT))
    return str(document["id"])


def read(caller: Caller, document_id: str) -> Json:
    return dict(caller.call("documents", "GET", f"/api/rag/documents/{document_id}").json)


def test_another_model_replaces_one_that_has_indexed_nothing(deploy: Deploy) -> None:
    """SET-1"""
    assert stored_model(deploy(EMBEDDING_MODEL="old-model", EMBEDDING_DIMENSIONS="64")) == "old-model"
    caller = deploy(EMBEDDING_MODEL="e5-base-v2")
    caller.services.policy()
    assert stored_model(caller) == "e5-base-v2"
    assert caller.add(FACT)["embedding_model"] == "e5-base-v2"
    assert ready("library") == {"ok": True, "detail": "Documents and notes are indexed with e5-base-v2."}


def test_another_model_waits_for_an_administrator_where_documents_are_indexed(deploy: Deploy) -> None:
    """SET-2, OPS-4"""
    deploy(EMBEDDING_MODEL="old-model", EMBEDDING_DIMENSIONS="64").add(FACT)
    caller = deploy(EMBEDDING_MODEL="e5-base-v2")
    caller.services.policy()
    assert stored_model(caller) == "old-model"
    assert "To keep it, set EMBEDDING_MODEL=old-model." in ready("library")["detail"]


def test_a_forgotten_number_of_dimensions_is_named_and_mended_by_setting_it(deploy: Deploy) -> None:
    """OPS-4, ING-8"""
    caller = deploy(EMBEDDING_MODEL="fake-model")
    document_id = upload(caller)
    failed = read(caller, document_id)
    assert (failed["status"], failed["error_code"]) == ("failed", "model_rejected")
    assert "returns 64 dimensions, but 1536 are configured" in failed["error"]
    assert ready("models") == {
        "ok": False,
        "detail": "Embedding (fake-model): the server returns 64 dimensions, but 1536 are configured."
        " Set EMBEDDING_DIMENSIONS=64.",
    }
    caller = deploy(EMBEDDING_DIMENSIONS="64")
    caller.services.policy()  # what failed is tried again without anybody asking
    caller.services.make_worker().ingest_next()
    assert (read(caller, document_id)["status"], ready("models")["ok"]) == ("indexed", True)


def test_another_number_of_dimensions_of_an_indexed_library_names_the_variable(deploy: Deploy) -> None:
    """OPS-4"""
    deploy(EMBEDDING_MODEL="fake-model", EMBEDDING_DIMENSIONS="64").add(FACT)
    deploy(EMBEDDING_DIMENSIONS="1536")
    assert "otherwise than the database has it (EMBEDDING_DIMENSIONS)" in ready("library")["detail"]


def test_a_function_without_the_variable_decides_nothing_for_the_others(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SET-1: whether it is called first or last."""
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "ibid-dev-search")
    assert deploy().services.policy().servers[0].kind == "local"
    variables = {"EMBEDDING_MODEL": "fake-model", "EMBEDDING_DIMENSIONS": "64"}
    assert [server.model for server in deploy(**variables).services.policy().servers] == ["fake-model"]
    forgetful = deploy(EMBEDDING_MODEL=None).services
    assert [server.model for server in forgetful.policy().servers] == ["fake-model"]


def test_the_embedding_server_can_have_a_key_of_its_own(deploy: Deploy, model: FakeModelServer) -> None:
    """SET-1"""
    deploy(EMBEDDING_MODEL="fake-model", EMBEDDING_DIMENSIONS="64", EMBEDDING_API_KEY="sk-two").add(FACT)
    assert {request["headers"]["authorization"] for request in model.requests} == {"Bearer sk-two"}


def test_what_a_wrong_key_failed_is_indexed_for_all_users_once_it_is_right(
    deploy: Deploy, model: FakeModelServer
) -> None:
    """OPS-4, ING-8"""
    caller = deploy(EMBEDDING_MODEL="fake-model", EMBEDDING_DIMENSIONS="64")
    model.script(Reply(status=401), Reply(status=401))
    somebody = Caller(caller.services)
    document_ids = [upload(caller), upload(somebody)]
    assert read(caller, document_ids[0])["error"].startswith("The model server refused the key.")
    assert caller.call("settings", "GET", ROUTE).json["rejected"] == 2
    assert "2 documents and notes could not be indexed" in ready("library")["detail"]
    model.script(Reply(status=401))
    assert caller.call("settings", "POST", f"{ROUTE}/retry").problem == (502, "model_rejected")
    assert caller.call("settings", "POST", f"{ROUTE}/retry").json["rejected"] == 0
    while caller.services.make_worker().ingest_next() is not None:
        pass
    found = [read(person, at)["status"] for person, at in zip((caller, somebody), document_ids, strict=True)]
    assert found == ["indexed", "indexed"]


@pytest.mark.parametrize(
    ("reply", "detail"),
    [
        (Reply(status=401), "the server refuses the key. Check OPENAI_API_KEY."),
        (QUOTA, "the quota is used up. Check the provider's plan and billing."),
        (
            Reply(status=404),
            "the server does not embed a word (404). Check EMBEDDING_MODEL and EMBEDDING_BASE_URL.",
        ),
        (
            Reply(status=503),
            "the server answers with an error (503). Check that it runs, and EMBEDDING_BASE_URL.",
        ),
        (
            Reply(status=500, delay=2.5),
            "the server takes longer than 2 s to answer. Check that it runs, and EMBEDDING_BASE_URL.",
        ),
        (Reply(raw=b"<html>"), "the server returned something other than vectors."),
    ],
    ids=["key", "quota", "model", "down", "slow", "page"],
)
def test_what_fails_every_ingestion_is_said_before_one_fails(
    deploy: Deploy, model: FakeModelServer, reply: Reply, detail: str
) -> None:
    """OPS-4"""
    deploy(EMBEDDING_MODEL="fake-model", EMBEDDING_DIMENSIONS="64")
    model.script(reply)
    assert ready("models") == {"ok": False, "detail": f"Embedding (fake-model): {detail}"}
    assert ready("models")["ok"]


@pytest.mark.parametrize("address", ["http://[::1/v1", "http://models:abc/v1", "http://é..fr/v1"])
def test_an_address_that_no_request_can_go_to_is_told_and_mended_by_another(
    deploy: Deploy, model: FakeModelServer, address: str
) -> None:
    """OPS-4, ING-8: in the documents, in /ready, and in the answers."""
    caller = deploy(EMBEDDING_MODEL="fake-model", EMBEDDING_DIMENSIONS="64", EMBEDDING_BASE_URL=address)
    document_id = upload(caller)
    assert "The address of the model server is not valid." in read(caller, document_id)["error"]
    assert (caller.call("settings", "GET", ROUTE).status, ready("models")["ok"]) == (200, False)
    assert ask(caller)["degraded"] == ["fake-model"]
    caller = deploy(EMBEDDING_BASE_URL=model.base_url)
    caller.services.policy()
    caller.services.make_worker().ingest_next()
    assert read(caller, document_id)["status"] == "indexed"


def test_a_server_that_limits_its_requests_is_not_reported(deploy: Deploy, model: FakeModelServer) -> None:
    """OPS-4: ingestion waits for it."""
    deploy(EMBEDDING_MODEL="fake-model", EMBEDDING_DIMENSIONS="64")
    model.script(Reply(status=429))
    assert ready("models")["ok"]


def test_a_server_that_is_switched_off_with_its_documents_is_named(deploy: Deploy) -> None:
    """OPS-4, RET-6"""
    caller = deploy(EMBEDDING_MODEL="old-model", EMBEDDING_DIMENSIONS="64")
    caller.add(FACT)
    caller.row("update rag.embedding_servers set active = false, is_default = false returning id")
    caller.row(
        "insert into rag.embedding_servers (name, kind, model, dimensions, max_input_tokens, is_default, managed)"
        " values ('other', 'local', 'other', 4, 512, true, true) returning id"
    )
    assert ready("library")["detail"].startswith("1 documents and notes are found by their words alone, because old-")


def test_a_dead_server_delays_one_question_and_not_the_next(deploy: Deploy, model: FakeModelServer) -> None:
    """RET-2, OPS-4: and the answer says so."""
    caller = deploy(EMBEDDING_MODEL="fake-model", EMBEDDING_DIMENSIONS="64")
    caller.add(FACT)
    model.requests.clear()
    model.script(*[Reply(status=503)] * 2)
    assert [ask(caller)["degraded"] for _ in range(4)] == [["fake-model"]] * 4
    assert len(model.embeddings) == 2  # the first question, with its second attempt
    began = time.monotonic()
    assert ask(caller)["sources"][0]["file_name"] == "boiler.txt"
    assert time.monotonic() - began < 1.0


def test_a_corrected_address_is_asked_at_once(deploy: Deploy) -> None:
    """SET-1: what failed before was another address."""
    caller = deploy(EMBEDDING_MODEL="fake-model", EMBEDDING_DIMENSIONS="64")
    caller.add(FACT)
    server_id = caller.call("settings", "GET", ROUTE).json["servers"][0]["id"]
    caller.row("update rag.embedding_servers set base_url = 'http://127.0.0.1:1/v1', managed = true returning id")
    assert ask(caller)["degraded"] == ["fake-model"]
    with FakeModelServer(dimensions=64) as mended:
        changed = caller.call("settings", "PATCH", f"{ROUTE}/{server_id}", {"base_url": mended.base_url})
        assert (changed.status, ask(caller)["degraded"]) == (200, [])


def ask(caller: Caller) -> Json:
    return dict(caller.call("chat", "POST", "/api/rag/chat", {"query": "What does the boiler burn?"}).json)
