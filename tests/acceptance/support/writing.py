"""Notes and notebooks created through the API, what a search finds of them, and their rows in the database."""

from __future__ import annotations

from typing import Any

from tests.support.local_server import Json, LocalServer, Person, read

TABLES = (
    "notes",
    "documents",
    "generations",
    "pages",
    "chunks",
    "chunk_translations",
    "chunk_vectors",
    "chunk_terms",
    "generation_terms",
    "ingest_jobs",
)
LONG_POLLS = 4


def add_notebook(person: Person, title: str = "Heating") -> str:
    return str(person.post("/notebooks", title=title)["id"])


def save(person: Person, content: str = "", **fields: Any) -> Json:
    """Saves a note; returns it as the response shows it."""
    answer = person.http.post("/api/rag/notes", json={"content": content} | fields)
    assert answer.status_code == 201, answer.text
    note: Json = answer.json()
    return note


def follow(person: Person, note: Json) -> Json:
    """Waits until the note is no longer queued, and returns it; the worker may still be busy with a long one."""
    for _ in range(LONG_POLLS):
        found: Json = person.get(f"/notes/{note['id']}", wait=20)
        if found["status"] != "queued":
            return found
    raise AssertionError(f"The note is still queued after {LONG_POLLS} long polls.")


def write(person: Person, content: str, **fields: Any) -> Json:
    """An indexed note."""
    note = follow(person, save(person, content, **fields))
    assert note["status"] == "indexed", note
    return note


def change(person: Person, note: Json, **changes: Any) -> Json:
    return read(person.http.patch(f"/api/rag/notes/{note['id']}", json=changes))


def delete(person: Person, path: str) -> Json:
    return read(person.http.delete(f"/api/rag{path}"))


def texts(person: Person, question: str, **scope: str) -> list[str]:
    return [hit["text"] for hit in person.get("/search", q=question, **scope)["hits"]]


def sources(person: Person, question: str, **scope: str) -> set[tuple[str, str]]:
    """The sources that a search finds: `note` or `document`, with its id."""
    return {(hit["source"], hit["document_id"]) for hit in person.get("/search", q=question, **scope)["hits"]}


def count_rows(server: LocalServer, person: Person) -> dict[str, int]:
    """The number of rows that the user owns in each table, without empty tables."""
    counts: dict[str, int] = {}
    with server.services.database.as_worker() as connection:
        for table in TABLES:
            row = connection.execute(
                f"select count(*) as n from rag.{table} where owner_id = %s", (person.id,)
            ).fetchone()
            assert row is not None
            counts[table] = row["n"]
    return {table: count for table, count in counts.items() if count}


def job_of(server: LocalServer, note: Json) -> int:
    """The note's newest job."""
    with server.services.database.as_worker() as connection:
        row = connection.execute(
            "select max(id) as id from rag.ingest_jobs where note_id = %s", (note["id"],)
        ).fetchone()
    assert row is not None
    return int(row["id"])


def chunk_ids(server: LocalServer, person: Person) -> list[int]:
    with server.services.database.as_worker() as connection:
        rows = connection.execute("select id from rag.chunks where owner_id = %s order by id", (person.id,)).fetchall()
    return [row["id"] for row in rows]
