"""Applies `supabase/migrations` to any Postgres and keeps book as the Supabase CLI does: each can follow the other."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
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
TRANSACTION_CONTROL = re.compile(r"^(begin|commit|rollback|start\s+transaction)\b[^;\n]*;", re.I | re.M)

# The CLI's own statements, so that it finds its table as it would have made it.
BOOKKEEPING = """
create schema if not exists supabase_migrations;
create table if not exists supabase_migrations.schema_migrations (version text not null primary key);
alter table supabase_migrations.schema_migrations add column if not exists statements text[];
alter table supabase_migrations.schema_migrations add column if not exists name text;
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """A file `<version>_<name>.sql`; other files are no migrations, to the CLI as to us."""

    version: str
    name: str
    path: Path

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")


def list_migrations(folder: Path = MIGRATIONS) -> list[Migration]:
    """The migrations of a folder in the order they are applied."""
    matches = ((NAME.fullmatch(path.name), path) for path in sorted(folder.iterdir()))
    return [Migration(match[1], match[2], path) for match, path in matches if match]


def migrate(
    dsn: str, *, migrations_dir: Path = MIGRATIONS, dry_run: bool = False, with_functions: bool = False
) -> list[str]:
    """Applies what is missing, each file in its own transaction, and returns the names of those files.

    Processes that migrate at once take turns. `with_functions` applies `sql/` afterwards, without stamping it: for
    development. Raises ConflictError when history and files do not fit, psycopg.Error when a statement fails (with a
    note of the place).
    """
    migrations = list_migrations(migrations_dir)
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        if dry_run:
            pending = _pending(migrations, _applied(connection))
            return [migration.path.name for migration in pending]
        apply_shim(connection)
        with connection.transaction():
            _lock(connection)
            _run(connection, BOOKKEEPING, "the table of migrations")
        done = []
        while (migration := _apply_next(connection, migrations)) is not None:
            done.append(migration.path.name)
        if with_functions:
            apply_functions(connection)
        return done


def _apply_next(connection: psycopg.Connection, migrations: Sequence[Migration]) -> Migration | None:
    """Applies the first missing migration; asks anew what is missing, since another process may be at it too."""
    connection.execute("reset all")
    with connection.transaction():
        _lock(connection)
        pending = _pending(migrations, _applied(connection))
        if not pending:
            return None
        migration = pending[0]
        text = migration.text
        if control := TRANSACTION_CONTROL.search(text):
            raise errors.ConflictError(f"{migration.path.name} says {control[0]!r}: leave transactions to the migrator")
        _run(connection, text, migration.path.name)
        connection.execute(
            "insert into supabase_migrations.schema_migrations (version, name, statements) values (%s, %s, %s)",
            (migration.version, migration.name, [text]),
        )
        return migration


def apply_shim(connection: psycopg.Connection) -> bool:
    """Makes a bare Postgres look like a Supabase project; does nothing to a real one."""
    with connection.transaction():
        _lock(connection)
        row = connection.execute(
            "select obj_description(oid, 'pg_namespace'), to_regprocedure('auth.uid()')"
            " from pg_namespace where nspname = 'auth'"
        ).fetchone()
        if row is not None and row[0] != SHIM_MARK:
            if row[1] is None:
                raise errors.ConflictError(
                    "The database has a schema `auth` that is neither Supabase's nor ours. Use another database."
                )
            return False
        _run(connection, SHIM.read_text(encoding="utf-8"), SHIM.name)
        place = connection.execute(
            "select extnamespace::regnamespace::text from pg_extension where extname = 'vector'"
        ).fetchone()
        if place != ("extensions",):
            raise errors.ConflictError(
                f"The extension vector is in the schema {place[0] if place else '?'}; it must be in extensions:"
                " alter extension vector set schema extensions"
            )
        return True


def apply_functions(connection: psycopg.Connection, folder: Path = FUNCTIONS) -> list[str]:
    """Runs every file of `sql/` in one transaction and in the order of their names."""
    paths = sorted(folder.glob("*.sql"))
    with connection.transaction():
        _lock(connection)
        for path in paths:
            _run(connection, path.read_text(encoding="utf-8"), path.name)
    return [path.name for path in paths]


def _applied(connection: psycopg.Connection) -> set[str]:
    found = connection.execute("select to_regclass('supabase_migrations.schema_migrations')").fetchone()
    if found == (None,):
        return set()
    return {row[0] for row in connection.execute("select version from supabase_migrations.schema_migrations")}


def _pending(migrations: Sequence[Migration], applied: set[str]) -> list[Migration]:
    """The migrations to apply; refuses what would apply them in an order nobody has tested."""
    if unknown := sorted(applied - {migration.version for migration in migrations}):
        raise errors.ConflictError(
            f"The database has migrations that are not in supabase/migrations: {', '.join(unknown)}. Update the files;"
            " if those migrations were withdrawn, run `supabase migration repair --status reverted` with their numbers."
        )
    pending = [migration for migration in migrations if migration.version not in applied]
    newest = max(applied, default="")
    if late := [migration.path.name for migration in pending if migration.version < newest]:
        raise errors.ConflictError(
            f"These migrations are older than the last applied one ({newest}): {', '.join(late)}."
            " Rename them to a later number, so that every database runs them in the same order."
        )
    return pending


def _lock(connection: psycopg.Connection) -> None:
    connection.execute("select pg_advisory_xact_lock(%s)", (LOCK,))


def _run(connection: psycopg.Connection, text: str, name: str) -> None:
    """Runs a whole file; an error gets a note of where in it."""
    try:
        connection.execute(text.encode())
    except psycopg.Error as exc:
        position = exc.diag.statement_position
        exc.add_note(f"in {name}, line {text.count(chr(10), 0, int(position) - 1) + 1}" if position else f"in {name}")
        raise


def main(argv: Sequence[str] | None = None) -> int:
    """`migrate [--dsn DSN] [--dry-run] [--with-functions]`; DATABASE_URL is the default DSN."""
    parser = argparse.ArgumentParser(prog="migrate", description="Applies supabase/migrations to a database.")
    parser.add_argument("--dsn", default=os.environ.get("DATABASE_URL"), help="default: $DATABASE_URL")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be applied")
    parser.add_argument("--with-functions", action="store_true", help="then run sql/*.sql as they are, unstamped")
    options = parser.parse_args(argv)
    if not options.dsn:
        parser.error("give --dsn or set DATABASE_URL")
    try:
        names = migrate(options.dsn, dry_run=options.dry_run, with_functions=options.with_functions)
    except (errors.IbidError, psycopg.Error) as exc:
        print(exc, *getattr(exc, "__notes__", ()), file=sys.stderr)
        return 1
    verb = "would apply" if options.dry_run else "applied"
    print("\n".join(f"{verb} {name}" for name in names) or "nothing to apply")
    return 0
