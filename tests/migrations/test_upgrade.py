"""A database that exists receives every later change of the code, and keeps what it holds."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from functions.adapters.postgres import search
from functions.adapters.postgres.connection import Database
from functions.local import embedded_postgres, migrate, stamp
from tests import library
from tests.requirements import REPOSITORY

NAME = "12_prefers_vector_index.sql"


@pytest.fixture
def folders(tmp_path: Path) -> stamp.Folders:
    """A copy of the repository's sources and migrations, to be changed."""
    copy = stamp.Folders(tmp_path / "sql", tmp_path / "migrations", tmp_path / "migrations.sha256")
    shutil.copytree(migrate.FUNCTIONS, copy.functions)
    shutil.copytree(migrate.MIGRATIONS, copy.migrations)
    shutil.copy(stamp.FROZEN, copy.frozen)
    return copy


def update(dsn: str, folders: stamp.Folders, limit: int) -> int:
    """Changes a number in a function, stamps the change, migrates; returns the number that the database has then."""
    source = folders.functions / NAME
    source.write_text((migrate.FUNCTIONS / NAME).read_text().replace("50000", str(limit)))
    stamp.write_stamp("another limit", folders)
    migrate.migrate(dsn, migrations_dir=folders.migrations)
    with psycopg.connect(dsn) as connection:
        row = connection.execute(
            "select substring(prosrc from '[0-9]+') from pg_proc where proname = %s", (NAME[3:-4],)
        )
        return int(row.fetchall()[0][0])


def test_a_database_receives_every_change_of_a_function(database: str, folders: stamp.Folders) -> None:
    """Also a second change within the same release: a stamp that was applied is followed by another."""
    assert [update(database, folders, limit) for limit in (60_000, 70_000)] == [60_000, 70_000]


def test_a_database_keeps_its_documents_when_functions_change(database: str, folders: stamp.Folders) -> None:
    opened = Database(database)
    library.index_document(opened, database, ["The zeppelin crossed the sea."], server=library.add_server(opened))
    update(database, folders, 60_000)
    found = search.hybrid_search(opened, library.ADA, library.make_query("zeppelin"))
    opened.close()
    assert [hit.text for hit in found.hits] == ["The zeppelin crossed the sea."]


def test_make_run_refuses_a_database_from_before_the_first_release_in_one_line(tmp_path: Path) -> None:
    with (
        embedded_postgres.start(tmp_path / "postgres", settings=embedded_postgres.FAST_SETTINGS) as server,
        psycopg.connect(server.dsn) as connection,
    ):
        connection.execute(migrate.BOOKKEEPING.encode())
        connection.execute(
            "insert into supabase_migrations.schema_migrations (version) values (%s)", (migrate.FIRST_BEFORE_RELEASE,)
        )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        environment = {"PATH": os.environ["PATH"], "IBID_HOME": str(tmp_path), "PORT": str(free.getsockname()[1])}
    command = [sys.executable, "-m", "functions.local", "serve"]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("ibid: This database was made by a version of Ibid from before its first release.")
    assert done.stderr.count("\n") == 1
