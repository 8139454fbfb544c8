"""The migrations create exactly the functions and views of `sql/`."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import psycopg

from functions.local.database import migrate, stamp
from tests.support.database import TestCluster

SOURCES = """
select p.oid::regprocedure::text, pg_get_functiondef(p.oid), p.proacl::text
from pg_proc p where p.pronamespace in ('rag'::regnamespace, 'ibid'::regnamespace) and p.prokind in ('f', 'p')
union all
select c.oid::regclass::text, concat(pg_get_viewdef(c.oid), c.reloptions), c.relacl::text
from pg_class c where c.relnamespace = 'rag'::regnamespace and c.relkind = 'v'
"""


def read_sources(dsn: str) -> dict[str, tuple[str, str]]:
    """The functions and views of a database: their definitions and rights by name."""
    with psycopg.connect(dsn) as connection:
        return {name: (definition, acl) for name, definition, acl in connection.execute(SOURCES)}


def test_migrations_and_sources_make_the_same_functions_and_views(cluster: TestCluster, tmp_path: Path) -> None:
    """The sources replace the first stamp and later stamps are left out, so that a function dropped from sql/ shows."""
    first, *_ = filter(stamp.is_stamped, migrate.list_migrations())
    for migration in migrate.list_migrations():
        if not stamp.is_stamped(migration):
            shutil.copy(migration.path, tmp_path)
    texts = [path.read_text() for path in sorted(migrate.FUNCTIONS.glob("*.sql"))]
    # Views and result types may name what a later migration adds, and only the check of function bodies can be switched
    # off. The schema `ibid` is itself from a later migration.
    is_late = re.compile("create or replace (view|function ibid)|^returns setof rag.translation_jobs", re.MULTILINE)
    late = [text for text in texts if is_late.search(text)]
    functions = ["set local check_function_bodies = off;\n", *(text for text in texts if text not in late)]
    (tmp_path / first.path.name).write_text("".join(functions))
    (tmp_path / "99991231235959_late.sql").write_text("".join(late))
    stamped, sources = cluster.create(), cluster.create()
    migrate.migrate(stamped)
    migrate.migrate(sources, migrations_dir=tmp_path)
    assert read_sources(stamped) == read_sources(sources)
    cluster.drop(stamped)
    cluster.drop(sources)


def test_the_sources_can_be_applied_again(database: str) -> None:
    before = read_sources(database)
    with psycopg.connect(database, autocommit=True) as connection:
        migrate.apply_functions(connection)
    assert read_sources(database) == before
