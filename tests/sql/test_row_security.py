"""SEC-2, tested on every table: a new table fails these tests until it has rows and policies."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from functions.adapters.postgres.connection import Database
from functions.adapters.postgres.search import save_translation
from functions.core import errors, models
from tests.support import database as database_servers
from tests.support.library import (
    ADA,
    BOB,
    add_key,
    add_note,
    add_notebook,
    index_document,
    translate_everything,
    write_posting_lists,
)

# Tables that every signed-in user may read.
SHARED = {"embedding_servers", "settings"}
# Tables in which users may write their own rows.
OWN = (
    "api_keys",
    "conversation_documents",
    "conversations",
    "documents",
    "messages",
    "notebooks",
    "notes",
    "query_translations",
)


@pytest.fixture
def tables(database: str) -> list[str]:
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "select relname from pg_class where relnamespace = 'rag'::regnamespace and relkind in ('r', 'p') order by 1"
        ).fetchall()
    return [row[0] for row in rows]


@pytest.fixture
def row_counts(db: Database, database: str, server: models.EmbeddingServer) -> dict[str, int]:
    """Adds rows of Ada to every table; returns the number of rows by table."""
    notebook = add_notebook(db)
    document = index_document(db, database, ["alpha one", "alpha two"], server=server, notebook_id=notebook)
    add_note(db)
    translate_everything(db)
    with db.as_user(ADA) as connection:
        row = connection.execute(
            "insert into rag.conversations (owner_id, title) values (%s, 'C') returning id", (ADA.id,)
        ).fetchone()
        assert row is not None
        connection.execute(
            "insert into rag.messages (conversation_id, owner_id, role, content) values (%s, %s, 'user', 'secret')",
            (row["id"], ADA.id),
        )
        connection.execute(
            "insert into rag.conversation_documents (conversation_id, document_id, owner_id) values (%s, %s, %s)",
            (row["id"], document, ADA.id),
        )
        connection.execute("select rag.take_quota('question', 10), rag.count_usage(1, 1, 0)")
    add_key(db)
    save_translation(db, ADA, "0" * 64, "fr", "Que brûle la chaudière ?")
    write_posting_lists(database)
    with psycopg.connect(database) as own, database_servers.as_user(own, ADA.id, admin=True):
        own.execute("insert into rag.settings (key, value) values ('rrf_k', '20')")
    return count_rows(database)


def count_rows(dsn: str) -> dict[str, int]:
    """Counts all rows, as the superuser, to whom no policy applies."""
    with psycopg.connect(dsn) as connection:
        names = [row[0] for row in connection.execute("select tablename from pg_tables where schemaname = 'rag'")]
        return {name: run(connection, "select from {}", name) for name in names}


def run(connection: psycopg.Connection[Any], statement: str, name: str) -> int:
    """The number of rows that a statement read or changed."""
    return connection.execute(sql.SQL(statement).format(sql.Identifier("rag", name))).rowcount


def try_as(dsn: str, user_id: str | None, role: str, statement: str, name: str) -> int | str:
    """The number of rows that a statement read or changed, or "denied"; rolled back in either case."""
    with psycopg.connect(dsn) as connection:
        try:
            with database_servers.as_user(connection, user_id, role=role):
                return run(connection, statement, name)
        except psycopg.errors.InsufficientPrivilege:
            return "denied"
        finally:
            connection.rollback()


def test_there_is_a_row_in_every_table(row_counts: dict[str, int], tables: list[str]) -> None:
    """Otherwise the tests below would pass for an empty table."""
    assert [name for name in tables if not row_counts[name]] == []


def test_nobody_sees_rows_of_another_user(database: str, row_counts: dict[str, int], tables: list[str]) -> None:
    seen = {name: try_as(database, BOB.id, "authenticated", "select from {}", name) for name in tables}
    assert {name for name, rows in seen.items() if rows not in (0, "denied")} == SHARED


def test_an_owner_sees_their_own_rows(database: str, row_counts: dict[str, int]) -> None:
    seen = {name: try_as(database, ADA.id, "authenticated", "select from {}", name) for name in OWN}
    assert seen == {name: row_counts[name] for name in OWN}


def test_nobody_changes_or_deletes_rows_of_another_user(
    database: str, row_counts: dict[str, int], tables: list[str]
) -> None:
    for statement in ("delete from {}", "update {} set owner_id = owner_id", "truncate {} cascade"):
        for name in tables:
            try:
                assert try_as(database, BOB.id, "authenticated", statement, name) in (0, "denied"), (statement, name)
            except psycopg.errors.UndefinedColumn:
                assert name in {*SHARED, "settings_audit"}
    assert count_rows(database) == row_counts


@pytest.mark.parametrize("name", OWN)
def test_a_row_cannot_be_given_to_another_user(database: str, row_counts: dict[str, int], name: str) -> None:
    statement = f"update {{}} set owner_id = '{BOB.id}'"
    assert try_as(database, ADA.id, "authenticated", statement, name) == "denied"


def test_a_row_cannot_be_inserted_for_another_user(db: Database, row_counts: dict[str, int]) -> None:
    with pytest.raises(errors.NotAllowedError), db.as_user(BOB) as connection:
        connection.execute("insert into rag.notebooks (owner_id, title) values (%s, 'x')", (ADA.id,))
    with pytest.raises(errors.NotAllowedError), db.as_user(BOB) as connection:
        connection.execute("insert into rag.conversations (owner_id, title) values (%s, 'x')", (ADA.id,))


@pytest.mark.parametrize("statement", ["select from {}", "delete from {}", "update {} set owner_id = owner_id"])
def test_anon_can_do_nothing(database: str, row_counts: dict[str, int], tables: list[str], statement: str) -> None:
    assert {try_as(database, None, "anon", statement, name) for name in tables} == {"denied"}


def test_without_claims_a_signed_in_role_sees_nothing(
    database: str, row_counts: dict[str, int], tables: list[str]
) -> None:
    """A statement outside of the transaction that sets the claims sees nothing."""
    seen = {name: try_as(database, None, "authenticated", "select from {}", name) for name in tables}
    assert {name for name, rows in seen.items() if rows not in (0, "denied")} == SHARED


def test_an_administrator_sees_no_rows_of_others_but_the_audit_and_the_usage(
    database: str, row_counts: dict[str, int], tables: list[str]
) -> None:
    """OPS-7: the usage has counts alone."""
    with psycopg.connect(database) as connection, database_servers.as_user(connection, BOB.id, admin=True):
        seen = set()
        for name in tables:
            try:
                with connection.transaction():
                    seen |= {name} if run(connection, "select from {}", name) else set()
            except psycopg.errors.InsufficientPrivilege:
                continue
    assert seen == SHARED | {"daily_usage", "settings_audit"}


def test_the_worker_role_has_no_other_role_and_does_not_bypass_policies(connection: psycopg.Connection) -> None:
    row = connection.execute(
        "select rolsuper, rolbypassrls, rolcanlogin, rolcreaterole, rolcreatedb, rolreplication,"
        " (select count(*) from pg_auth_members where member = r.oid) from pg_roles r where rolname = 'rag_worker'"
    ).fetchone()
    assert row == (False, False, False, False, False, False, 0)


def test_claims_cannot_change_the_user_or_the_role(db: Database) -> None:
    """Whatever the claims contain, the role and the user are the verified ones."""
    impostor = models.User(BOB.id, False, {"sub": ADA.id, "role": "service_role", "x": "'; reset role; --"})
    with db.as_user(impostor) as connection:
        row = connection.execute(
            "select current_user::text as role, auth.uid()::text as id, auth.role() as claimed, auth.jwt() ->> 'x' as x"
        ).fetchone()
    assert row == {"role": "authenticated", "id": BOB.id, "claimed": "authenticated", "x": "'; reset role; --"}


@pytest.mark.parametrize(
    "path", ["{bob}/{id}/original.txt", "{ada}/{other}/original.txt", "{ada}/{id}/../{other}/original.txt"]
)
def test_a_document_cannot_name_the_file_of_another(db: Database, path: str) -> None:
    """SEC-2: downloads are signed for the object path of the document."""
    ids = {"ada": ADA.id, "bob": BOB.id, "id": str(uuid4()), "other": str(uuid4())}
    with pytest.raises(errors.NotAllowedError), db.as_user(ADA) as connection:
        connection.execute(
            "insert into rag.documents (id, owner_id, file_name, file_type, size_bytes, object_path)"
            " values (%s, %s, 'a.txt', 'txt', 1, %s)",
            (ids["id"], ADA.id, path.format(**ids)),
        )
