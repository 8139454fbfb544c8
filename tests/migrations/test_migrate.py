"""The migrator applies and records migrations as the Supabase CLI does, and also refuses changed ones."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from functions.core import errors
from functions.local.database import migrate


def write(folder: Path, **files: str) -> Path:
    """Migrations by name: `_1_first="select 1"` is the file 1_first.sql."""
    for name, text in files.items():
        (folder / f"{name.lstrip('_')}.sql").write_text(text)
    return folder


def rows(dsn: str, query: str) -> list[Any]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(query.encode())
        return cursor.fetchall() if cursor.description else []


BOOKS = "select version, name, statements from supabase_migrations.schema_migrations order by version"


def test_applies_in_order_and_records_migrations_as_the_cli_does(empty_database: str, tmp_path: Path) -> None:
    write(tmp_path, _2_second="insert into t values (2);", _1_first="create table t (n int);")
    (tmp_path / "notes.sql").write_text("this is no migration")
    assert migrate.migrate(empty_database, migrations_dir=tmp_path) == ["1_first.sql", "2_second.sql"]
    assert rows(empty_database, "select n from t") == [(2,)]
    assert rows(empty_database, BOOKS) == [
        ("1", "first", ["create table t (n int);"]),
        ("2", "second", ["insert into t values (2);"]),
    ]


def test_the_table_of_migrations_has_the_columns_of_the_cli(empty_database: str, tmp_path: Path) -> None:
    migrate.migrate(empty_database, migrations_dir=tmp_path)
    columns = rows(
        empty_database,
        "select column_name, udt_name, is_nullable from information_schema.columns"
        " where table_schema = 'supabase_migrations' and table_name = 'schema_migrations' order by ordinal_position",
    )
    assert columns == [("version", "text", "NO"), ("statements", "_text", "YES"), ("name", "text", "YES")]


def test_continues_where_the_cli_stopped(empty_database: str, tmp_path: Path) -> None:
    write(tmp_path, _1_first="this was applied by the CLI", _2_second="create table t (n int);")
    rows(empty_database, migrate.BOOKKEEPING)
    rows(
        empty_database,
        "insert into supabase_migrations.schema_migrations values ('1', array['create table a ()', 'x'], 'first')",
    )
    assert migrate.migrate(empty_database, migrations_dir=tmp_path) == ["2_second.sql"]
    assert migrate.migrate(empty_database, migrations_dir=tmp_path) == []


def test_refuses_a_migration_that_changed_after_it_was_applied(empty_database: str, tmp_path: Path) -> None:
    migrate.migrate(empty_database, migrations_dir=write(tmp_path, _1_first="create table t (n int);"))
    write(tmp_path, _1_first="create table t (n bigint);", _2_second="create table u ();")
    for dry_run in (False, True):
        with pytest.raises(errors.ConflictError) as refusal:
            migrate.migrate(empty_database, migrations_dir=tmp_path, dry_run=dry_run)
        assert refusal.value.message == (
            "These migrations were changed after they were applied to this database: 1_first.sql."
            " Restore the files and put the change into a new migration (for a change in sql/: make sql-stamp)."
        )
    assert rows(empty_database, "select to_regclass('u')") == [(None,)]


def test_refuses_a_change_of_what_the_cli_has_applied(empty_database: str, tmp_path: Path) -> None:
    """The CLI records no hashes; the migrator records them when it first finds the migrations of the CLI."""
    rows(empty_database, migrate.BOOKKEEPING)
    rows(empty_database, "insert into supabase_migrations.schema_migrations values ('1', array['select 1'], 'first')")
    migrate.migrate(empty_database, migrations_dir=write(tmp_path, _1_first="select 1;"))
    with pytest.raises(errors.ConflictError, match=r"changed after they were applied to this database: 1_first\.sql"):
        migrate.migrate(empty_database, migrations_dir=write(tmp_path, _1_first="select 2;"))


def test_refuses_a_file_older_than_the_last_applied_one(empty_database: str, tmp_path: Path) -> None:
    migrate.migrate(empty_database, migrations_dir=write(tmp_path, _2_second="select 2;"))
    with pytest.raises(errors.ConflictError, match=r"older than the last applied one \(2\): 1_late.sql"):
        migrate.migrate(empty_database, migrations_dir=write(tmp_path, _1_late="create table late ();"))
    assert rows(empty_database, "select to_regclass('late')") == [(None,)]


def test_refuses_a_database_that_is_ahead_of_the_files(empty_database: str, tmp_path: Path) -> None:
    migrate.migrate(empty_database, migrations_dir=write(tmp_path, _1_a="select 1;", _2_b="select 2;"))
    (tmp_path / "2_b.sql").unlink()
    with pytest.raises(errors.ConflictError, match=r"not in supabase/migrations: 2\."):
        migrate.migrate(empty_database, migrations_dir=tmp_path)


def test_refuses_a_database_from_before_the_first_release_and_changes_nothing(empty_database: str) -> None:
    rows(empty_database, migrate.BOOKKEEPING)
    rows(empty_database, "insert into supabase_migrations.schema_migrations values ('20261121000001', null, 'schema')")
    for dry_run in (True, False):
        with pytest.raises(
            errors.ConflictError, match=r"made before the migrations were rewritten.*move the folder IBID_HOME"
        ):
            migrate.migrate(empty_database, dry_run=dry_run)
    assert [row[0] for row in rows(empty_database, BOOKS)] == ["20261121000001"]
    assert rows(empty_database, "select to_regnamespace('auth'), to_regnamespace('rag')") == [(None, None)]


def test_a_failing_file_is_rolled_back_as_a_whole(empty_database: str, tmp_path: Path) -> None:
    write(tmp_path, _1_good="create table good ();", _2_bad="create table bad ();\nselect\n  nonsense;")
    with pytest.raises(psycopg.errors.UndefinedColumn) as failure:
        migrate.migrate(empty_database, migrations_dir=tmp_path)
    assert failure.value.__notes__ == ["in 2_bad.sql, line 3"]
    assert rows(empty_database, "select to_regclass('good')::text, to_regclass('bad')::text") == [("good", None)]
    assert [row[0] for row in rows(empty_database, BOOKS)] == ["1"]


def test_a_dry_run_changes_nothing(empty_database: str, tmp_path: Path) -> None:
    write(tmp_path, _1_first="create table t (n int);")
    assert migrate.migrate(empty_database, migrations_dir=tmp_path, dry_run=True) == ["1_first.sql"]
    assert (
        rows(empty_database, "select nspname from pg_namespace where nspname in ('auth', 'supabase_migrations')") == []
    )


def test_processes_that_migrate_at_once_take_turns(empty_database: str, tmp_path: Path) -> None:
    write(tmp_path, _1_a="create table a ();", _2_b="create table b ();", _3_c="create table c ();")
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda _: migrate.migrate(empty_database, migrations_dir=tmp_path), range(6)))
    assert sorted(name for names in done for name in names) == ["1_a.sql", "2_b.sql", "3_c.sql"]


def test_settings_of_one_file_do_not_affect_the_next(empty_database: str, tmp_path: Path) -> None:
    write(tmp_path, _1_a="create schema s; set search_path = s;", _2_b="create table t ();")
    migrate.migrate(empty_database, migrations_dir=tmp_path)
    assert rows(empty_database, "select to_regclass('public.t')::text") == [("t",)]


@pytest.mark.parametrize("control", ["begin;", "COMMIT;", "start transaction read write;"])
def test_refuses_files_that_end_the_transaction(empty_database: str, tmp_path: Path, control: str) -> None:
    write(tmp_path, _1_a=f"create table t ();\n{control}")
    with pytest.raises(errors.ConflictError, match="the migrator runs each file in a transaction"):
        migrate.migrate(empty_database, migrations_dir=tmp_path)
    assert rows(empty_database, "select to_regclass('t')") == [(None,)]


def test_the_command_lists_what_it_applied(
    empty_database: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", empty_database)
    names = [migration.path.name for migration in migrate.list_migrations()]
    assert migrate.main(["--dry-run"]) == 0
    assert migrate.main([]) == 0
    assert migrate.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [*(f"would apply {n}" for n in names), *(f"applied {n}" for n in names), "nothing to apply"]


def test_the_command_prints_a_connection_error_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert migrate.main(["--dsn", "postgresql:///x?host=/nowhere"]) == 1
    assert "/nowhere" in capsys.readouterr().err
