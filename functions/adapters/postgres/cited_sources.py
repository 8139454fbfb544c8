"""What has become of the sources that saved answers cite; worked out whenever they are read, never stored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from functions.adapters.postgres.connection import Connection
from functions.core import snapshots

Row = dict[str, Any]

_GONE: Row = {"state": "deleted", "superseded_by": None}


def describe(connection: Connection, messages: Sequence[Row]) -> list[Row]:
    """The messages, each source with its `state`, `superseded_by` and `place`.

    A source that is gone has no `place`; a note in the trash and what is attached to it count as gone until restored.
    Where a quotation has moved, page, offsets and `quote` are those of now; where it is lost, those of then.
    """
    facts = _find_facts(connection, messages)
    pages = _read_pages(connection, [row for row in facts.values() if _is_astray(row)])
    return [
        message
        | {
            "sources": [
                _describe_source(source, facts.get((message["id"], at), _GONE), pages)
                for at, source in enumerate(message["sources"], 1)
            ]
        }
        for message in messages
    ]


def read_states(messages: Iterable[Row]) -> dict[str, snapshots.State]:
    """The states of the sources of described messages, by id."""
    return {source["document_id"]: source["state"] for message in messages for source in message["sources"]}


def _find_facts(connection: Connection, messages: Sequence[Row]) -> dict[tuple[Any, int], Row]:
    """By message and place in its sources: state, superseding document, generation, and whether the quote stands."""
    rows = connection.execute(
        """
        select m.id as message_id, s.at, d.superseded_by, c.page_start as page,
            case when d.id is null then n.generation else d.generation end as generation,
            case
                when coalesce(d.id, n.id) is null or n.trashed_at is not null then 'deleted'
                when d.superseded_by is not null then 'superseded'
                else 'current'
            end as state,
            coalesce((
                select substr(p.text, c.start_offset + 1, length(c.quote)) = c.quote from rag.pages p
                where p.generation = case when d.id is null then n.generation else d.generation end
                    and p.page_number = c.page_start
            ), false) as stands
        from rag.messages m
        cross join jsonb_array_elements(m.sources) with ordinality as s (source, at)
        cross join jsonb_to_record(s.source) as c (document_id uuid, page_start int, start_offset int, quote text)
        left join rag.documents d on d.id = c.document_id
        left join rag.notes n on n.id = case when d.id is null then c.document_id else d.note_id end
        where m.id = any (%s::uuid[])
        """,
        ([message["id"] for message in messages],),
    ).fetchall()
    return {(row["message_id"], row["at"]): row for row in rows}


def _is_astray(row: Row) -> bool:
    return row["state"] != "deleted" and not row["stands"]


def _read_pages(connection: Connection, rows: Iterable[Row]) -> dict[int, dict[int, snapshots.StoredPage]]:
    """The cited pages and those beside them, by generation and number."""
    wanted = sorted({(row["generation"], row["page"]) for row in rows if row["generation"] is not None})
    pages: dict[int, dict[int, snapshots.StoredPage]] = defaultdict(dict)
    if not wanted:
        return pages
    found = connection.execute(
        """
        select distinct p.generation, p.page_number, p.text
        from unnest(%s::bigint[], %s::int[]) as w (generation, page)
        join rag.pages p on p.generation = w.generation and p.page_number between w.page - 1 and w.page + 1
        """,
        ([generation for generation, _ in wanted], [page for _, page in wanted]),
    ).fetchall()
    for row in found:
        pages[row["generation"]][row["page_number"]] = snapshots.StoredPage(row["text"])
    return pages


def _describe_source(source: Row, facts: Row, pages: dict[int, dict[int, snapshots.StoredPage]]) -> Row:
    known = source | {
        "state": facts["state"],
        "superseded_by": facts["superseded_by"] if facts["state"] == "superseded" else None,
        "place": None if facts["state"] == "deleted" else "unchanged",
    }
    if not _is_astray(facts):
        return known
    there = pages.get(facts["generation"], {})
    found = snapshots.find_again(source["quote"], source["page_start"], source["start_offset"], there)
    if found is None:
        return known | {"place": "lost"}
    return known | {
        "place": "moved",
        "page_start": found.page,
        "page_end": found.page,
        "start_offset": found.start,
        "end_offset": found.end,
        "quote": there[found.page].text[found.start : found.end],
    }
