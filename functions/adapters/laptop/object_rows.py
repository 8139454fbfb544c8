"""Writes storage.objects for the laptop's store as Supabase Storage does, so that the same trigger queues jobs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import psycopg

from functions.adapters.laptop.object_store import ReceivedObject
from functions.adapters.postgres.connection import Database
from functions.core import errors, ports

SIGNED_UPLOAD: Final = "storage.object.upload_signed"
"""How Supabase Storage names the route of signed upload URLs, which takes one file for each."""


@contextmanager
def record(database: Database, stored: ReceivedObject, operation: str = "") -> Iterator[None]:
    """Writes the row of an object, and commits it once the block has moved the file.

    Raises NotFoundError when no document has this path, for instance because it was deleted during the upload, and
    ConflictError when the document has a file already.
    """
    metadata = {"size": stored.size, "mimetype": stored.mime_type, "contentLength": stored.size, "httpStatusCode": 200}
    with database.as_worker() as connection:
        if connection.execute("select from rag.documents where object_path = %s", (stored.path,)).fetchone() is None:
            raise errors.NotFoundError("No document is waiting for this file. Create the document again.")
        connection.execute(
            "select set_config('role', 'service_role', true), set_config('storage.operation', %s, true)", (operation,)
        )
        try:
            connection.execute(
                "insert into storage.objects (bucket_id, name, version, metadata) values (%s, %s, %s, %s)"
                " on conflict (bucket_id, name) do update"
                " set version = excluded.version, metadata = excluded.metadata, updated_at = now()",
                (ports.BUCKET, stored.path, stored.version, json.dumps(metadata)),
            )
        except psycopg.errors.UniqueViolation as exc:  # of rag.refuse_second_upload
            raise errors.ConflictError(
                "A file has already arrived through this upload link. Create a document for each file."
            ) from exc
        yield


def forget(database: Database, paths: Sequence[str]) -> None:
    """Deletes the rows of removed objects."""
    with database.as_worker() as connection:
        connection.execute("select set_config('role', 'service_role', true)")
        connection.execute(
            "delete from storage.objects where bucket_id = %s and name = any(%s)", (ports.BUCKET, list(paths))
        )
