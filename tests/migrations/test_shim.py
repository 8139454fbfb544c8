"""With the shim, a bare Postgres behaves like a Supabase project wherever Ibid relies on one."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from functions.core import errors
from functions.local.database import migrate
from tests.support.database import add_user, as_user


@pytest.fixture
def bare(empty_database: str) -> Any:
    with psycopg.connect(empty_database, autocommit=True) as connection:
        yield connection


def value(connection: psycopg.Connection, query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    return row and row[0]


def test_a_real_project_is_left_unchanged(bare: psycopg.Connection) -> None:
    bare.execute("create schema auth")
    bare.execute("create function auth.uid() returns uuid language sql return null::uuid")
    assert migrate.apply_shim(bare) is False
    assert value(bare, "select count(*) from pg_namespace where nspname in ('storage', 'extensions')") == 0


def test_a_foreign_auth_schema_is_refused(bare: psycopg.Connection) -> None:
    bare.execute("create schema auth")
    with pytest.raises(errors.ConflictError, match="neither Supabase nor Ibid created"):
        migrate.apply_shim(bare)


def test_a_vector_extension_in_another_schema_is_refused_with_an_explanation(bare: psycopg.Connection) -> None:
    bare.execute("create extension vector")
    with pytest.raises(errors.ConflictError, match="alter extension vector set schema extensions"):
        migrate.apply_shim(bare)
    assert value(bare, "select to_regnamespace('auth')::text") is None


def test_the_shim_may_be_applied_again_and_keeps_existing_rows(bare: psycopg.Connection) -> None:
    assert migrate.apply_shim(bare) is True
    user_id = add_user(bare)
    assert migrate.apply_shim(bare) is True
    assert value(bare, "select id::text from auth.users") == user_id


def test_the_claims_name_the_user(connection: psycopg.Connection) -> None:
    user_id = add_user(connection)
    with as_user(connection, user_id, admin=True):
        row = connection.execute(
            "select auth.uid()::text, auth.role(), auth.jwt() #>> '{app_metadata,role}', current_user"
        ).fetchone()
    assert row == (user_id, "authenticated", "admin", "authenticated")


def test_without_claims_there_is_no_user(connection: psycopg.Connection) -> None:
    with as_user(connection, None, role="anon"):
        pass
    # Now '', not NULL: every later transaction of a pooled connection reads this value.
    assert value(connection, "select current_setting('request.jwt.claims', true)") == ""
    assert connection.execute("select auth.uid(), auth.role(), auth.jwt()").fetchone() == (None, None, None)


def test_objects_have_the_columns_of_supabase(connection: psycopg.Connection) -> None:
    rows = connection.execute(
        "select column_name, udt_name from information_schema.columns"
        " where table_schema = 'storage' and table_name = 'objects'"
    ).fetchall()
    assert dict(rows) == {
        "id": "uuid",
        "bucket_id": "text",
        "name": "text",
        "owner": "uuid",
        "owner_id": "text",
        "created_at": "timestamptz",
        "updated_at": "timestamptz",
        "last_accessed_at": "timestamptz",
        "metadata": "jsonb",
        "path_tokens": "_text",
        "version": "text",
        "user_metadata": "jsonb",
    }


def test_only_the_service_role_sees_objects(connection: psycopg.Connection) -> None:
    connection.execute("insert into storage.buckets (id, name) values ('b', 'b') on conflict do nothing")
    connection.execute("insert into storage.objects (bucket_id, name) values ('b', 'x/y/original.pdf')")
    seen = {}
    for role in ("anon", "authenticated", "service_role"):
        with as_user(connection, None, role=role):
            seen[role] = value(connection, "select array_agg(path_tokens) from storage.objects where bucket_id = 'b'")
    assert seen == {"anon": None, "authenticated": None, "service_role": [["x", "y", "original.pdf"]]}


def test_the_same_name_is_one_object(connection: psycopg.Connection) -> None:
    connection.execute("insert into storage.buckets (id, name) values ('b', 'b') on conflict do nothing")
    connection.execute("insert into storage.objects (bucket_id, name) values ('b', 'x')")
    with pytest.raises(psycopg.errors.UniqueViolation, match="bucketid_objname"):
        connection.execute("insert into storage.objects (bucket_id, name) values ('b', 'x')")
