"""The languages of a scope, and the translations that are kept for a day: what an opening question learns of both."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from functions.adapters.postgres import search
from functions.adapters.postgres.connection import Connection, Database
from functions.core import models
from tests.support.library import ADA, BOB, add_note, add_notebook, index_document

KEY = "0" * 64
Find = Callable[..., Any]


def execute(dsn: str, statement: str, *parameters: object) -> None:
    """Runs a statement as the superuser."""
    with psycopg.connect(dsn) as connection:
        connection.execute(statement.encode(), parameters)


@pytest.fixture
def add(db: Database, database: str, server: models.EmbeddingServer) -> Callable[..., str]:
    """Adds an indexed document in a language."""

    def add(lang: str, **options: Any) -> str:
        document_id = index_document(db, database, [f"text {lang}"], server=server, **options)
        execute(database, "update rag.documents set lang = %s where id = %s", lang, document_id)
        return document_id

    return add


@pytest.fixture
def find(db: Database) -> Find:
    def find(
        *document_ids: str,
        notebook: str | None = None,
        note: str | None = None,
        user: models.User = ADA,
        key: str | None = KEY,
        **filters: str,
    ) -> Any:
        with db.as_user(user) as connection:
            row = connection.execute(
                "select rag.find_translations(%s, %s::uuid[], %s, %s, %s) as found",
                (key, list(document_ids), notebook, note, json.dumps(filters)),
            ).fetchone()
        assert row is not None
        return row["found"]

    return find


def test_the_languages_of_a_library_are_found(add: Callable[..., str], find: Find) -> None:
    """LANG-4"""
    assert find() == {}
    add("simple")
    assert find() == {}
    add("en")
    assert find() == {"en": None}
    add("fr")
    assert (find(), find(key=None), find(user=BOB)) == ({"en": None, "fr": None}, {}, {})


def test_only_the_languages_of_the_scope_count(db: Database, add: Callable[..., str], find: Find) -> None:
    """LANG-4"""
    notebook = add_notebook(db)
    note = add_note(db)
    english, french = add("en", notebook_id=notebook), add("fr", note_id=note)
    assert [list(found) for found in (find(english), find(french), find(notebook=notebook), find(note=note))] == [
        ["en"],
        ["fr"],
        ["en"],
        ["fr"],
    ]


@pytest.mark.parametrize(
    ("filters", "langs"),
    [
        ({"lang": "en"}, ["en"]),
        ({"lang": "simple"}, []),
        ({"source": "note"}, []),
        ({"source": "document", "file_type": "pdf"}, ["en", "fr"]),
        ({"file_type": "docx"}, []),
    ],
)
def test_filters_narrow_the_scope(
    add: Callable[..., str], find: Find, filters: dict[str, str], langs: list[str]
) -> None:
    """LANG-4, RET-10"""
    add("en")
    add("fr")
    assert list(find(**filters)) == langs


@pytest.mark.parametrize(
    "change",
    [
        "update rag.documents set superseded_by = %s where lang = 'fr'",
        "update rag.documents set duplicate_of = %s where lang = 'fr'",
        "update rag.documents set generation = null, status = 'failed' where lang = 'fr' and id <> %s",
        "with n as (insert into rag.notes (owner_id, trashed_at) select owner_id, now() from rag.documents"
        " where id = %s returning id) update rag.documents set note_id = n.id from n where lang = 'fr'",
    ],
    ids=["superseded", "duplicate", "not-indexed", "in-the-trash"],
)
def test_documents_that_are_not_searched_do_not_count(
    database: str, add: Callable[..., str], find: Find, change: str
) -> None:
    """LANG-4"""
    add("fr")
    execute(database, change, add("en"))
    assert find() == {"en": None}


def test_the_language_of_a_note_counts_until_it_is_in_the_trash(db: Database, database: str, find: Find) -> None:
    """LANG-4"""
    note = add_note(db)
    execute(database, "update rag.notes set lang = 'fr', generation = 1, chunk_count = 1, status = 'indexed'")
    assert (find(), find(note=note)) == ({"fr": None}, {"fr": None})
    execute(database, "update rag.notes set trashed_at = now()")
    assert find() == {}


def test_a_translation_is_found_by_its_owner_for_a_day(
    db: Database, database: str, add: Callable[..., str], find: Find
) -> None:
    """LANG-4, SEC-2"""
    add("fr")
    add("fr", user=BOB)
    search.save_translation(db, ADA, KEY, "fr", "Qui ?")
    search.save_translation(db, ADA, KEY, "fr", "Qui donc ?")
    assert (find(), find(user=BOB), find(key="1" * 64)) == ({"fr": "Qui donc ?"}, {"fr": None}, {"fr": None})
    assert search.find_translation(db, ADA, KEY, "fr") == "Qui donc ?"
    assert [search.find_translation(db, user, KEY, lang) for user, lang in ((ADA, "en"), (BOB, "fr"))] == [None, None]
    execute(database, "update rag.query_translations set created_at = now() - interval '25 hours'")
    assert (find(), search.find_translation(db, ADA, KEY, "fr")) == ({"fr": None}, None)


def test_saving_an_expired_translation_again_renews_it(db: Database, database: str) -> None:
    """LANG-4"""
    search.save_translation(db, ADA, KEY, "fr", "Qui ?")
    execute(database, "update rag.query_translations set created_at = now() - interval '25 hours'")
    search.save_translation(db, ADA, KEY, "fr", "Qui ?")
    assert search.find_translation(db, ADA, KEY, "fr") == "Qui ?"


def test_expired_translations_are_deleted_and_others_kept(db: Database, database: str) -> None:
    """OPS-1"""
    search.save_translation(db, ADA, KEY, "fr", "Qui ?")
    execute(database, "update rag.query_translations set created_at = now() - interval '25 hours'")
    search.save_translation(db, BOB, KEY, "en", "Who?")
    assert (search.purge_translations(db), search.purge_translations(db)) == (1, 0)
    assert search.find_translation(db, BOB, KEY, "en") == "Who?"


def count_rows_read(connection: Connection) -> int:
    """How many documents and notes this connection has read so far."""
    row = connection.execute(
        "select sum(seq_tup_read + idx_tup_fetch)::int as n from pg_stat_xact_user_tables"
        " where relid in ('rag.documents'::regclass, 'rag.notes'::regclass)"
    ).fetchone()
    assert row is not None
    return int(row["n"])


def test_a_large_library_is_not_read_to_find_its_languages(
    db: Database, database: str, add: Callable[..., str]
) -> None:
    """LANG-4"""
    add("en")
    execute(
        database,
        "insert into rag.documents (owner_id, file_name, file_type, size_bytes, object_path, generation, lang)"
        " select %s, n || '.pdf', 'pdf', 1, n::text, -n, 'en' from generate_series(1, 5000) n",
        ADA.id,
    )
    execute(
        database,
        "insert into rag.notes (owner_id, generation, lang) select %s, -n, 'en' from generate_series(1, 5000) n",
        ADA.id,
    )
    execute(database, "analyze rag.documents, rag.notes")
    with db.as_user(ADA) as connection:
        before = count_rows_read(connection)
        found = connection.execute("select rag.find_translations(%s, '{}', null, null, '{}') as f", (KEY,)).fetchall()
        assert (found, count_rows_read(connection) - before <= 2) == ([{"f": {"en": None}}], True)
