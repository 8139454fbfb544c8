"""The worker function on messages of the queue."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from functions.runtime.services import Services
from tests.handlers import events
from tests.handlers.conftest import Caller
from tests.handlers.events import Json
from tests.support import documents
from tests.support.library import HurriedStore

FACT = b"The boiler burns wood chips in winter."
DONE: Json = {"batchItemFailures": []}


def message(body: str, message_id: str = "m-1") -> Json:
    record: Json = events.load("sqs")["Records"][0] | {"messageId": message_id, "body": body}
    return record


def batch(*bodies: Any) -> Json:
    """A batch of messages m-0, m-1, …; a number stands for the message of that job."""
    texts = [f'{{"job_id": {body}}}' if isinstance(body, int) else body for body in bodies]
    return {"Records": [message(text, f"m-{at}") for at, text in enumerate(texts)]}


def failed(*message_ids: str) -> Json:
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in message_ids]}


@pytest.fixture
def queued(caller: Caller) -> tuple[Json, int]:
    """A small document and its waiting job."""
    document = caller.announce(size=len(FACT))
    return document, caller.store(document, FACT)


def job(caller: Caller, job_id: int) -> Json:
    return caller.row("select status, attempts, checkpoint, error_code from rag.ingest_jobs where id = %s", job_id)


def document_of(caller: Caller, document: Json) -> Json:
    found: Json = caller.call("documents", "GET", f"/api/rag/documents/{document['id']}").json
    return found


def test_a_message_runs_its_job(caller: Caller, queued: tuple[Json, int], nudges: list[int]) -> None:
    """ING-10"""
    document, job_id = queued
    assert events.invoke("ingest", batch(job_id)) == DONE
    assert job(caller, job_id)["status"] == "done"
    found = document_of(caller, document)
    assert (found["status"], found["chunk_count"], found["page_count"]) == ("indexed", 1, 1)
    assert nudges == []


def test_a_message_delivered_twice_is_processed_once(caller: Caller, queued: tuple[Json, int]) -> None:
    """ING-10"""
    document, job_id = queued
    assert [events.invoke("ingest", batch(job_id, job_id)) for _ in range(2)] == [DONE, DONE]
    assert document_of(caller, document)["chunk_count"] == 1
    assert caller.row("select count(*) as n from rag.chunks where owner_id = %s", caller.user.id) == {"n": 1}


@pytest.mark.parametrize(
    "poison",
    ["", "{", "[]", "null", "{}", '{"job_id": "x"}', '{"job_id": null}', '{"job_id": {}}', f'{{"job_id": {10**30}}}'],
)
def test_a_poisoned_message_does_not_block_the_others(caller: Caller, queued: tuple[Json, int], poison: str) -> None:
    """ING-10"""
    _, job_id = queued
    assert events.invoke("ingest", batch(poison, job_id)) == failed("m-0")
    assert job(caller, job_id)["status"] == "done"


def test_a_message_for_a_deleted_job_succeeds(services: Services) -> None:
    assert events.invoke("ingest", batch(2**40)) == DONE


def test_the_message_of_an_unreadable_document_is_not_redelivered(caller: Caller, nudges: list[int]) -> None:
    """ING-11"""
    document = caller.announce("a.pdf", 9)
    job_id = caller.store(document, b"no PDF!!!")
    assert events.invoke("ingest", batch(job_id)) == DONE
    assert (job(caller, job_id)["status"], job(caller, job_id)["error_code"]) == ("failed", "unsupported_type")
    assert document_of(caller, document)["error_code"] == "unsupported_type"
    assert nudges == []


def test_a_file_missing_from_the_storage_fails_with_a_reason(
    services: Services, caller: Caller, queued: tuple[Json, int]
) -> None:
    document, job_id = queued
    path = services.config.home / "storage" / "documents" / caller.user.id / document["id"] / "original.txt"
    path.unlink()
    assert events.invoke("ingest", batch(job_id)) == DONE
    found = document_of(caller, document)
    assert (found["status"], found["error_code"]) == ("failed", "not_found")


# Time


def test_too_little_time_leaves_the_job_untouched_and_queues_it_again(
    caller: Caller, queued: tuple[Json, int], nudges: list[int]
) -> None:
    """ING-10"""
    document, job_id = queued
    assert events.invoke("ingest", batch(job_id), seconds=5) == DONE
    assert job(caller, job_id) == {"status": "queued", "attempts": 0, "checkpoint": {}, "error_code": None}
    assert document_of(caller, document)["status"] == "uploaded"
    assert nudges == [job_id]
    assert events.invoke("ingest", batch(job_id)) == DONE
    assert document_of(caller, document)["status"] == "indexed"


def test_a_long_document_resumes_after_the_last_saved_page(
    services: Services, caller: Caller, tmp_path: Path, nudges: list[int]
) -> None:
    """ING-10, ING-7"""
    texts = [f"Page {number} says that boiler {number} burns wood." for number in range(1, 20)]
    content = documents.make_pdf(tmp_path / "long.pdf", *texts).read_bytes()
    document = caller.announce("long.pdf", len(content))
    job_id = caller.store(document, content)
    store = HurriedStore(services.database)
    hurried = replace(services.make_worker(), store=store, remaining_seconds=lambda: store.remaining_seconds)
    hurried.ingest_next(job_id)
    assert events.invoke("ingest", batch(job_id), seconds=5) == DONE
    assert nudges == [job_id]
    assert job(caller, job_id)["status"] == "queued"
    assert job(caller, job_id)["checkpoint"]["pages_done"] == 8
    assert document_of(caller, document)["progress"] == {"done": 8, "total": 19}
    assert events.invoke("ingest", batch(job_id)) == DONE
    found = document_of(caller, document)
    assert (found["status"], found["page_count"], found["chunk_count"]) == ("indexed", 19, 19)
    pages = caller.row(
        "select array_agg(c.chunk_index order by c.chunk_index) as at,"
        " array_agg(c.page_start order by c.chunk_index) as pages"
        " from rag.chunks c join rag.documents d on d.generation = c.generation where d.id = %s",
        document["id"],
    )
    assert pages == {"at": list(range(19)), "pages": list(range(1, 20))}
