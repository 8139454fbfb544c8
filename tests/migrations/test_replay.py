"""Two ways to the same database: every migration, or the hand-written ones and then the sources in `sql/`."""

from __future__ import annotations

import shutil
from pathlib import Path

import psycopg

from functions.local.database import migrate, stamp
from tests.support.database import TestCluster

FUNCTIONS = """
select p.oid::regprocedure::text, pg_get_functiondef(p.oid), p.proacl::text
from pg_proc p join pg_namespace n on n.oid = p.pronamespace
where n.nspname = 'rag' and p.prokind in ('f', 'p')
"""


def functions_of(dsn: str) -> dict[str, tuple[str, str]]:
    with psycopg.connect(dsn) as connection:
        return {name: (definition, acl) for name, definition, acl in connection.execute(FUNCTIONS)}


def test_migrations_and_sources_make_the_same_functions(cluster: TestCluster, tmp_path: Path) -> None:
    for migration in migrate.list_migrations():
        if not stamp.is_stamped(migration):
            shutil.copy(migration.path, tmp_path)
    stamped, sources = cluster.create(), cluster.create()
    migrate.migrate(stamped)
    migrate.migrate(sources, migrations_dir=tmp_path, with_functions=True)
    assert functions_of(stamped) == functions_of(sources)
    cluster.drop(stamped)
    cluster.drop(sources)


def test_the_sources_can_be_applied_again(database: str) -> None:
    before = functions_of(database)
    with psycopg.connect(database, autocommit=True) as connection:
        migrate.apply_functions(connection)
    assert functions_of(database) == before
