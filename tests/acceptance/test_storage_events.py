"""Storage events that arrive twice, out of order, late or never, and documents deleted meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import psycopg
import pytest

from functions import sweeper
from functions.adapters import sqs
from functions.adapters.laptop import object_rows
from functions.adapters.laptop.object_store import LocalObjectStore
from functions.adapters.postgres import documents
from functions.adapters.postgres.connection import Connection
from tests.acceptance.support import inside, stored_state
from tests.acceptance.support.prose import write_markdown
from tests.handlers import events
from tests.support.local_server import Json, LocalServer, Person, problem_of, run_local_server

OLD, NEW = b"The old boiler burns peat and coal.", b"The new boiler burns wood and nothing else."
LONG = write_markdown("valleys", 24).encode()
SECRET = "webhook-secret-of-the-tests"
Step = Callable[[], Any]


@pytest.fixture(scope="module")
def server(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server without a worker. The cloud's handlers use the same services, and every nudge is lost."""
    config = {"webhook_secret": SECRET, "ingest_queue_url": "https://sqs.example.org/1/jobs"}
    with (
        pytest.MonkeyPatch.context() as patch,
        run_local_server(module_database, tmp_path_factory.mktemp("home"), worker=False, **config) as running,
    ):
        patch.setattr(sqs, "send_job", lambda url, job_id: None)
        events.share_services(patch, running.services)
        yield running


@pytest.fixture
def ada(server: LocalServer) -> Iterator[Person]:
    with server.person("Ada") as person:
        yield person


def send_event(person: Person, ticket: Json, version: str, size: int = 10) -> int | None:
    """Sends the database webhook of a stored object; returns the job in the response."""
    sample = events.load("storage_insert")
    path = f"{person.id}/{ticket['document']['id']}/original.txt"
    sample["record"] |= {"name": path, "version": version, "metadata": {"size": size}}
    headers = {"X-Webhook-Secret": SECRET}
    answer = events.send("storage_event", events.http("POST", "/api/hooks/storage", sample, headers=headers))
    assert answer.status == 202, answer.content
    job_id: int | None = answer.json["job_id"]
    return job_id


def put(person: Person, ticket: Json, content: bytes) -> str:
    """Stores bytes; returns their version."""
    assert person.put(ticket, content).is_success
    return version_of(person, ticket)


def replace_file(person: Person, ticket: Json, content: bytes) -> str:
    """Stores other bytes, as the holder of the secret key may; returns their version."""
    services = person.server.services
    assert isinstance(services.objects, LocalObjectStore)
    record = partial(object_rows.record, services.database, operation="storage.object.upload_update")
    path = f"{person.id}/{ticket['document']['id']}/original.txt"
    return services.objects.put(path, [content], record=record).version


def version_of(person: Person, ticket: Json) -> str:
    with person.server.services.database.autocommit() as connection:
        row = connection.execute(
            "select version from storage.objects where name like %s", (f"%/{ticket['document']['id']}/%",)
        ).fetchone()
    assert row is not None
    return str(row["version"])


def run_due_jobs(server: LocalServer) -> list[str]:
    outcomes = []
    while (outcome := server.services.make_worker().ingest_next()) is not None:
        outcomes.append(outcome.status)
    return outcomes


def work_once(server: LocalServer) -> Step:
    return lambda: server.services.make_worker().ingest_next()


def text_of(person: Person, ticket: Json) -> str:
    return str(person.get(f"/documents/{ticket['document']['id']}/text")["pages"][0]["text"])


def jobs_of(server: LocalServer, ticket: Json) -> list[tuple[str, str]]:
    """Kind and status of each job of a document, in order."""
    with server.services.database.as_worker() as connection:
        rows = connection.execute(
            "select kind, status from rag.ingest_jobs where document_id = %s order by id", (ticket["document"]["id"],)
        ).fetchall()
    return [(row["kind"], row["status"]) for row in rows]


def run_at_once(*steps: Step) -> None:
    """Runs each step in its own thread, started together; raises the first failure."""
    barrier, failures = threading.Barrier(len(steps)), []

    def run(step: Step) -> None:
        barrier.wait()
        try:
            step()
        except BaseException as exc:
            failures.append(exc)

    threads = [threading.Thread(target=run, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


# Twice


@pytest.mark.parametrize("is_triggered", [True, False], ids=["with-trigger", "without-trigger"])
def test_one_version_with_many_concurrent_events_is_ingested_once(
    server: LocalServer, ada: Person, module_database: str, is_triggered: bool
) -> None:
    """ING-10, LIB-3"""
    ticket = ada.announce("boiler.txt", NEW).json()
    if is_triggered:
        version = put(ada, ticket, NEW)
    else:
        with stored_state.trigger_disabled(module_database):
            version = put(ada, ticket, NEW)
    tell = partial(send_event, ada, ticket, version)
    finalize = partial(ada.post, f"/documents/{ticket['document']['id']}/finalize")
    sweep = partial(sweeper.sweep, server.services)
    run_at_once(tell, tell, tell, finalize, finalize, sweep, sweep, work_once(server), work_once(server))
    run_due_jobs(server)
    assert jobs_of(server, ticket) == [("ingest", "done")]
    rows = stored_state.count_rows(module_database, ada.id)
    assert (rows["generations"], rows["pages"], rows["chunks"], rows["chunk_vectors"]) == (1, 1, 1, 1)
    run_at_once(tell, tell, finalize, sweep, sweep)
    assert jobs_of(server, ticket) == [("ingest", "done")]
    assert ada.get(f"/documents/{ticket['document']['id']}")["status"] == "indexed"


def test_finalize_during_the_end_of_the_upload_ingests_once(
    server: LocalServer, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIB-3"""
    ticket = ada.announce("boiler.txt", NEW).json()
    request, arrivals = documents.request_ingest_job, []

    def request_late(connection: Connection, document_id: str) -> int | None:
        """Stores the bytes and runs a worker just before finalize looks for a job, unless a lock makes them wait."""
        arrivals.append(threading.Thread(target=lambda: (put(ada, ticket, NEW), run_due_jobs(server))))
        arrivals[0].start()
        arrivals[0].join(1)
        return request(connection, document_id)

    monkeypatch.setattr(documents, "request_ingest_job", request_late)
    ada.http.post(f"/api/rag/documents/{ticket['document']['id']}/finalize")
    arrivals[0].join()
    run_due_jobs(server)
    assert jobs_of(server, ticket) == [("ingest", "done")]


# Out of order


def test_the_newest_bytes_win_in_any_order_of_their_events(
    server: LocalServer, ada: Person, module_database: str
) -> None:
    """ING-10"""
    ticket = ada.announce("boiler.txt", NEW).json()
    with stored_state.trigger_disabled(module_database):
        old, new = put(ada, ticket, OLD), put(ada, ticket, NEW)
    send_event(ada, ticket, new)
    send_event(ada, ticket, old)
    assert run_due_jobs(server) == ["done"]
    assert text_of(ada, ticket) == NEW.decode()
    sweeper.sweep(server.services)
    assert run_due_jobs(server) == []


def test_an_old_event_after_the_indexing_changes_nothing(
    server: LocalServer, ada: Person, module_database: str
) -> None:
    """ING-10"""
    ticket = ada.announce("boiler.txt", NEW).json()
    with stored_state.trigger_disabled(module_database):
        old = put(ada, ticket, OLD)
    new = put(ada, ticket, NEW)
    run_due_jobs(server)
    for version in (old, new, old):
        send_event(ada, ticket, version)
    assert run_due_jobs(server) == []
    found = ada.get(f"/documents/{ticket['document']['id']}")
    assert (found["status"], text_of(ada, ticket)) == ("indexed", NEW.decode())


@pytest.mark.parametrize("is_triggered", [True, False], ids=["with-trigger", "without-trigger"])
def test_new_bytes_during_the_ingestion_of_the_old_ones_replace_them(
    server: LocalServer, ada: Person, module_database: str, is_triggered: bool
) -> None:
    """ING-10"""
    ticket = ada.announce("boiler.txt", LONG).json()
    put(ada, ticket, LONG)

    def store_new() -> None:
        if is_triggered:
            replace_file(ada, ticket, NEW)
            return
        with stored_state.trigger_disabled(module_database):
            replace_file(ada, ticket, NEW)
        sweeper.sweep(server.services)

    assert interrupt_second_batch(server, ticket, store_new) == "superseded"
    assert run_due_jobs(server) == ["done"]
    assert text_of(ada, ticket) == NEW.decode()
    assert jobs_of(server, ticket) == [("ingest", "superseded"), ("ingest", "done")]
    sweeper.sweep(server.services)
    assert stored_state.find_leftovers(module_database, server.services.config.home / "storage") == {}


def interrupt_second_batch(server: LocalServer, ticket: Json, happen: Step) -> str:
    """Ingests a long document and calls `step` between two batches; returns the outcome."""
    asked = iter(range(10**6))

    def remaining() -> float:
        if next(asked) == 1:  # the first batch is saved
            happen()
        return inside.HOUR

    job_id = inside.job_of(server, ticket["document"]["id"])["id"]
    outcome = replace(server.services.make_worker(), remaining_seconds=remaining).ingest_next(job_id)
    assert outcome is not None
    return outcome.status


# Never


def test_the_sweeper_finds_an_object_without_an_event(server: LocalServer, ada: Person, module_database: str) -> None:
    """ING-10, OPS-2"""
    ticket = ada.announce("boiler.txt", NEW).json()
    with stored_state.trigger_disabled(module_database):
        put(ada, ticket, NEW)
    assert run_due_jobs(server) == []
    reports = [sweeper.sweep(server.services) for _ in range(2)]
    assert [report["enqueued"] for report in reports] == [1, 0]
    assert run_due_jobs(server) == ["done"]
    assert jobs_of(server, ticket) == [("ingest", "done")]


def test_the_sweeper_names_a_job_without_a_nudge_until_it_is_done(server: LocalServer, ada: Person) -> None:
    """ING-10, OPS-2"""
    ticket = ada.announce("boiler.txt", NEW).json()
    put(ada, ticket, NEW)
    job_id = inside.job_of(server, ticket["document"]["id"])["id"]
    assert [sweeper.sweep(server.services)["due"] for _ in range(2)] == [[job_id], [job_id]]
    server.services.make_worker().ingest_next(job_id)
    assert sweeper.sweep(server.services)["due"] == []


def test_an_event_for_a_path_without_a_document_creates_no_job(
    server: LocalServer, ada: Person, module_database: str
) -> None:
    ticket = ada.announce("boiler.txt", NEW).json()
    ada.http.delete(f"/api/rag/documents/{ticket['document']['id']}")
    assert send_event(ada, ticket, "1") is None
    assert stored_state.count_rows(module_database, ada.id) == {}


# Deleted


def announce(server: LocalServer, person: Person) -> Json:
    return dict(person.announce("valleys.txt", LONG).json())


def store(server: LocalServer, person: Person) -> Json:
    ticket = announce(server, person)
    put(person, ticket, LONG)
    return ticket


def index(server: LocalServer, person: Person) -> Json:
    ticket = store(server, person)
    run_due_jobs(server)
    return ticket


def leave_half_done(server: LocalServer, person: Person) -> Json:
    """Leaves a document half ingested: a worker has saved a batch and died."""
    ticket = store(server, person)
    stop_after_a_batch(server, ticket)
    return ticket


def leave_reindexing_half_done(server: LocalServer, person: Person) -> Json:
    ticket = index(server, person)
    person.post(f"/documents/{ticket['document']['id']}/reindex")
    stop_after_a_batch(server, ticket)
    return ticket


class Killed(BaseException):
    """No `except Exception` catches it, so it ends the worker like a kill."""


def stop_after_a_batch(server: LocalServer, ticket: Json) -> None:
    def die() -> None:
        raise Killed

    with pytest.raises(Killed):
        interrupt_second_batch(server, ticket, die)


def fail(server: LocalServer, person: Person) -> Json:
    ticket = announce(server, person)
    put(person, ticket, b" \n ")
    run_due_jobs(server)
    return ticket


def wait_for_another_try(server: LocalServer, person: Person) -> Json:
    """A transient failure after the first batch."""
    ticket = store(server, person)
    stop_after_a_batch(server, ticket)
    with server.services.database.as_worker() as connection:
        connection.execute(
            "select rag.fail_ingest_job(id, lease_token, 'storage_unavailable', 'Wait.', true, 5) from rag.ingest_jobs"
            " where owner_id = %s",
            (person.id,),
        )
    return ticket


@pytest.mark.parametrize(
    ("status", "make"),
    [
        ("awaiting_upload", announce),
        ("uploaded", store),
        ("processing", leave_half_done),
        ("processing", wait_for_another_try),
        ("indexed", index),
        ("reindexing", leave_reindexing_half_done),
        ("failed", fail),
    ],
    ids=["announced", "uploaded", "half-done", "to-be-tried-again", "indexed", "half-reindexed", "failed"],
)
def test_deleting_in_any_status_leaves_nothing_anywhere(
    server: LocalServer, ada: Person, module_database: str, status: str, make: Callable[[LocalServer, Person], Json]
) -> None:
    """LIB-8"""
    ticket = make(server, ada)
    document_id = ticket["document"]["id"]
    assert ada.get(f"/documents/{document_id}")["status"] == status
    assert ada.http.delete(f"/api/rag/documents/{document_id}").is_success
    assert stored_state.count_rows(module_database, ada.id) == {}
    assert stored_state.find_leftovers(module_database, server.services.config.home / "storage") == {}
    assert run_due_jobs(server) == []


def test_deleting_while_a_worker_saves_a_batch_leaves_nothing(
    server: LocalServer, ada: Person, module_database: str
) -> None:
    """LIB-8"""
    ticket = store(server, ada)
    delete = partial(ada.http.delete, f"/api/rag/documents/{ticket['document']['id']}")
    assert interrupt_second_batch(server, ticket, delete) == "superseded"
    assert stored_state.count_rows(module_database, ada.id) == {}
    assert stored_state.find_leftovers(module_database, server.services.config.home / "storage") == {}


def test_deleting_and_ingesting_at_the_same_time_never_deadlock(
    server: LocalServer, ada: Person, module_database: str
) -> None:
    """LIB-8"""
    tickets = [ada.announce(f"{n}.txt", NEW).json() for n in range(8)]
    for number, ticket in enumerate(tickets):
        put(ada, ticket, NEW + str(number).encode())
    addresses = [f"/api/rag/documents/{ticket['document']['id']}" for ticket in tickets]

    def delete(some: list[str]) -> None:
        assert [ada.http.delete(address).status_code for address in some] == [200] * len(some)

    run_at_once(
        partial(run_due_jobs, server),
        partial(run_due_jobs, server),
        partial(delete, addresses[::2]),
        partial(delete, addresses[1::2]),
        partial(sweeper.sweep, server.services),
    )
    assert stored_state.count_rows(module_database, ada.id) == {}
    sweeper.sweep(server.services)
    assert stored_state.find_leftovers(module_database, server.services.config.home / "storage") == {}


def test_bytes_stored_after_the_deletion_are_swept(server: LocalServer, ada: Person, module_database: str) -> None:
    """LIB-8, OPS-2"""
    ticket = announce(server, ada)
    path = f"{ada.id}/{ticket['document']['id']}/original.txt"
    ada.http.delete(f"/api/rag/documents/{ticket['document']['id']}")
    assert problem_of(ada.put(ticket, NEW)) == (404, "not_found")
    # Supabase Storage does not ask Ibid first: it stores the bytes and writes the row.
    objects = server.services.objects
    assert isinstance(objects, LocalObjectStore)
    objects.put(path, [NEW])
    with psycopg.connect(module_database) as connection:
        connection.execute(
            "insert into storage.objects (bucket_id, name, version) values ('documents', %s, '1')", (path,)
        )
    assert sweeper.sweep(server.services)["objects"] == [path]
    assert stored_state.find_leftovers(module_database, server.services.config.home / "storage") == {}
