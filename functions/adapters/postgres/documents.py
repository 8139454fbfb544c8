"""Documents and their pages; row level security limits every function to the user's own rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any
from uuid import UUID

from psycopg import sql

from functions.adapters.postgres import paging
from functions.adapters.postgres.connection import Connection
from functions.adapters.postgres.ingestion import batches
from functions.core import errors, models

Row = dict[str, Any]


def insert(connection: Connection, values: Row) -> Row:
    """Inserts a document; `values` has every column that the statement names.

    Raises NotFoundError, also for another user's notebook or note, and ConflictError for a note in the trash.
    """
    _check_not_trashed(connection, values["note_id"])
    row = connection.execute(
        """
        insert into rag.documents
            (id, owner_id, notebook_id, note_id, file_name, file_type, mime_type, size_bytes, sha256, object_path)
        select %(id)s, %(owner_id)s, %(notebook_id)s, %(note_id)s, %(file_name)s, %(file_type)s, %(mime_type)s,
            %(size_bytes)s, %(sha256)s, %(object_path)s
        -- Foreign keys bypass row level security: somebody else's notebook must be "not found" here.
        where (%(notebook_id)s::uuid is null or exists (select from rag.notebooks b where b.id = %(notebook_id)s::uuid))
            and (%(note_id)s::uuid is null or exists (select from rag.notes n where n.id = %(note_id)s::uuid))
        returning *
        """,
        values,
    ).fetchone()
    if row is None:
        raise errors.NotFoundError("There is no such notebook or note.")
    return row


def find(connection: Connection, document_id: str) -> Row:
    """The document, or for a duplicate its original, whose `id` differs.

    Raises NotFoundError, also for another user's document.
    """
    row = connection.execute(
        "select d.* from rag.documents a join rag.documents d on d.id = coalesce(a.duplicate_of, a.id) where a.id = %s",
        (document_id,),
    ).fetchone()
    if row is None:
        raise errors.NotFoundError("There is no such document.")
    return row


def read_health(connection: Connection, row: Row) -> Row | None:
    """The health report of a document as it was written, with `translation`, which goes on after the indexing."""
    found = connection.execute("select rag.describe_translation(%s) as translation", (row["generation"],)).fetchone()
    translation = found and found["translation"]
    return row["health"] if row["health"] is None or not translation else {**row["health"], "translation": translation}


def request_translation(connection: Connection, document_id: str) -> int | None:
    """Queues the translation of a document again; returns its generation, None if none was asked for."""
    row = connection.execute("select rag.request_translation(%s) as generation", (document_id,)).fetchone()
    return None if row is None else row["generation"]


def find_all(connection: Connection, document_ids: Collection[str]) -> list[str]:
    """The ids of documents without repetition, those of duplicates replaced by their original's; see `find`."""
    unique_ids = list(dict.fromkeys(document_ids))
    if not unique_ids:
        return []
    rows = connection.execute(
        "select coalesce(d.duplicate_of, d.id)::text as id from unnest(%s::uuid[]) with ordinality w (id, place)"
        " join rag.documents d using (id) order by w.place",
        (unique_ids,),
    ).fetchall()
    if len(rows) < len(unique_ids):
        raise errors.NotFoundError("There is no such document.")
    return [row["id"] for row in rows]


def lock(connection: Connection, document_id: str) -> None:
    """Locks the document until the end of this transaction against uploads and workers that would change it."""
    connection.execute("select from rag.documents where id = %s for update", (document_id,))


def update(connection: Connection, document_id: str, changes: Row) -> Row:
    """Sets `notebook_id` and `note_id`, if given.

    Raises NotFoundError, also for another user's notebook or note, and ConflictError for what is in the trash.
    """
    if find(connection, document_id)["trashed_at"] is not None:
        raise errors.ConflictError("The document is in the trash. Restore it first.")
    check_place(connection, changes.get("notebook_id"), changes.get("note_id"))
    _check_not_trashed(connection, changes.get("note_id"))
    columns = [name for name in ("notebook_id", "note_id") if name in changes]
    row = connection.execute(
        sql.SQL("update rag.documents set {} where id = %(id)s returning *").format(
            sql.SQL(", ").join(sql.SQL("{} = {}").format(sql.Identifier(c), sql.Placeholder(c)) for c in columns)
        ),
        {"id": document_id, **changes},
    ).fetchone()
    if row is None:
        raise errors.NotFoundError("There is no such document.")
    return row


def set_trashed(connection: Connection, document_id: str, trashed: bool) -> Row:
    """Moves a document with its older versions into the trash or out of it; repeating this changes nothing.

    Raises NotFoundError, also for another user's document.
    """
    connection.execute(
        "update rag.documents set trashed_at = case when %(trashed)s then clock_timestamp() end"
        " where %(id)s in (id, superseded_by) and (trashed_at is not null) <> %(trashed)s",
        {"id": find(connection, document_id)["id"], "trashed": trashed},
    )
    return find(connection, document_id)


def check_place(connection: Connection, notebook_id: str | None, note_id: str | None) -> None:
    """Raises NotFoundError unless the user can see the notebook and the note; None is not checked."""
    row = connection.execute(
        "select (%(notebook)s::uuid is null or exists (select from rag.notebooks b where b.id = %(notebook)s::uuid))"
        " and (%(note)s::uuid is null or exists (select from rag.notes n where n.id = %(note)s::uuid)) as known",
        {"notebook": notebook_id, "note": note_id},
    ).fetchone()
    if row is None or not row["known"]:
        raise errors.NotFoundError("There is no such notebook or note.")


def check_scope(
    connection: Connection, document_ids: Collection[str], notebook_id: str | None, note_id: str | None
) -> None:
    """Raises NotFoundError unless the user can see everything named, and ConflictError for a note in the trash."""
    find_all(connection, document_ids)
    if notebook_id or note_id:
        check_place(connection, notebook_id, note_id)
        _check_not_trashed(connection, note_id)


def _check_not_trashed(connection: Connection, note_id: str | None) -> None:
    row = connection.execute("select from rag.notes where id = %s and trashed_at is not null", (note_id,)).fetchone()
    if row is not None:
        raise errors.ConflictError("The note is in the trash. Restore it first.")


def find_duplicate(connection: Connection, sha256: str, size_bytes: int) -> Row | None:
    """The user's document with the same bytes, if its file has arrived and it neither failed nor is in the trash."""
    return connection.execute(
        "select * from rag.live_documents where sha256 = %s and size_bytes = %s"
        " and status not in ('awaiting_upload', 'failed') order by created_at limit 1",
        (sha256, size_bytes),
    ).fetchone()


@dataclass(frozen=True, kw_only=True)
class Listing:
    """What a list of documents shows; fields that are empty or None leave nothing out."""

    statuses: Sequence[str] = ()
    file_type: str | None = None
    lang: str | None = None
    author: str | None = None
    added_from: date | None = None
    added_to: date | None = None
    notebook_id: UUID | None = None
    note_id: UUID | None = None
    title: str | None = None
    trashed: bool = False
    all_versions: bool = False


def list_page(
    connection: Connection, listing: Listing, *, limit: int, cursor: str | None
) -> tuple[list[Row], str | None]:
    """One page, newest first, and the cursor of the next.

    Attachments of a trashed note are listed only if `note_id` names it; `trashed` lists what is in the trash by itself.
    Authors match by the words they contain, whatever their case and accents.
    """
    created_at, last_id = paging.read_time_cursor(cursor)
    listed = "untrashed_documents" if listing.note_id is None and not listing.trashed else "documents"
    rows = connection.execute(
        f"""
        select * from rag.{listed} d
        where d.duplicate_of is null and (%(all_versions)s or d.superseded_by is null)
            and (d.trashed_at is not null) = %(trashed)s
            and (%(statuses)s::text[] = '{{}}' or d.status = any (%(statuses)s::text[]))
            and (%(file_type)s::text is null or d.file_type = %(file_type)s)
            and (%(lang)s::text is null or d.lang = %(lang)s)
            and (%(author)s::text is null or rag.fold(lower(d.ingestion_log ->> 'authors_extracted')) ~ all (array(
                select '\\m' || m[1] from regexp_matches(rag.fold(lower(%(author)s)), '\\w+', 'g') m)))
            and (%(added_from)s::date is null or d.created_at >= %(added_from)s::date)
            and (%(added_to)s::date is null or d.created_at < %(added_to)s::date + 1)
            and (%(notebook_id)s::uuid is null or d.notebook_id = %(notebook_id)s::uuid
                or exists (
                    select from rag.notes n where n.id = d.note_id and n.notebook_id = %(notebook_id)s::uuid))
            and (%(note_id)s::uuid is null or d.note_id = %(note_id)s::uuid)
            and (%(title)s::text is null
                or strpos(lower(coalesce(d.title, '') || ' ' || d.file_name), lower(%(title)s)) > 0)
            and (%(created_at)s::timestamptz is null
                or (d.created_at, d.id) < (%(created_at)s::timestamptz, %(last_id)s::uuid))
        order by d.created_at desc, d.id desc
        limit %(limit)s + 1
        """,
        {
            **asdict(listing),
            "statuses": list(listing.statuses),
            "limit": limit,
            "created_at": created_at,
            "last_id": last_id,
        },
    ).fetchall()
    return paging.cut_page(rows, limit, "created_at", "id")


def list_pending(connection: Connection, scope: models.Scope, limit: int = 5) -> list[str]:
    """The file names of uploaded documents of a scope that cannot be searched yet.

    Only those filters apply whose value is known before a file is read: `source` and `file_type`.
    """
    if scope.filters.get("source") == "note":
        return []
    rows = connection.execute(
        "select d.file_name from rag.live_documents d"
        " where d.status in ('uploaded', 'processing')"
        " and (%(ids)s::uuid[] is null or d.id = any (%(ids)s)) and (%(note)s::uuid is null or d.note_id = %(note)s)"
        " and (%(notebook)s::uuid is null or d.notebook_id = %(notebook)s or exists ("
        "   select from rag.notes n where n.id = d.note_id and n.notebook_id = %(notebook)s))"
        " and (%(file_type)s::text is null or d.file_type = %(file_type)s)"
        " order by d.created_at desc limit %(limit)s",
        {
            "ids": list(scope.document_ids) or None,
            "note": scope.note_id,
            "notebook": scope.notebook_id,
            "file_type": scope.filters.get("file_type"),
            "limit": limit,
        },
    ).fetchall()
    return [row["file_name"] for row in rows]


def read_pages(connection: Connection, document: Row, first: int, last: int) -> list[Row]:
    """The stored texts of pages `first` to `last`."""
    return connection.execute(
        "select page_number, text, warnings, ocr_confidence from rag.pages"
        " where generation = %s and page_number between %s and %s"
        " order by page_number",
        (document["generation"], first, last),
    ).fetchall()


def find_pages(connection: Connection, document: Row, words: str, limit: int) -> list[Row]:
    """The first `limit` pages with the letters and digits of `words` in a row, whatever their case and accents."""
    return connection.execute(
        "select p.page_number, p.text from rag.pages p,"
        " lateral (select regexp_replace(lower(rag.fold(%(words)s)), '[^[:alnum:]]+', '', 'g') as letters) wanted"
        " where p.generation = %(generation)s and wanted.letters <> ''"
        " and strpos(regexp_replace(lower(rag.fold(p.text)), '[^[:alnum:]]+', '', 'g'), wanted.letters) > 0"
        " order by p.page_number limit %(limit)s",
        {"words": words, "generation": document["generation"], "limit": limit},
    ).fetchall()


def read_outline(connection: Connection, document: Row, limit: int) -> list[Row]:
    """The first `limit` sections: `title`, `page`, and `start` and `end` of the title where the page has it there."""
    return connection.execute(
        """
        select s.section_title as title, s.page_start as page, s.start_offset as start,
            case when substr(p.text, s.start_offset + 1, length(s.section_title)) = s.section_title
                then s.start_offset + length(s.section_title) end as end
        from (
            select c.section_title, c.page_start, c.start_offset, c.chunk_index,
                lag(c.section_title) over (order by c.chunk_index) is distinct from c.section_title as is_first
            from rag.chunks c where c.generation = %(generation)s
        ) s
        join rag.pages p on p.generation = %(generation)s and p.page_number = s.page_start
        where s.is_first and s.section_title <> ''
        order by s.chunk_index limit %(limit)s
        """,
        {"generation": document["generation"], "limit": limit},
    ).fetchall()


def read_words(connection: Connection, document: Row, page_number: int) -> tuple[models.RecognizedWord, ...] | None:
    """The words of a page that OCR has read, with their boxes; None for other pages."""
    row = connection.execute(
        "select words from rag.pages where generation = %s and page_number = %s", (document["generation"], page_number)
    ).fetchone()
    return None if row is None or row["words"] is None else batches.unpack_words(row["words"])


def request_ingest_job(connection: Connection, document_id: str) -> int | None:
    """Queues a document and returns the job id, or None without a stored file; see sql/46_request_ingest_job.sql."""
    row = connection.execute("select rag.request_ingest_job(%s) as id", (document_id,)).fetchone()
    assert row is not None
    job_id: int | None = row["id"]
    return job_id


def delete_document(connection: Connection, document_id: str) -> Row:
    """Deletes a document and returns the receipt of sql/47_delete_document.sql; raises NotFoundError."""
    row = connection.execute("select rag.delete_document(%s) as receipt", (document_id,)).fetchone()
    assert row is not None
    if row["receipt"] is None:
        raise errors.NotFoundError("There is no such document.")
    return dict(row["receipt"])
