"""The scheduled functions: retention (also over HTTP), the sweeper, and the builder of vector indexes."""

from __future__ import annotations

from typing import Any

import pytest

from functions.adapters.postgres.jobs import JobStore
from functions.runtime.services import Services
from tests.handlers import events
from tests.handlers.conftest import CRON_SECRET, Caller
from tests.handlers.events import Answer, Json

BEARER = {"Authorization": f"Bearer {CRON_SECRET}"}
FACT = b"The boiler burns wood chips in winter."


@pytest.fixture
def caller(fresh_services: Services) -> Caller:
    return Caller(fresh_services)


def add_conversation(caller: Caller, days_ago: int) -> str:
    """A conversation whose last message has this age."""
    conversation_id = caller.call("chat", "POST", "/api/rag/chat", {"query": "Anything?"}).json["conversation_id"]
    caller.row(
        "update rag.conversations set updated_at = now() - make_interval(days => %s) where id = %s returning id",
        days_ago,
        conversation_id,
    )
    return str(conversation_id)


def kept(caller: Caller) -> list[str]:
    return [row["id"] for row in caller.call("conversations", "GET", "/api/rag/conversations").json["items"]]


def purge(headers: Json = BEARER, **options: Any) -> Answer:
    return events.send("retention", events.http("GET", "/api/cron/retention", headers=headers, **options))


def test_the_schedule_deletes_conversations_older_than_the_retention(caller: Caller) -> None:
    """OPS-1"""
    young, _, _ = (
        add_conversation(caller, 29),
        add_conversation(caller, 31),
        add_conversation(Caller(caller.services), 300),
    )
    assert events.invoke("retention", events.load("schedule")) == {"deleted": 2}
    assert kept(caller) == [young]
    assert caller.row("select count(*) as n from rag.messages") == {"n": 2}
    assert events.invoke("retention", events.load("schedule")) == {"deleted": 0}


def test_the_retention_period_is_a_setting(caller: Caller) -> None:
    """OPS-1, SET-3"""
    add_conversation(caller, 8)
    Caller(caller.services, admin=True).call("settings", "PATCH", "/api/rag/settings", {"retention_days": 7})
    assert events.invoke("retention", events.load("schedule")) == {"deleted": 1}


def test_retention_runs_over_http_with_the_secret(caller: Caller) -> None:
    """OPS-1"""
    add_conversation(caller, 31)
    assert (purge().status, purge().json) == (200, {"deleted": 0})
    assert kept(caller) == []


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({}, ""),
        ({"Authorization": f"Bearer {CRON_SECRET}x"}, ""),
        ({"Authorization": CRON_SECRET}, ""),
        ({"Authorization": "Bearer "}, ""),
        ({"X-Webhook-Secret": CRON_SECRET}, ""),
        ({}, f"secret={CRON_SECRET}&token={CRON_SECRET}"),
        ({"Authorization": "Bearer é"}, ""),
    ],
    ids=["none", "wrong", "bare", "empty", "other-header", "address", "letters"],
)
def test_retention_over_http_needs_the_secret(caller: Caller, headers: Json, query: str) -> None:
    """OPS-1, SEC-5"""
    conversation_id = add_conversation(caller, 31)
    assert purge(headers, query=query).problem == (401, "not_signed_in")
    assert kept(caller) == [conversation_id]


@pytest.mark.parametrize("fresh_services", [{"CRON_SECRET": ""}], indirect=True, ids=["no-secret-set"])
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer "}, {"Authorization": "Bearer None"}])
def test_without_a_configured_secret_every_request_is_refused(fresh_services: Services, headers: Json) -> None:
    """SEC-5"""
    assert purge(headers).problem == (401, "not_signed_in")


def test_the_sweeper_starts_a_worker_for_a_job_whose_message_was_lost(caller: Caller, nudges: list[int]) -> None:
    """OPS-2, ING-10"""
    document = caller.announce(size=len(FACT))
    job_id = caller.store(document, FACT)
    assert events.invoke("sweeper", events.load("schedule"))["due"] == [job_id]
    assert nudges == [job_id]


def test_the_sweeper_creates_the_job_of_an_upload_without_an_event(caller: Caller, nudges: list[int]) -> None:
    """OPS-2"""
    document = caller.announce(size=len(FACT))
    caller.row("delete from rag.ingest_jobs where id = %s returning id", caller.store(document, FACT))
    report = events.invoke("sweeper", events.load("schedule"))
    assert report["enqueued"] == 1
    assert nudges == report["due"] == [caller.row("select id from rag.ingest_jobs")["id"]]


def test_the_sweeper_takes_a_job_from_a_dead_worker(caller: Caller, nudges: list[int]) -> None:
    """OPS-2, ING-10"""
    job_id = caller.store(caller.announce(size=len(FACT)), FACT)
    JobStore(caller.services.database).claim_ingest_job(job_id, 0)
    assert events.invoke("sweeper", events.load("schedule"))["due"] == [job_id]
    assert events.invoke(
        "ingest", {"Records": [events.load("sqs")["Records"][0] | {"body": f'{{"job_id": {job_id}}}'}]}
    )
    assert caller.row("select status from rag.ingest_jobs") == {"status": "done"}


def test_the_sweeper_gives_up_a_job_that_kills_every_worker(caller: Caller) -> None:
    """OPS-2, ING-11"""
    document = caller.announce(size=len(FACT))
    job_id = caller.store(document, FACT)
    store = JobStore(caller.services.database)
    for _ in range(2 * caller.services.policy().settings.max_attempts):  # most lost workers were only stopped
        assert store.claim_ingest_job(job_id, 0)
    assert events.invoke("sweeper", events.load("schedule"))["dead"] == 1
    found = caller.call("documents", "GET", f"/api/rag/documents/{document['id']}").json
    assert (found["status"], found["error_code"]) == ("failed", "worker_lost")
    assert "Try again" in found["error"]


def test_a_sweep_with_nothing_to_do_does_nothing(fresh_services: Services, nudges: list[int]) -> None:
    report = events.invoke("sweeper", events.load("schedule"))
    assert report == {"dead": 0, "enqueued": 0, "expired": 0, "orphans": 0, "due": [], "objects": []}
    assert nudges == []


def test_no_index_is_built_for_small_libraries(fresh_services: Services) -> None:
    """RET-2, RET-3: tests/sql/test_nearest_chunks.py and test_posting_lists.py have large ones."""
    assert events.invoke("vector_indexes", events.load("schedule")) == {"built": [], "segments": []}
