"""SEC-2, checked in the catalog, so that the rules apply to a new table or function without a new test."""

from __future__ import annotations

from typing import Any

import psycopg

# A function that runs with its owner's rights bypasses row level security, so each has a reason.
SECURITY_DEFINER = {
    "audit_setting": "the audit is written for everybody and writable by nobody",
    "cancel_reindexing": "storage.objects is not readable for the worker role",
    "count_usage": "users may not write the counters; it counts for its caller alone",
    "continue_reindexing": "storage.objects is not readable for the worker role",
    "describe_reindexing": "storage.objects is not readable for the worker role",
    "enqueue_stored_object": "the queue is written through this door only",
    "forget_user": "storage.objects is not readable for the worker role",
    "on_note_saved": "users may not write the queue; it queues the very row that they have saved",
    "on_object_stored": "the storage service writes objects under a role that cannot see our tables",
    "refuse_second_upload": "the storage service writes objects under a role that cannot see our tables",
    "remove_generation_rows": "rows of a generation go with it, whoever was allowed to delete its source",
    "request_ingest_job": "users may not write the queue; it checks the owner",
    "request_note_job": "users may not write the queue; it checks the owner",
    "request_translation": "users may not write the queue; it checks the owner",
    "retry_rejected_sources": "storage.objects is not readable for the worker role",
    "sweep_ingest_jobs": "storage.objects is not readable for the worker role",
    "take_quota": "users may not write the counters; it counts for its caller alone",
    "use_api_key": "auth.users is not readable for the worker role",
}


def table(connection: psycopg.Connection, query: str) -> list[Any]:
    return connection.execute(query.encode()).fetchall()


def names(connection: psycopg.Connection, query: str) -> list[str]:
    return [row[0] for row in table(connection, query)]


FUNCTIONS = "pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname in ('rag', 'ibid')"
RELATIONS = "pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'rag'"
GRANTS = """
    select o.kind || ' ' || o.name || ' to ' || coalesce(r.rolname, 'PUBLIC') || ': ' || a.privilege_type
    from (
        select 'table' as kind, c.oid::regclass::text as name, c.relacl as acl
        from pg_class c where c.relnamespace = 'rag'::regnamespace
        union all
        select 'column', attrelid::regclass || '.' || attname, attacl
        from pg_attribute join pg_class c on c.oid = attrelid where c.relnamespace = 'rag'::regnamespace
        union all
        select 'function', p.oid::regprocedure::text, coalesce(p.proacl, acldefault('f', p.proowner))
        from pg_proc p where p.pronamespace in ('rag'::regnamespace, 'ibid'::regnamespace)
        union all
        select 'schema', nspname, nspacl from pg_namespace where nspname in ('rag', 'ibid')
    ) o, aclexplode(o.acl) a left join pg_roles r on r.oid = a.grantee
"""


def test_row_level_security_is_on_and_forced_everywhere(connection: psycopg.Connection) -> None:
    """SEC-2"""
    tables = f"select c.relname from {RELATIONS} and c.relkind in ('r', 'p')"
    assert names(connection, tables)
    assert names(connection, f"{tables} and not (relrowsecurity and relforcerowsecurity)") == []


def test_every_table_has_a_policy_for_workers_and_none_is_open_to_all(connection: psycopg.Connection) -> None:
    policies = table(connection, "select tablename, unnest(roles)::text from pg_policies where schemaname = 'rag'")
    tables = names(connection, f"select c.relname from {RELATIONS} and c.relkind in ('r', 'p')")
    assert {role for _, role in policies} <= {"authenticated", "rag_worker"}
    assert sorted({name for name, role in policies if role == "rag_worker"}) == sorted(tables)


def test_a_policy_for_users_reads_the_user(connection: psycopg.Connection) -> None:
    """Policies for users call auth.uid() or auth.jwt(); tables that every user may read are listed."""
    blind = names(
        connection,
        "select tablename || ' ' || cmd from pg_policies where schemaname = 'rag' and 'authenticated' = any(roles)"
        " and concat(qual, with_check) !~ 'auth\\.(uid|jwt)'",
    )
    assert sorted(blind) == ["embedding_servers SELECT", "settings SELECT"]


def test_policies_read_the_user_once_per_query(connection: psycopg.Connection) -> None:
    """`(select auth.uid())` is evaluated once, `auth.uid()` for every row."""
    each_row = names(
        connection,
        "select tablename || ': ' || policyname from pg_policies where schemaname = 'rag'"
        " and regexp_replace(concat(qual, with_check), 'SELECT auth\\.(uid|jwt)\\(\\)', '', 'g') ~ 'auth\\.(uid|jwt)'",
    )
    assert each_row == []


def test_anon_and_the_public_have_nothing(connection: psycopg.Connection) -> None:
    assert names(connection, f"{GRANTS} where r.rolname = 'anon' or r.rolname is null") == []


def test_anon_reaches_nothing(connection: psycopg.Connection) -> None:
    """Not even through roles that it is a member of."""
    schemas = "select has_schema_privilege('anon', schema, 'usage, create') from unnest(array['rag', 'ibid']) schema"
    assert table(connection, schemas) == [(False,), (False,)]
    every = "select, insert, update, delete, truncate"
    tables = f"select c.relname from {RELATIONS} and c.relkind in ('r', 'p', 'v', 'm')"
    assert names(connection, f"{tables} and has_table_privilege('anon', c.oid, '{every}')") == []
    functions = f"select p.oid::regprocedure::text from {FUNCTIONS}"
    assert names(connection, f"{functions} and has_function_privilege('anon', p.oid, 'execute')") == []


def test_users_cannot_truncate_or_reference(connection: psycopg.Connection) -> None:
    """TRUNCATE ignores row level security."""
    too_much = "('TRUNCATE', 'REFERENCES', 'TRIGGER', 'MAINTAIN', 'CREATE')"
    assert names(connection, f"{GRANTS} where r.rolname = 'authenticated' and a.privilege_type in {too_much}") == []


def test_views_are_read_with_the_rights_of_the_reader(connection: psycopg.Connection) -> None:
    views = f"select c.relname from {RELATIONS} and c.relkind = 'v'"
    assert names(connection, f"{views} and not coalesce(reloptions @> '{{security_invoker=true}}', false)") == []


def test_functions_run_with_the_rights_of_the_caller(connection: psycopg.Connection) -> None:
    """SEC-2"""
    definers = names(connection, f"select p.proname from {FUNCTIONS} and p.prosecdef order by 1")
    assert definers == sorted(SECURITY_DEFINER)


def test_functions_pin_their_search_path(connection: psycopg.Connection) -> None:
    """Except small ones without tables: Postgres does not inline functions with a pinned path."""
    paths = ('search_path=""', "search_path=pg_catalog, pg_temp", "search_path=pg_catalog, extensions, pg_temp")
    loose = f"""
        select p.oid::regprocedure::text from {FUNCTIONS} and p.prokind in ('f', 'p')
        and not coalesce(p.proconfig && array{list(paths)!r}, false)
        and not (
            p.provolatile <> 'v' and not p.prosecdef and p.prosrc !~* '\\m(from|join)\\s+rag\\.\\w+\\M(?!\\()'
            and p.prolang = (select oid from pg_language where lanname = 'sql')
        )
    """
    assert names(connection, loose) == []


def test_foreign_keys_that_cascade_are_indexed(connection: psycopg.Connection) -> None:
    """Without the index, deleting a referenced row reads the whole table."""
    slow = """
        select f.conrelid::regclass || ': ' || f.conname
        from pg_constraint f
        where f.contype = 'f' and f.confdeltype = 'c' and f.connamespace = 'rag'::regnamespace
            and not exists (
                select from pg_index i where i.indrelid = f.conrelid and i.indkey[0] = any (f.conkey)
            )
    """
    assert names(connection, slow) == []
