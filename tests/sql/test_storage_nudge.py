"""ING-10: a stored object sends an event to the storage function, and a failure to send loses nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from functions.adapters.postgres.connection import Database
from functions.adapters.postgres.jobs import JobStore
from functions.runtime import events
from tests.handlers import events as samples
from tests.support import library
from tests.support.fakes.pg_net import NET, RAISING, VAULT
from tests.support.library import ADA, add_document, store_object

URL, SECRET = "https://api.example.org/api/hooks/storage", "webhook-secret-of-the-tests"

Run = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def run(database: str) -> Run:
    """Runs SQL as the owner of the tables."""

    def run_sql(statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(database, autocommit=True) as connection:
            cursor = connection.execute(statement, parameters)
            return cursor.fetchall() if cursor.description else []

    return run_sql


@pytest.fixture
def installed(run: Run) -> None:
    run(NET + VAULT)
    for name, secret in (("ibid_webhook_url", URL), ("ibid_webhook_secret", SECRET), ("other", "x")):
        run("select vault.create_secret(%s, %s)", secret, name)


def requests_sent(run: Run) -> list[dict[str, Any]]:
    rows = run("select url, body, headers, timeout_milliseconds from net.http_request_queue order by id")
    return [dict(zip(("url", "body", "headers", "timeout"), row, strict=True)) for row in rows]


def jobs_of(run: Run, document_id: str) -> list[str]:
    rows = run("select object_version from rag.ingest_jobs where document_id = %s order by id", document_id)
    return [row[0] for row in rows]


def test_a_stored_object_is_announced_as_the_webhook_would(
    db: Database, database: str, run: Run, installed: None
) -> None:
    document = add_document(db)
    store_object(database, ADA, document, "v1")
    (sent,) = requests_sent(run)
    assert (sent["url"], sent["timeout"]) == (URL, 5000)
    assert sent["headers"] == {"content-type": "application/json", "x-webhook-secret": SECRET}
    path = library.object_path(ADA, document)
    record = {"bucket_id": "documents", "name": path, "version": "v1", "metadata": {"size": 10}}
    assert sent["body"] == {
        "type": "INSERT",
        "schema": "storage",
        "table": "objects",
        "record": record,
        "old_record": None,
    }


def test_the_storage_event_function_accepts_the_sent_event(
    db: Database, database: str, run: Run, installed: None
) -> None:
    """`functions/storage_event.py` reads the body and the secret, and finds the job."""
    document = add_document(db)
    store_object(database, ADA, document, "v1")
    (sent,) = requests_sent(run)
    event = samples.http("POST", "/api/hooks/storage", json.dumps(sent["body"]), headers=sent["headers"])
    stored = events.read_stored_object(event)
    assert stored == events.StoredObjectEvent(library.object_path(ADA, document), "v1", 10)
    job_id = JobStore(db).enqueue_stored_object(stored.path, stored.version, stored.size)
    assert run("select id from rag.ingest_jobs") == [(job_id,)]


def test_each_version_is_announced_once(db: Database, database: str, run: Run, installed: None) -> None:
    document = add_document(db)
    for version in ("v1", "v1", "v2"):
        store_object(database, ADA, document, version)
    run("update storage.objects set last_accessed_at = now(), version = version")
    sent = requests_sent(run)
    assert [(request["body"]["type"], request["body"]["record"]["version"]) for request in sent] == [
        ("INSERT", "v1"),
        ("UPDATE", "v2"),
    ]
    assert jobs_of(run, document) == ["v1", "v2"]


def test_objects_without_a_job_are_not_announced(db: Database, run: Run, installed: None) -> None:
    run("insert into storage.buckets (id, name) values ('avatars', 'avatars')")
    for bucket, name in (("documents", "nobody/knows/original.pdf"), ("avatars", "a.png")):
        run("insert into storage.objects (bucket_id, name, version) values (%s, %s, '1')", bucket, name)
    assert requests_sent(run) == []


def test_an_upload_that_is_rolled_back_is_not_announced(db: Database, database: str, run: Run, installed: None) -> None:
    path = library.object_path(ADA, add_document(db))
    with psycopg.connect(database) as connection:
        connection.execute(
            "insert into storage.objects (bucket_id, name, version) values ('documents', %s, '1')", (path,)
        )
        connection.rollback()
    assert requests_sent(run) == []


@pytest.mark.parametrize(
    "lost",
    [
        "drop schema net cascade",
        "drop function net.http_post(text, jsonb, jsonb, jsonb, int)",
        "drop schema vault cascade",
        "delete from vault.secrets",
        "delete from vault.secrets where name = 'ibid_webhook_url'",
        "delete from vault.secrets where name = 'ibid_webhook_secret'",
        "update vault.secrets set secret = '' where name = 'ibid_webhook_secret'",
    ],
    ids=["pg_net", "http_post", "vault", "secrets", "url", "secret", "empty-secret"],
)
def test_without_the_extensions_or_secrets_nothing_is_sent_and_the_job_is_kept(
    db: Database, database: str, run: Run, installed: None, lost: str
) -> None:
    run(lost)
    document = add_document(db)
    assert warnings_of(database, document) == []
    assert jobs_of(run, document) == ["v1"]
    if "net" not in lost:
        assert requests_sent(run) == []


@pytest.mark.parametrize(
    "broken",
    [
        RAISING,
        "drop table net.http_request_queue",
        "drop view vault.decrypted_secrets; create view vault.decrypted_secrets as"
        " select name, (1 / (length(name) * 0))::text as decrypted_secret from vault.secrets",
        "drop view vault.decrypted_secrets; create view vault.decrypted_secrets as select name from vault.secrets",
    ],
    ids=["http_post-raises", "queue-gone", "undecryptable", "other-columns"],
)
def test_an_event_that_fails_loses_neither_the_upload_nor_the_job(
    db: Database, database: str, run: Run, installed: None, broken: str
) -> None:
    run(broken)
    document = add_document(db)
    (warning,) = warnings_of(database, document)
    assert warning.startswith(f"no storage event was sent for {library.object_path(ADA, document)}: ")
    assert SECRET not in warning
    assert jobs_of(run, document) == ["v1"]
    assert run("select count(*) from storage.objects") == [(1,)]


def test_the_sweeper_finds_a_job_whose_event_was_lost(db: Database, database: str, run: Run, installed: None) -> None:
    """OPS-2: the queue of pg_net is an unlogged table, empty after a crash."""
    store_object(database, ADA, add_document(db), "v1")
    run("truncate net.http_request_queue")
    report = JobStore(db).sweep_ingest_jobs(5)
    assert [(job_id,) for job_id in report["due"]] == run("select id from rag.ingest_jobs")


@pytest.mark.parametrize("role", ["anon", "authenticated", "service_role", "rag_worker"])
def test_nobody_can_read_the_secret_or_send_it_elsewhere(run: Run, installed: None, database: str, role: str) -> None:
    """SEC-2: the secret is sent to the configured address only."""
    with psycopg.connect(database) as connection:
        connection.execute(f"set role {role}".encode())
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("select rag.send_storage_event('INSERT', 'a', '1', 1)")


def warnings_of(dsn: str, document_id: str) -> list[str]:
    """Writes the row of an object as the storage does; returns the warnings of the database."""
    messages: list[str] = []
    with psycopg.connect(dsn) as connection:
        connection.add_notice_handler(lambda notice: messages.append(notice.message_primary or ""))
        connection.execute("set local role service_role")
        connection.execute(
            "insert into storage.objects (bucket_id, name, version, metadata)"
            " values ('documents', %s, 'v1', '{\"size\": 10}')",
            (library.object_path(ADA, document_id),),
        )
    return messages
