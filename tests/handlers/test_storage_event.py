"""The function behind the storage's webhook."""

from __future__ import annotations

import json
from typing import Any

import pytest

from functions.runtime.services import Services
from tests.handlers import events
from tests.handlers.conftest import WEBHOOK_SECRET, Caller
from tests.handlers.events import Answer, Json

SECRET = {"X-Webhook-Secret": WEBHOOK_SECRET}
FACT = b"The boiler burns wood chips in winter."


def send(body: Any, headers: Json = SECRET, **options: Any) -> Answer:
    return events.send("storage_event", events.http("POST", "/api/hooks/storage", body, headers=headers, **options))


def changed(caller: Caller, document: Json, kind: str = "INSERT", **record: Any) -> Json:
    """The webhook event for the object of this document, as the storage's table holds it."""
    path = f"{caller.user.id}/{document['id']}/original.txt"
    version = caller.row("select object_version from rag.ingest_jobs where document_id = %s", document["id"])
    sample = events.load("storage_insert")
    stored = {"name": path, "version": version["object_version"], "metadata": {"size": len(FACT)}}
    sample["record"] |= stored | record
    return sample | {"type": kind, "old_record": sample["record"] if kind == "UPDATE" else None}


@pytest.fixture
def stored(caller: Caller) -> tuple[Json, int]:
    document = caller.announce(size=len(FACT))
    return document, caller.store(document, FACT)


def count_jobs(caller: Caller) -> int:
    return int(caller.row("select count(*) as n from rag.ingest_jobs where owner_id = %s", caller.user.id)["n"])


@pytest.mark.parametrize("kind", ["INSERT", "UPDATE"])
@pytest.mark.parametrize("encoded", [False, True], ids=["text", "base64"])
def test_a_stored_object_starts_a_worker_for_the_job_of_the_trigger(
    caller: Caller, stored: tuple[Json, int], nudges: list[int], kind: str, encoded: bool
) -> None:
    """LIB-3, ING-10"""
    document, job_id = stored
    answer = send(changed(caller, document, kind), encoded=encoded)
    assert (answer.status, answer.json) == (202, {"job_id": job_id})
    assert nudges == [job_id]
    assert count_jobs(caller) == 1


def test_a_repeated_webhook_creates_one_job(caller: Caller, stored: tuple[Json, int]) -> None:
    """ING-10"""
    event = changed(caller, stored[0])
    assert {send(event).json["job_id"] for _ in range(3)} == {stored[1]}
    assert count_jobs(caller) == 1


def test_a_webhook_creates_the_job_when_the_trigger_failed(
    caller: Caller, stored: tuple[Json, int], nudges: list[int]
) -> None:
    """ING-10"""
    document, _ = stored
    event = changed(caller, document)
    caller.row("delete from rag.ingest_jobs where document_id = %s returning id", document["id"])
    job_id = send(event).json["job_id"]
    assert nudges == [job_id]
    assert events.invoke(
        "ingest", {"Records": [events.load("sqs")["Records"][0] | {"body": json.dumps({"job_id": job_id})}]}
    )
    assert caller.call("documents", "GET", f"/api/rag/documents/{document['id']}").json["status"] == "indexed"


@pytest.mark.parametrize(
    "event",
    [
        events.load("storage_delete"),
        events.load("storage_insert"),
        events.load("storage_insert") | {"record": events.load("storage_insert")["record"] | {"bucket_id": "avatars"}},
        events.load("storage_insert") | {"record": events.load("storage_insert")["record"] | {"metadata": None}},
        events.load("storage_insert") | {"record": events.load("storage_insert")["record"] | {"name": "a\x00b"}},
    ],
    ids=["deleted", "no-document", "other-bucket", "no-metadata", "odd-name"],
)
def test_an_event_about_something_else_is_accepted_and_starts_nothing(
    services: Services, nudges: list[int], event: Json
) -> None:
    """LIB-8"""
    answer = send(event)
    assert (answer.status, answer.json, nudges) == (202, {"job_id": None}, [])


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Webhook-Secret": ""},
        {"X-Webhook-Secret": WEBHOOK_SECRET + "x"},
        {"Authorization": f"Bearer {WEBHOOK_SECRET}"},
    ],
    ids=["none", "empty", "wrong", "other-header"],
)
def test_a_webhook_without_the_secret_is_refused(
    caller: Caller, stored: tuple[Json, int], nudges: list[int], headers: Json
) -> None:
    """SEC-5"""
    assert send(changed(caller, stored[0]), headers).problem == (401, "not_signed_in")
    assert nudges == []


def test_the_secret_is_not_accepted_in_the_address(services: Services) -> None:
    """SEC-5"""
    answer = send(events.load("storage_insert"), {}, query=f"x-webhook-secret={WEBHOOK_SECRET}")
    assert answer.problem == (401, "not_signed_in")


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        {"type": "INSERT"},
        events.load("storage_insert") | {"record": None},
        events.load("storage_insert") | {"record": "x"},
        events.load("storage_insert") | {"schema": "public"},
        events.load("storage_insert") | {"table": "buckets"},
        events.load("storage_insert") | {"record": {"bucket_id": "documents"}},
        events.load("storage_insert") | {"record": events.load("storage_insert")["record"] | {"metadata": "big"}},
        events.load("storage_insert")
        | {"record": events.load("storage_insert")["record"] | {"metadata": {"size": "big"}}},
        events.load("storage_insert")
        | {"record": events.load("storage_insert")["record"] | {"metadata": {"size": -1}}},
        events.load("storage_insert")
        | {"record": events.load("storage_insert")["record"] | {"metadata": {"size": 10**30}}},
        events.load("storage_insert")
        | {"record": events.load("storage_insert")["record"] | {"metadata": {"size": float("inf")}}},
        events.load("storage_insert") | {"record": events.load("storage_insert")["record"] | {"name": None}},
    ],
    ids=[
        "nothing",
        "cut",
        "list",
        "null",
        "empty",
        "half",
        "no-record",
        "text",
        "schema",
        "table",
        "bare",
        "metadata",
        "size",
        "negative",
        "huge",
        "infinite",
        "no-name",
    ],
)
def test_a_malformed_webhook_is_refused(services: Services, nudges: list[int], body: Any) -> None:
    answer = send(body)
    assert answer.problem == (400, "invalid_input")
    assert answer.json["request_id"] == "JKJaXmPLvHcESHA="
    assert nudges == []
