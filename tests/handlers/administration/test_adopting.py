"""Administrators move a library to the embedding model that the environment configures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from functions.runtime import policy
from functions.runtime.services import Services, shared_services
from tests.handlers import events
from tests.handlers.administration.conftest import FACT, ROUTE
from tests.handlers.conftest import QUEUE, Caller
from tests.handlers.events import Answer
from tests.support.fakes.model_server import FakeModelServer, Reply

QUESTION = "q=What+does+the+boiler+burn%3F&debug=true"


@pytest.fixture
def caller(database: str, tmp_path: Path, model: FakeModelServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Caller]:
    """An administrator of a library that `old-model` has indexed; the environment now has e5."""
    variables = {
        "DATABASE_URL": database,
        "IBID_HOME": str(tmp_path),
        "INGEST_QUEUE_URL": QUEUE,
        "EMBEDDING_MODEL": "e5-base-v2",
        "EMBEDDING_DIMENSIONS": "64",
        "OPENAI_BASE_URL": model.base_url,
        "LOG_LEVEL": "WARNING",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(policy, "POLICY_SECONDS", 0.0)
    monkeypatch.setenv("EMBEDDING_MODEL", "old-model")
    before = start()
    caller = Caller(before, admin=True)
    caller.add(FACT)
    before.database.close()
    monkeypatch.setenv("EMBEDDING_MODEL", "e5-base-v2")
    model.requests.clear()
    caller.services = start()
    yield caller
    caller.services.database.close()
    shared_services.cache_clear()


def start() -> Services:
    """The services of a new process."""
    shared_services.cache_clear()
    return shared_services()


def servers(caller: Caller) -> Answer:
    return caller.call("settings", "GET", ROUTE)


def adopt(caller: Caller) -> Answer:
    return caller.call("settings", "POST", f"{ROUTE}/adopt")


def register(caller: Caller, model: FakeModelServer, name: str = "third", **fields: Any) -> str:
    """Adds a server; returns its id."""
    body = {"name": name, "model": f"{name}-model", "base_url": model.base_url} | fields
    return str(caller.call("settings", "POST", ROUTE, body).json["id"])


def steer(caller: Caller, action: str) -> Answer:
    return caller.call("settings", "POST", f"{ROUTE}/reindexing/{action}")


def move(caller: Caller, server_id: str) -> Answer:
    return caller.call("settings", "POST", f"{ROUTE}/{server_id}/reindex")


def finds_vector(caller: Caller) -> bool:
    """Whether the first hit was found by its vector too."""
    (hit, *_) = caller.call("search", "GET", "/api/rag/search", query=QUESTION).json["hits"]
    return hit["arms"]["vector_rank"] is not None


def models_of(caller: Caller) -> list[str]:
    """The embedding models of all vectors."""
    found = caller.row(
        "select array_agg(s.model) as models"
        " from rag.chunk_vectors v join rag.embedding_servers s on s.id = v.server_id"
    )
    return list(found["models"])


def work(nudged: list[int]) -> None:
    """Runs the sweeper, and the jobs that it names."""
    nudged.clear()
    events.invoke("sweeper", events.load("schedule"))
    for job_id in list(nudged):
        record = events.load("sqs")["Records"][0] | {"body": json.dumps({"job_id": job_id})}
        assert events.invoke("ingest", {"Records": [record]}) == {"batchItemFailures": []}


def test_only_administrators_see_and_adopt_the_embedding_model(caller: Caller) -> None:
    """SET-4"""
    someone = Caller(caller.services)
    assert (servers(someone).status, adopt(someone).status) == (403, 403)


def test_an_environment_that_differs_is_named_and_changes_nothing(caller: Caller, model: FakeModelServer) -> None:
    """SET-2, OPS-4"""
    found = servers(caller).json
    assert (found["stored"]["name"], found["configured"]["name"]) == ("old-model", "e5-base-v2")
    assert (found["can_adopt"], found["reindexing"]) == (True, None)
    ready = events.send("page", events.http("GET", "/ready"))
    assert ready.json["checks"]["library"] == {"ok": True, "detail": found["detail"]}
    assert "is indexed with old-model, which stays in force" in found["detail"]
    assert {body["model"] for body in model.embeddings} == {"old-model"}
    assert models_of(caller) == ["old-model"]


def test_adopting_the_model_moves_every_document_and_note(caller: Caller, nudges: list[int]) -> None:
    """SET-6, LIB-7"""
    caller.call("notebooks", "POST", "/api/rag/notes", {"title": "Boiler", "content": "It burns wood."})
    work(nudges)
    assert adopt(caller).json["reindexing"] == {"done": 0, "remaining": 2, "failed": 0, "paused": False}
    work(nudges)
    work(nudges)
    found = servers(caller).json
    assert (found["stored"]["name"], found["can_adopt"], found["reindexing"]) == ("e5-base-v2", False, None)
    assert found["detail"] == "Documents and notes are indexed with e5-base-v2."
    assert models_of(caller) == ["e5-base-v2", "e5-base-v2"]


def test_questions_are_embedded_for_both_models_until_the_last_document_has_moved(
    caller: Caller, model: FakeModelServer, nudges: list[int]
) -> None:
    """RET-6"""
    adopt(caller)
    model.requests.clear()
    (hit,) = caller.call("search", "GET", "/api/rag/search", query=QUESTION).json["hits"]
    assert sorted(body["model"] for body in model.embeddings) == ["e5-base-v2", "old-model"]
    assert hit["arms"]["vector_rank"] == 1
    work(nudges)
    work(nudges)
    model.requests.clear()
    (hit,) = caller.call("search", "GET", "/api/rag/search", query=QUESTION).json["hits"]
    assert [body["model"] for body in model.embeddings] == ["e5-base-v2"]
    assert hit["arms"]["vector_rank"] == 1


def test_a_model_that_does_not_work_is_not_adopted(caller: Caller, model: FakeModelServer) -> None:
    """SET-4"""
    model.script(Reply(status=401))
    answer = adopt(caller)
    assert (answer.status, answer.json["code"]) == (502, "model_rejected")
    assert (servers(caller).json["stored"]["name"], servers(caller).json["reindexing"]) == ("old-model", None)


def test_adopting_what_is_in_force_changes_nothing(caller: Caller, nudges: list[int]) -> None:
    """SET-4"""
    adopt(caller)
    work(nudges)
    work(nudges)
    assert adopt(caller).json["can_adopt"] is False
    assert caller.row("select count(*) as n from rag.settings_audit") == {"n": 1}


def test_a_message_of_a_moving_document_serves_a_waiting_upload_first(caller: Caller, nudges: list[int]) -> None:
    """ING-10"""
    adopt(caller)
    moving = caller.row("select id from rag.ingest_jobs where background")["id"]
    upload = caller.store(caller.announce("chimney.txt"), b"The chimney is forty metres tall.")
    nudges.clear()
    record = events.load("sqs")["Records"][0] | {"body": json.dumps({"job_id": moving})}
    events.invoke("ingest", {"Records": [record]})
    states = {row: caller.row("select status from rag.ingest_jobs where id = %s", row) for row in (moving, upload)}
    assert states == {moving: {"status": "queued"}, upload: {"status": "done"}}
    assert nudges == [moving]


def test_moving_documents_do_not_count_as_waiting(caller: Caller) -> None:
    """OPS-4"""
    adopt(caller)
    checks = events.send("page", events.http("GET", "/ready")).json["checks"]
    assert checks["ingestion"] == {"ok": True, "detail": "No documents or notes are waiting; 0 in progress."}
    assert checks["library"]["detail"] == "0 of 1 documents and notes are re-indexed with e5-base-v2."


def test_the_log_says_once_that_another_model_is_configured(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """SET-2"""
    said: list[str] = []
    monkeypatch.setattr(policy._log, "warning", lambda text, *values: said.append(text % values))
    for _ in range(3):
        caller.services.policy()
    assert [text.split(",")[0] for text in said] == ["The environment configures the embedding model e5-base-v2"]


def test_the_estimate_says_what_a_move_takes_and_costs(caller: Caller, model: FakeModelServer) -> None:
    """SET-6"""
    server_id = register(caller, model, price_per_million_tokens=2)
    found = caller.call("settings", "GET", f"{ROUTE}/{server_id}/reindex").json
    tokens = found["tokens"]
    assert (found.pop("embedding_seconds") >= 0, tokens > 5) == (True, True)
    expected = {"documents": 1, "notes": 0, "pages": 1, "passages": 1, "tokens": tokens, "cost_usd": tokens * 2 / 1e6}
    assert found == expected
    free = register(caller, model, "free")
    assert caller.call("settings", "GET", f"{ROUTE}/{free}/reindex").json["cost_usd"] is None


def test_a_library_moves_to_any_server(caller: Caller, model: FakeModelServer, nudges: list[int]) -> None:
    """SET-6"""
    server_id = register(caller, model)
    assert move(caller, server_id).json["reindexing"]["remaining"] == 1
    work(nudges)
    work(nudges)
    found = servers(caller).json
    assert (found["stored"]["name"], found["reindexing"], found["can_adopt"]) == ("third", None, False)
    assert (models_of(caller), finds_vector(caller)) == (["third-model"], True)


def test_a_server_that_does_not_work_gets_no_library(caller: Caller, model: FakeModelServer) -> None:
    """SET-6"""
    server_id = register(caller, model)
    model.script(Reply(status=401))
    assert move(caller, server_id).problem == (502, "model_rejected")
    assert (servers(caller).json["stored"]["name"], servers(caller).json["reindexing"]) == ("old-model", None)


def test_a_paused_move_waits_and_uploads_do_not(caller: Caller, nudges: list[int]) -> None:
    """SET-6"""
    adopt(caller)
    assert steer(caller, "pause").json["reindexing"] == {"done": 0, "remaining": 1, "failed": 0, "paused": True}
    for _ in range(2):
        work(nudges)
    assert (nudges, models_of(caller), finds_vector(caller)) == ([], ["old-model"], True)
    assert "Re-indexing is paused." in servers(caller).json["detail"]
    assert caller.add(b"The chimney is forty metres tall.", "chimney.txt")["embedding_model"] == "e5-base-v2"
    assert steer(caller, "resume").json["reindexing"]["paused"] is False
    for _ in range(2):
        work(nudges)
    assert models_of(caller) == ["e5-base-v2", "e5-base-v2"]


def test_a_cancelled_move_leaves_each_document_where_it_is(caller: Caller, nudges: list[int]) -> None:
    """SET-6, RET-6"""
    adopt(caller)
    caller.add(b"The chimney is forty metres tall.", "chimney.txt")
    found = steer(caller, "cancel").json
    assert (found["reindexing"], found["stored"]["name"]) == (None, "e5-base-v2")
    for _ in range(3):
        work(nudges)
    assert (sorted(models_of(caller)), finds_vector(caller)) == (["e5-base-v2", "old-model"], True)
    assert caller.row("select count(*) as n from rag.documents where status = 'indexed'") == {"n": 2}
    assert move(caller, servers(caller).json["servers"][0]["id"]).json["reindexing"]["remaining"] == 1
    for _ in range(2):
        work(nudges)
    assert models_of(caller) == ["e5-base-v2", "e5-base-v2"]


def test_only_a_move_that_is_under_way_is_steered(caller: Caller) -> None:
    """SET-6"""
    assert {steer(caller, action).problem for action in ("pause", "resume", "cancel")} == {(409, "conflict")}
    assert steer(caller, "stop").status == 400


def test_whoever_steers_a_move_is_in_the_audit(caller: Caller) -> None:
    """SET-4"""
    adopt(caller)
    for action in ("pause", "resume", "cancel"):
        steer(caller, action)
    found = caller.row(
        "select array_agg(new_value ->> 'reindexing' order by id) as told, min(changed_by::text) as by"
        " from rag.settings_audit where new_value ? 'reindexing'"
    )
    assert found == {"told": ["paused", "resumed", "cancelled"], "by": caller.user.id}


def test_a_move_whose_workers_are_killed_ten_times_ends_complete(caller: Caller, nudges: list[int]) -> None:
    """SET-6, ING-10"""
    documents = [caller.add(f"Boiler {at} burns wood chips.".encode(), f"boiler-{at}.txt") for at in range(4)]
    adopt(caller)
    for _ in range(5):
        for _ in range(2):  # each claims a document and is gone before it has saved anything
            assert caller.services.make_worker().store.claim_ingest_job(None, 0) is not None
        assert finds_vector(caller)
        caller.services.make_worker().ingest_next()
    work(nudges)
    work(nudges)
    assert (servers(caller).json["reindexing"], models_of(caller)) == (None, ["e5-base-v2"] * (len(documents) + 1))


def test_an_upload_of_a_new_version_during_the_move_wins(caller: Caller, nudges: list[int]) -> None:
    """SET-6, LIB-5"""
    adopt(caller)
    caller.add(b"The boiler burns pellets in winter.")
    for _ in range(3):
        work(nudges)
    (hit,) = caller.call("search", "GET", "/api/rag/search", query=QUESTION).json["hits"]
    assert (hit["text"], servers(caller).json["reindexing"]) == ("The boiler burns pellets in winter.", None)


def test_a_library_of_two_servers_ranks_like_one_of_either(
    caller: Caller, model: FakeModelServer, nudges: list[int]
) -> None:
    """RET-6: vectors of 384 and of 1,024 dimensions, of texts that share more or fewer words."""
    subjects = ["wood", "coal", "gas", "oil", "peat", "straw", "hay", "reed"]
    with FakeModelServer(dimensions=384) as small, FakeModelServer(dimensions=1024) as large:
        ids = [register(caller, server, f"size-{server.dimensions}") for server in (small, large)]
        found = []
        for assignment in (lambda at: 0, lambda at: 1, lambda at: at % 2):
            person = Caller(caller.services)
            for at, subject in enumerate(subjects):
                body = {"is_default": True}
                assert caller.call("settings", "PATCH", f"{ROUTE}/{ids[assignment(at)]}", body).status == 200
                person.add(f"The old boiler of the mill burned {subject} in winter.".encode(), f"{subject}.txt")
            found.append([find_first(person, subject) for subject in subjects])
    assert found == [[f"{subject}.txt" for subject in subjects]] * 3


def find_first(person: Caller, subject: str) -> str:
    """The file of the first hit, which a vector has found too."""
    query = f"q=Which+mill+burned+{subject}%3F&debug=true"
    (hit, *_) = person.call("search", "GET", "/api/rag/search", query=query).json["hits"]
    return str(hit["file_name"]) if hit["arms"]["vector_rank"] == 1 else "none"
