"""Applies `supabase/migrations` to any Postgres and records them as the Supabase CLI does, so that either can continue.

A migration never changes once it has been applied. Beside the CLI's table the migrator keeps the sha256 of every file
that it applied, and refuses a database whose files have changed since.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg

from functions.core import errors

REPOSITORY = Path(__file__).resolve().parents[3]
MIGRATIONS = REPOSITORY / "supabase" / "migrations"
FUNCTIONS = REPOSITORY / "sql"
SHIM = Path(__file__).with_name("supabase_shim.sql")
SHIM_MARK = "ibid: stand-in for Supabase Auth"
LOCK = 0x1B1D_0001
NAME = re.compile(r"(\d+)_(.*)\.sql")
# The first migration of the development databases that preceded the first release.
FIRST_BEFORE_SQUASH = "20261121000001"
TRANSACTION_CONTROL = re.compile(r"^(begin|commit|rollback|start\s+transaction)\b[^;\n]*;", re.I | re.M)

# The CLI's own statements, so that it finds its table as it would have created it; then our own table.
BOOKKEEPING = """
create schema if not exists supabase_migrations;
create table if not exists supabase_migrations.schema_migrations (version text not null primary key);
alter table supabase_migrations.schema_migrations add column if not exists statements text[];
alter table supabase_migrations.schema_migrations add column if not exists name text;
create table if not exists supabase_migrations.ibid_hashes (version text primary key, sha256 text not null);
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """A file `<version>_<name>.sql`; the CLI and this module ignore files with other names."""

    version: str
    name: str
    path: Path

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def sha256(self) -> str:
        return hash_text(self.text)


def hash_text(text: str) -> str:
    """The sha256 of a file with Unix line ends, as `sha256sum` prints it."""
    return hashlib.sha256(text.encode()).hexdigest()


def list_migrations(folder: Path = MIGRATIONS) -> list[Migration]:
    """The migrations of a folder in the order they are applied."""
    matches = ((NAME.fullmatch(path.name), path) for path in sorted(folder.iterdir()))
    return [Migration(match[1], match[2], path) for match, path in matches if match]


def migrate(dsn: str, *, migrations_dir: Path = MIGRATIONS, dry_run: bool = False) -> list[str]:
    """Applies the missing migrations, each file in its own transaction, and returns the names of those files.

    Processes that migrate at once take turns. Raises ConflictError, before anything is written, when the database's
    history does not fit the files, and psycopg.Error when a statement fails (with a note of its file and line).
    """
    migrations = list_migrations(migrations_dir)
    # A connection of its own: its catalog cache may miss what another process creates before the lock is ours.
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        pending = _list_pending(migrations, _read_history(connection))
    if dry_run:
        return [migration.path.name for migration in pending]
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        apply_shim(connection)
        with connection.transaction():
            _lock(connection)
            _run(connection, BOOKKEEPING, "the tables that record migrations")
            _record_hashes(connection, migrations)
        done = []
        while (migration := _apply_next(connection, migrations)) is not None:
            done.append(migration.path.name)
        return done


def _record_hashes(connection: psycopg.Connection, migrations: Sequence[Migration]) -> None:
    """Takes the files as they are now for migrations that the CLI applied, since it records no hashes."""
    history = _read_history(connection)
    for migration in migrations:
        if history.get(migration.version, "") is None:
            _record_hash(connection, migration)


def _record_hash(connection: psycopg.Connection, migration: Migration) -> None:
    connection.execute(
        "insert into supabase_migrations.ibid_hashes (version, sha256) values (%s, %s)"
        " on conflict (version) do update set sha256 = excluded.sha256",  # after `supabase migration repair`
        (migration.version, migration.sha256),
    )


def _apply_next(connection: psycopg.Connection, migrations: Sequence[Migration]) -> Migration | None:
    """Applies the first missing migration; reads the history again, because another process may be migrating too."""
    connection.execute("reset all")
    with connection.transaction():
        _lock(connection)
        pending = _list_pending(migrations, _read_history(connection))
        if not pending:
            return None
        migration = pending[0]
        text = migration.text
        if control := TRANSACTION_CONTROL.search(text):
            raise errors.ConflictError(
                f"{migration.path.name} contains {control[0]!r}: remove it,"
                " the migrator runs each file in a transaction."
            )
        _run(connection, text, migration.path.name)
        connection.execute(
            "insert into supabase_migrations.schema_migrations (version, name, statements) values (%s, %s, %s)",
            (migration.version, migration.name, [text]),
        )
        _record_hash(connection, migration)
        return migration


def apply_shim(connection: psycopg.Connection) -> bool:
    """Adds to a bare Postgres what a Supabase project has; returns False for a real project, which stays as it is."""
    with connection.transaction():
        _lock(connection)
        row = connection.execute(
            "select obj_description(oid, 'pg_namespace'), to_regprocedure('auth.uid()')"
            " from pg_namespace where nspname = 'auth'"
        ).fetchone()
        if row is not None and row[0] != SHIM_MARK:
            if row[1] is None:
                raise errors.ConflictError(
                    "The database has a schema `auth` that neither Supabase nor Ibid created. Use another database."
                )
            return False
        _run(connection, SHIM.read_text(encoding="utf-8"), SHIM.name)
        place = connection.execute(
            "select extnamespace::regnamespace::text from pg_extension where extname = 'vector'"
        ).fetchone()
        if place != ("extensions",):
            raise errors.ConflictError(
                f"The extension vector is in the schema {place[0] if place else '?'}, but Ibid needs it in extensions."
                " Run: alter extension vector set schema extensions"
            )
        return True


def apply_functions(connection: psycopg.Connection, folder: Path = FUNCTIONS) -> list[str]:
    """Runs every file of `sql/`, stamped or not, in one transaction and in the order of their names."""
    paths = sorted(folder.glob("*.sql"))
    with connection.transaction():
        _lock(connection)
        for path in paths:
            _run(connection, path.read_text(encoding="utf-8"), path.name)
    return [path.name for path in paths]


def _read_history(connection: psycopg.Connection) -> dict[str, str | None]:
    """The applied versions, each with the sha256 of its file, or None where only the CLI has recorded it."""
    hashes: dict[str, str] = {}
    if _table_exists(connection, "supabase_migrations.ibid_hashes"):
        hashes = dict(connection.execute("select version, sha256 from supabase_migrations.ibid_hashes").fetchall())
    if not _table_exists(connection, "supabase_migrations.schema_migrations"):
        return {}
    versions = connection.execute("select version from supabase_migrations.schema_migrations").fetchall()
    return {version: hashes.get(version) for (version,) in versions}


def _table_exists(connection: psycopg.Connection, name: str) -> bool:
    return connection.execute("select to_regclass(%s)", (name,)).fetchone() != (None,)


def _list_pending(migrations: Sequence[Migration], history: Mapping[str, str | None]) -> list[Migration]:
    """The migrations to apply. Refuses unknown, changed and late files, so that all databases have one history."""
    if FIRST_BEFORE_SQUASH in history:
        raise errors.ConflictError(
            "This database was made before the migrations were rewritten on 2026-11-22. This version cannot upgrade it,"
            " and has changed nothing in it. The version that made it still opens it: use that one to read notes and"
            " conversations, and to download the documents under their own names (in storage every file is called"
            " original). Then move the folder IBID_HOME (by default .ibid) aside, or set DATABASE_URL to another"
            " database, and ingest the downloaded files."
        )
    if unknown := sorted(history.keys() - {migration.version for migration in migrations}):
        raise errors.ConflictError(
            f"The database has migrations that are not in supabase/migrations: {', '.join(unknown)}."
            " Update your copy of Ibid; if those migrations were withdrawn, run `supabase migration repair --status"
            " reverted` with their numbers."
        )
    applied = [migration for migration in migrations if migration.version in history]
    if changed := [m.path.name for m in applied if history[m.version] not in (None, m.sha256)]:
        raise errors.ConflictError(
            f"These migrations were changed after they were applied to this database: {', '.join(changed)}."
            " Restore the files and put the change into a new migration (for a change in sql/: make sql-stamp)."
        )
    pending = [migration for migration in migrations if migration.version not in history]
    newest = max(history, default="")
    if late := [migration.path.name for migration in pending if migration.version < newest]:
        raise errors.ConflictError(
            f"These migrations are older than the last applied one ({newest}): {', '.join(late)}."
            " Rename them to a later number, so that every database runs them in the same order."
        )
    return pending


def _lock(connection: psycopg.Connection) -> None:
    connection.execute("select pg_advisory_xact_lock(%s)", (LOCK,))


def _run(connection: psycopg.Connection, text: str, name: str) -> None:
    """Runs a whole file; an error gets a note of the file and the line."""
    try:
        connection.execute(text.encode())
    except psycopg.Error as exc:
        position = exc.diag.statement_position
        exc.add_note(f"in {name}, line {text.count(chr(10), 0, int(position) - 1) + 1}" if position else f"in {name}")
        raise


def main(argv: Sequence[str] | None = None) -> int:
    """`migrate [--dsn DSN] [--dry-run] [--with-functions]`; the default DSN is DATABASE_URL."""
    parser = argparse.ArgumentParser(prog="migrate", description="Applies supabase/migrations to a database.")
    parser.add_argument("--dsn", default=os.environ.get("DATABASE_URL"), help="default: $DATABASE_URL")
    parser.add_argument("--dry-run", action="store_true", help="only list what would be applied")
    parser.add_argument(
        "--with-functions", action="store_true", help="then run sql/*.sql, to try changes before they are stamped"
    )
    options = parser.parse_args(argv)
    if not options.dsn:
        parser.error("give --dsn or set DATABASE_URL")
    try:
        names = migrate(options.dsn, dry_run=options.dry_run)
        if options.with_functions and not options.dry_run:
            with psycopg.connect(options.dsn, autocommit=True) as connection:
                apply_functions(connection)
    except (errors.IbidError, psycopg.Error) as exc:
        print(exc, *getattr(exc, "__notes__", ()), file=sys.stderr)
        return 1
    verb = "would apply" if options.dry_run else "applied"
    print("\n".join(f"{verb} {name}" for name in names) or "nothing to apply")
    return 0
