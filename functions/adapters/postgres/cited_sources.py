"""Compares saved citations with their sources as they are now.

The result is computed on each read and never stored, because sources change without their citations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from functions.adapters.postgres.connection import Connection
from functions.core.citations import relocation

Row = dict[str, Any]

_GONE: Row = {"state": "deleted", "superseded_by": None}
_WHITE_SPACE = " \t\n\r\f\u00a0\u2009\u202f"
_MIN_LETTERS = 20
"""A quotation is searched beyond the neighbouring pages only if it has so many letters and digits."""
_MAX_WHOLE_DOCUMENT_SEARCHES = 100  # quotations of one read


def describe(connection: Connection, messages: Sequence[Row]) -> list[Row]:
    """The messages, with `state`, `superseded_by` and `place` added to each source.

    A deleted source has no `place`; what is in the trash counts as deleted until it is restored.
    A moved quotation has its present page, offsets and `quote`; a lost one keeps those that were saved.
    """
    facts = _find_facts(connection, messages)
    displaced = [
        (facts[message["id"], at], source["quote"])
        for message in messages
        for at, source in enumerate(message["sources"], 1)
        if _is_displaced(facts.get((message["id"], at), _GONE))
    ]
    pages = _read_pages(connection, displaced)
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


def read_states(messages: Iterable[Row]) -> dict[str, relocation.State]:
    """The states of the sources of described messages, by id."""
    return {source["source_id"]: source["state"] for message in messages for source in message["sources"]}


def _find_facts(connection: Connection, messages: Sequence[Row]) -> dict[tuple[Any, int], Row]:
    """By message id and position among its sources: state, superseding document, generation, and whether the page
    still has the quote at the saved offset (`stands`).
    """
    rows = connection.execute(
        """
        select m.id as message_id, s.at, d.superseded_by, c.page_start as page,
            case when d.id is null then n.generation else d.generation end as generation,
            case
                when coalesce(d.id, n.id) is null or coalesce(d.trashed_at, n.trashed_at) is not null then 'deleted'
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
        cross join jsonb_to_record(s.source) as c (source_id uuid, page_start int, start_offset int, quote text)
        left join rag.documents d on d.id = c.source_id
        left join rag.notes n on n.id = case when d.id is null then c.source_id else d.note_id end
        where m.id = any (%s::uuid[])
        """,
        ([message["id"] for message in messages],),
    ).fetchall()
    return {(row["message_id"], row["at"]): row for row in rows}


def _is_displaced(row: Row) -> bool:
    """Whether the source exists but no longer has the quotation at the saved offset."""
    return row["state"] != "deleted" and not row["stands"]


def _read_pages(
    connection: Connection, displaced: Iterable[tuple[Row, str]]
) -> dict[int, dict[int, relocation.StoredPage]]:
    """By generation and page number: the cited pages, their neighbours, and every page that contains the quotation.

    White space is ignored in that comparison, because another extraction may break lines elsewhere.
    """
    wanted = [(row["generation"], row["page"], quote) for row, quote in displaced if row["generation"] is not None]
    pages: dict[int, dict[int, relocation.StoredPage]] = defaultdict(dict)
    if not wanted:
        return pages
    rows = connection.execute(
        """
        select distinct p.generation, p.page_number, p.text
        from unnest(%(generations)s::bigint[], %(pages)s::int[], %(quotes)s::text[], %(words)s::text[])
            as w (generation, page, quote, word)
        join rag.pages p on p.generation = w.generation
        where p.page_number between w.page - 1 and w.page + 1
            or (strpos(p.text, w.word) > 0 -- most pages do not hold it, and need no closer look
                and strpos(translate(p.text, %(white)s, ''), translate(w.quote, %(white)s, '')) > 0)
        """,
        {
            "white": _WHITE_SPACE,
            "generations": [generation for generation, _, _ in wanted],
            "pages": [page for _, page, _ in wanted],
            "quotes": [quote for _, _, quote in wanted],
            "words": [
                max(quote.split(), key=len) if at < _MAX_WHOLE_DOCUMENT_SEARCHES and _is_distinctive(quote) else None
                for at, (_, _, quote) in enumerate(wanted)
            ],
        },
    ).fetchall()
    for row in rows:
        pages[row["generation"]][row["page_number"]] = relocation.StoredPage(row["text"])
    return pages


def _is_distinctive(quote: str) -> bool:
    """Whether the quotation is long enough to be almost certainly unique."""
    return sum(map(str.isalnum, quote)) >= _MIN_LETTERS


def _locate_quote(source: Row, pages: dict[int, relocation.StoredPage]) -> relocation.QuoteLocation | None:
    """Where the quotation is now, nearest to its old page. A short one is searched on neighbouring pages only."""
    quote, page = source["quote"], source["page_start"]
    if location := relocation.relocate_quote(quote, page, source["start_offset"], pages):
        return location
    by_distance = sorted(pages, key=lambda number: (abs(number - page), number))
    if not _is_distinctive(quote):
        return None
    locations = (relocation.relocate_quote(quote, number, 0, {number: pages[number]}) for number in by_distance)
    return next(filter(None, locations), None)


def _describe_source(source: Row, facts: Row, pages: dict[int, dict[int, relocation.StoredPage]]) -> Row:
    described = source | {
        "state": facts["state"],
        "superseded_by": facts["superseded_by"] if facts["state"] == "superseded" else None,
        "place": None if facts["state"] == "deleted" else "unchanged",
    }
    if not _is_displaced(facts):
        return described
    source_pages = pages.get(facts["generation"], {})
    location = _locate_quote(source, source_pages)
    if location is None:
        return described | {"place": "lost"}
    return described | {
        "place": "moved",
        "page_start": location.page,
        "page_end": location.page,
        "start_offset": location.start,
        "end_offset": location.end,
        "quote": source_pages[location.page].text[location.start : location.end],
    }
