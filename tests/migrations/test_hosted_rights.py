"""A hosted project's role `postgres` is no superuser and owns neither `auth` nor `storage`, and can still migrate."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from functions.adapters.postgres import search
from functions.adapters.postgres.connection import Database
from functions.local.database import migrate
from tests.support import library
from tests.support.library import ADA, BOB

# Gives a role these rights, in this order: https://supabase.com/docs/guides/database/postgres/roles
RIGHTS = (
    "create role {role} login nosuperuser createdb createrole bypassrls",
    "grant anon, authenticated, service_role to {role} with admin option",
    "grant rag_worker to {role} with admin option",
    "alter database {database} owner to {role}",
    "comment on schema auth is 'the vendor''s'",
    "alter table storage.objects owner to supabase_storage_admin",
    "alter table storage.buckets owner to supabase_storage_admin",
    "grant usage on schema auth, storage to {role}",
    "grant all on all tables in schema storage to {role}",
    "grant all on schema extensions to {role} with grant option",
    "alter publication supabase_realtime owner to {role}",
)


@pytest.fixture
def hosted(empty_database: str) -> Iterator[str]:
    """The DSN of such a role on a database that looks like a new project."""
    role = f"hosted_{uuid4().hex[:8]}"
    with psycopg.connect(empty_database, autocommit=True) as superuser:
        migrate.apply_shim(superuser)
        names = {"role": sql.Identifier(role), "database": sql.Identifier(superuser.info.dbname)}
        superuser.execute(
            "do $$ begin create role rag_worker nologin; exception when duplicate_object then null; end $$"
        )
        for statement in RIGHTS:
            superuser.execute(sql.SQL(statement).format(**names))
    yield psycopg.conninfo.make_conninfo(empty_database, user=role)
    with psycopg.connect(empty_database, autocommit=True) as superuser:
        superuser.execute(sql.SQL("reassign owned by {role} to current_user").format(**names))
        superuser.execute(sql.SQL("drop owned by {role}").format(**names))
        superuser.execute(sql.SQL("drop role {role}").format(**names))


def test_the_role_of_a_hosted_project_cannot_hand_on_rights_to_auth(hosted: str) -> None:
    migrate.migrate(hosted)
    with psycopg.connect(hosted) as connection:
        found = connection.execute("select has_schema_privilege('rag_worker', 'auth', 'usage')").fetchone()
    assert found == (False,)


def test_the_role_of_a_hosted_project_can_migrate_and_use_the_database(hosted: str) -> None:
    """FIX-7: a document is stored, indexed, found by its owner, and by nobody else."""
    migrate.migrate(hosted)
    database = Database(hosted)
    server = library.add_server(database)
    library.index_document(database, hosted, ["The zeppelin crossed the sea."], server=server)
    found = {user.id: search.hybrid_search(database, user, library.make_query("zeppelin")).hits for user in (ADA, BOB)}
    database.close()
    assert [hit.text for hit in found[ADA.id]] == ["The zeppelin crossed the sea."]
    assert found[BOB.id] == ()
