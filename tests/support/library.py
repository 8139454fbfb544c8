"""Factories for a library: documents indexed through the real job store, with given vectors."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
import psycopg

from functions.adapters.postgres import documents, messages, settings, users
from functions.adapters.postgres.connection import Database
from functions.adapters.postgres.ingestion.translations import TranslationStore
from functions.adapters.postgres.jobs import JobStore
from functions.core import api_keys, models
from functions.core.ingestion import jobs, translation
from functions.core.retrieval import retriever
from functions.core.settings import Settings
from tests.support.local_server import wait_until

T = TypeVar("T")
ADA = models.User("00000000-0000-4000-8000-00000000000a", False, {})
BOB = models.User("00000000-0000-4000-8000-00000000000b", False, {})
DIMENSIONS = 4


def add_server(database: Database, name: str = "test", dimensions: int = DIMENSIONS) -> models.EmbeddingServer:
    """Adds an embedding server; the first one becomes the default."""
    server = models.EmbeddingServer(
        id="", name=name, kind="local", model=name, dimensions=dimensions, max_input_tokens=256, languages=("en",)
    )
    default = settings.ensure_default_server(database, server)
    if default.name == name:
        return default
    with database.as_worker() as connection:
        connection.execute(
            "insert into rag.embedding_servers (name, kind, model, dimensions, max_input_tokens)"
            " values (%s, %s, %s, %s, %s)",
            (name, "local", name, dimensions, 256),
        )
        return next(row.server for row in settings.describe_servers(connection) if row.server.name == name)


def add_notebook(database: Database, user: models.User = ADA, title: str = "Notebook") -> str:
    with database.as_user(user) as connection:
        row = connection.execute(
            "insert into rag.notebooks (owner_id, title) values (%s, %s) returning id", (user.id, title)
        ).fetchone()
    assert row is not None
    return str(row["id"])


def add_key(database: Database, user: models.User = ADA, days: int = 1, scopes: Sequence[str] = ("read",)) -> str:
    """A new API key of a user."""
    key = api_keys.make_key()
    with database.as_user(user) as connection:
        users.insert_key(connection, user, key, "script", scopes, datetime.now(UTC) + timedelta(days=days))
    return key


def add_note(database: Database, user: models.User = ADA, title: str = "Note") -> str:
    with database.as_user(user) as connection:
        row = connection.execute(
            "insert into rag.notes (owner_id, title) values (%s, %s) returning id", (user.id, title)
        ).fetchone()
    assert row is not None
    return str(row["id"])


def make_question(text: str = "What burns?", **fields: Any) -> messages.NewQuestion:
    """A question about the whole library that begins a conversation."""
    given: dict[str, Any] = {"query_text": text, "title": text, "scope": models.Scope("library")}
    return messages.NewQuestion(**given | fields)


def add_document(
    database: Database,
    user: models.User = ADA,
    file_name: str | None = None,
    notebook_id: str | None = None,
    note_id: str | None = None,
) -> str:
    """A document that awaits its upload; the default name is unique, so that it is not a new version of another."""
    document_id = str(uuid4())
    values = {
        "id": document_id,
        "owner_id": user.id,
        "notebook_id": notebook_id,
        "note_id": note_id,
        "file_name": file_name or f"{document_id}.pdf",
        "file_type": "pdf",
        "mime_type": "application/pdf",
        "size_bytes": 10,
        "sha256": None,
        "object_path": object_path(user, document_id),
    }
    with database.as_user(user) as connection:
        documents.insert(connection, values)
    return document_id


def object_path(user: models.User, document_id: str) -> str:
    return f"{user.id}/{document_id}/original.pdf"


def store_object(
    dsn: str,
    user: models.User,
    document_id: str,
    version: str = "1",
    size: int = 10,
    operation: str = "storage.object.upload",
) -> None:
    """Writes the row of an object as Supabase Storage does, as service_role, so that the triggers fire.

    `operation` names the route that writes it: by default that of the secret key's holder.
    """
    with psycopg.connect(dsn) as connection:
        connection.execute("set local role service_role")
        connection.execute("select set_config('storage.operation', %s, true)", (operation,))
        connection.execute(
            "insert into storage.objects (bucket_id, name, version, metadata) values ('documents', %s, %s, %s)"
            " on conflict (bucket_id, name) do update set version = excluded.version, metadata = excluded.metadata",
            (object_path(user, document_id), version, json.dumps({"size": size})),
        )


def make_batch(
    texts: Sequence[str],
    server: models.EmbeddingServer,
    vectors: Sequence[Sequence[float]] | None = None,
    lang: models.Lang = "en",
) -> jobs.Batch:
    """One page per text, one chunk per page; without `vectors` each chunk gets a different unit vector."""
    pages = [models.Page(n, text) for n, text in enumerate(texts, 1)]
    chunks = [
        models.Chunk(n, n + 1, n + 1, 0, len(text), text, text, None, lang, len(text.split()))
        for n, text in enumerate(texts)
    ]
    rows = np.asarray(
        vectors if vectors is not None else np.eye(server.dimensions)[np.arange(len(texts)) % server.dimensions]
    )
    checkpoint = jobs.Checkpoint(len(texts), len(texts))
    return jobs.Batch(pages, chunks, list(rows.astype(np.float32)), server.id, checkpoint, len(texts))


def index_document(
    database: Database,
    dsn: str,
    texts: Sequence[str],
    *,
    server: models.EmbeddingServer,
    user: models.User = ADA,
    vectors: Sequence[Sequence[float]] | None = None,
    lang: models.Lang = "en",
    file_name: str | None = None,
    notebook_id: str | None = None,
    note_id: str | None = None,
) -> str:
    """Indexes a document from upload to finished job; returns its id."""
    document_id = add_document(database, user, file_name, notebook_id, note_id)
    store_object(dsn, user, document_id)
    finish_next_job(database, make_batch(texts, server, vectors, lang))
    return document_id


class HurriedStore(JobStore):
    """A job store for runs with little time: the time is up as soon as one batch is saved."""

    remaining_seconds = 100.0

    def claim_ingest_job(self, job_id: int | None, lease_seconds: int) -> jobs.Job | None:
        self.remaining_seconds = 100.0
        return super().claim_ingest_job(job_id, lease_seconds)

    def save_batch(self, job: jobs.Job, batch: jobs.Batch, lease_seconds: int) -> None:
        super().save_batch(job, batch, lease_seconds)
        self.remaining_seconds = 0.0


def finish_next_job(database: Database, batch: jobs.Batch) -> None:
    """Runs the next due job with one batch."""
    store = JobStore(database)
    job = store.claim_ingest_job(None, 60)
    assert job is not None
    store.save_batch(job, batch, 60)
    facts = {"page_count": batch.page_count, "lang": "en", "ingestion_log": {}, "embedding_server_id": batch.server_id}
    store.finish_ingest_job(job, facts)


def claim_during(save: str, dsn: str, table: str, claim: Callable[[], T | None]) -> T | None:
    """What `claim` returns if its statement begins before the statement `save` and reads `table` after it."""
    assert claim() is None  # the first call of a connection also reads the type of the rows, before it begins
    with ThreadPoolExecutor(1) as pool, psycopg.connect(dsn) as saving:
        saving.execute(f"lock table rag.{table} in access exclusive mode")
        claimed = pool.submit(claim)
        waiting = f"select from pg_locks where not granted and relation = 'rag.{table}'::regclass"
        wait_until(lambda: saving.execute(waiting).fetchone() is not None)
        saving.execute(save)
        saving.commit()
        return claimed.result(timeout=60)


def translate_everything(database: Database, text: str = "Une traduction") -> None:
    """Gives every English passage this text as its translation."""
    store = TranslationStore(database)
    store.queue_translations(["en"])
    while (job := store.claim_translation(None, ["en"], 60)) is not None:
        made = [translation.Translation(passage, "fr", text) for passage in store.list_untranslated(job, 1000)]
        store.save_translations(job, made, 60, models.Usage(), 0.0)
        store.end_translation(job)


def write_posting_lists(dsn: str, large_from: int = 1, segment_chunks: int = 60) -> list[int]:
    """Writes the posting lists of libraries of more than `large_from` passages, which are large from then on.

    Returns the passages of each segment.
    """
    sizes = []
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "create or replace function rag.prefers_posting_lists(scope_count bigint) returns boolean"
            f" language sql immutable parallel safe return scope_count > {large_from:d}"
        )
        while (row := connection.execute("select rag.renew_segments(1, %s)", (segment_chunks,)).fetchone()) != (None,):
            assert row is not None
            sizes.append(row[0])
    return sizes


def make_query(
    text: str = "",
    vectors: Sequence[retriever.QueryVector] = (),
    *,
    lang: str = "en",
    scope: models.Scope | None = None,
    settings: Settings | None = None,
) -> retriever.Query:
    settings = settings or Settings()
    return retriever.Query(
        ((text, lang),), tuple(vectors), scope or models.Scope("library"), settings, settings.blend_alpha
    )
