"""A library of 500 documents, 2,000 conversations and one of 300 messages, written straight into the database."""

from __future__ import annotations

import json
from typing import Final
from uuid import uuid4

from tests.support.local_server import LocalServer, Person

DOCUMENTS: Final = 500
MESSAGES: Final = 300
CONVERSATIONS: Final = 2000
CLAIM: Final = "The boiler of building {n} burns wood chips in winter, and its chimney is swept in March."


def add_documents(server: LocalServer, person: Person, count: int = DOCUMENTS) -> None:
    """Indexed documents, the newest of them `Report 1 on heating.pdf`."""
    with server.services.database.as_worker() as connection:
        connection.execute(
            "insert into rag.documents (id, owner_id, file_name, file_type, mime_type, size_bytes, object_path, status,"
            " generation, chunk_count, page_count, created_at)"
            " select g.id, %(owner)s::uuid, 'Report ' || g.n || ' on heating.pdf', 'pdf', 'application/pdf', 1000,"
            " %(owner)s || '/' || g.id || '/original.pdf', 'indexed', -g.n, 3, 12, now() - g.n * interval '1 hour'"
            " from (select n, gen_random_uuid() as id from generate_series(1, %(count)s) as n) g",
            {"owner": person.id, "count": count},
        )


def add_conversation(server: LocalServer, person: Person, messages: int = MESSAGES) -> str:
    """The id of a conversation whose every answer cites two sources."""
    conversation = str(uuid4())
    with server.services.database.as_worker() as connection:
        connection.execute(
            "insert into rag.conversations (id, owner_id, title) values (%s, %s, 'Heating')", (conversation, person.id)
        )
        for n in range(messages // 2):
            row = connection.execute(
                "insert into rag.messages (conversation_id, owner_id, role, content)"
                " values (%s, %s, 'user', %s) returning position",
                (conversation, person.id, f"What does the boiler of building {n} burn?"),
            ).fetchone()
            assert row is not None
            claim = CLAIM.format(n=n)
            sources = [_source(number, claim) for number in (1, 2)]
            sections = [{"text": claim, "citations": [1]}, {"text": claim, "citations": [2]}]
            connection.execute(
                "insert into rag.messages (conversation_id, owner_id, role, content, mode, sections, sources,"
                " question_position) values (%s, %s, 'assistant', %s, 'extractive', %s, %s, %s)",
                (
                    conversation,
                    person.id,
                    f"{claim} [1]\n\n{claim} [2]",
                    json.dumps(sections),
                    json.dumps(sources),
                    row["position"],
                ),
            )
    return conversation


def add_conversations(server: LocalServer, person: Person, count: int = CONVERSATIONS) -> None:
    """Conversations without messages, the newest of them `Heating 1`."""
    with server.services.database.as_worker() as connection:
        connection.execute(
            "insert into rag.conversations (owner_id, title, updated_at)"
            " select %s, 'Heating ' || n, now() - n * interval '1 minute' from generate_series(1, %s) as n",
            (person.id, count),
        )


def _source(number: int, quote: str) -> dict[str, object]:
    source_id = str(uuid4())
    return {
        "number": number,
        "source": "document",
        "source_id": source_id,
        "document_id": source_id,
        "file_name": "boiler.pdf",
        "file_type": "pdf",
        "page_start": number,
        "page_end": number,
        "start_offset": 0,
        "end_offset": len(quote),
        "quote": quote,
        "check": "exact",
        "support": "high",
        "score": 0.9,
    }
