"""What has become of the sources that saved answers cite; worked out whenever they are read, never stored."""

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
"""Of a quotation that is looked for on pages that are not beside its own."""
_MOST_AFAR = 100  # quotations, each looked for on every page of its document


def describe(connection: Connection, messages: Sequence[Row]) -> list[Row]:
    """The messages, each source with its `state`, `superseded_by` and `place`.

    A source that is gone has no `place`; a note in the trash and what is attached to it count as gone until restored.
    Where a quotation has moved, page, offsets and `quote` are those of now; where it is lost, those of then.
    """
    facts = _find_facts(connection, messages)
    astray = [
        (facts[message["id"], at], source["quote"])
        for message in messages
        for at, source in enumerate(message["sources"], 1)
        if _is_astray(facts.get((message["id"], at), _GONE))
    ]
    pages = _read_pages(connection, astray)
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
        cross join jsonb_to_record(s.source) as c (source_id uuid, page_start int, start_offset int, quote text)
        left join rag.documents d on d.id = c.source_id
        left join rag.notes n on n.id = case when d.id is null then c.source_id else d.note_id end
        where m.id = any (%s::uuid[])
        """,
        ([message["id"] for message in messages],),
    ).fetchall()
    return {(row["message_id"], row["at"]): row for row in rows}


def _is_astray(row: Row) -> bool:
    return row["state"] != "deleted" and not row["stands"]


def _read_pages(
    connection: Connection, astray: Iterable[tuple[Row, str]]
) -> dict[int, dict[int, relocation.StoredPage]]:
    """By generation and number: the cited pages, those beside them, and all that hold the words, however far.

    White space does not count there, as another reading may break lines elsewhere.
    """
    wanted = [(row["generation"], row["page"], quote) for row, quote in astray if row["generation"] is not None]
    pages: dict[int, dict[int, relocation.StoredPage]] = defaultdict(dict)
    if not wanted:
        return pages
    found = connection.execute(
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
                max(quote.split(), key=len) if at < _MOST_AFAR and _is_found_afar(quote) else None
                for at, (_, _, quote) in enumerate(wanted)
            ],
        },
    ).fetchall()
    for row in found:
        pages[row["generation"]][row["page_number"]] = relocation.StoredPage(row["text"])
    return pages


def _is_found_afar(quote: str) -> bool:
    return sum(map(str.isalnum, quote)) >= _MIN_LETTERS


def _find_again(source: Row, there: dict[int, relocation.StoredPage]) -> relocation.QuoteLocation | None:
    """Where the words of a source stand now, nearest to the old page; a short quotation is found anywhere by chance."""
    quote, page = source["quote"], source["page_start"]
    if found := relocation.relocate_quote(quote, page, source["start_offset"], there):
        return found
    farther = sorted(there, key=lambda number: (abs(number - page), number))
    if not _is_found_afar(quote):
        return None
    return next(
        filter(None, (relocation.relocate_quote(quote, number, 0, {number: there[number]}) for number in farther)), None
    )


def _describe_source(source: Row, facts: Row, pages: dict[int, dict[int, relocation.StoredPage]]) -> Row:
    known = source | {
        "state": facts["state"],
        "superseded_by": facts["superseded_by"] if facts["state"] == "superseded" else None,
        "place": None if facts["state"] == "deleted" else "unchanged",
    }
    if not _is_astray(facts):
        return known
    there = pages.get(facts["generation"], {})
    found = _find_again(source, there)
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
