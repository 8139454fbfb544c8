"""Writes storage.objects for the laptop's store as Supabase Storage does, so that the same trigger queues jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from functions.adapters.postgres.connection import Database
from functions.core import errors, models


def record(database: Database, bucket: str, stored: models.StoredObject, version: str) -> None:
    """Writes the row of a completely stored object: an insert, or an update of the version if it was overwritten.

    Raises NotFoundError when no document has this path, for instance because it was deleted during the upload.
    """
    metadata = {"size": stored.size, "mimetype": stored.mime_type, "contentLength": stored.size, "httpStatusCode": 200}
    with database.as_worker() as connection:
        if connection.execute("select from rag.documents where object_path = %s", (stored.path,)).fetchone() is None:
            raise errors.NotFoundError("No document is waiting for this file. Create the document again.")
        connection.execute("select set_config('role', 'service_role', true)")
        connection.execute(
            "insert into storage.objects (bucket_id, name, version, metadata) values (%s, %s, %s, %s)"
            " on conflict (bucket_id, name) do update"
            " set version = excluded.version, metadata = excluded.metadata, updated_at = now()",
            (bucket, stored.path, version, json.dumps(metadata)),
        )


def forget(database: Database, bucket: str, paths: Sequence[str]) -> None:
    """Deletes the rows of removed objects."""
    with database.as_worker() as connection:
        connection.execute("select set_config('role', 'service_role', true)")
        connection.execute("delete from storage.objects where bucket_id = %s and name = any(%s)", (bucket, list(paths)))
