"""An existing database receives every later change of the SQL sources, and keeps its rows."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest

from functions.adapters.postgres import search
from functions.local.database import embedded_postgres, migrate, stamp
from functions.local.server import serve
from functions.runtime.config import Config
from functions.runtime.services import Services
from tests.support import database as database_servers
from tests.support import library
from tests.support.requirements import REPOSITORY

NAME = "12_prefers_vector_index.sql"


@pytest.fixture
def folders(tmp_path: Path) -> stamp.Folders:
    """A copy of the repository's sources and migrations that a test may change."""
    copy = stamp.Folders(tmp_path / "sql", tmp_path / "migrations", tmp_path / "migrations.sha256")
    shutil.copytree(migrate.FUNCTIONS, copy.functions)
    shutil.copytree(migrate.MIGRATIONS, copy.migrations)
    shutil.copy(stamp.FROZEN, copy.frozen)
    return copy


def change(folders: stamp.Folders, limit: int) -> None:
    """Changes a number in a function and stamps the change."""
    text = (migrate.FUNCTIONS / NAME).read_text().replace("50000", str(limit))
    (folders.functions / NAME).write_text(text)
    stamp.write_stamp("another limit", folders)


def read_limit(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(
            "select substring(prosrc from '[0-9]+') from pg_proc where proname = %s", (NAME[3:-4],)
        )
        return int(row.fetchall()[0][0])


def test_a_database_receives_every_change_of_a_function(database: str, folders: stamp.Folders) -> None:
    """This includes a second change, because an applied stamp is followed by another stamp."""
    limits = []
    for limit in (60_000, 70_000):
        change(folders, limit)
        migrate.migrate(database, migrations_dir=folders.migrations)
        limits.append(read_limit(database))
    assert limits == [60_000, 70_000]


def test_make_run_updates_an_existing_database_and_keeps_its_documents(
    tmp_path: Path, folders: stamp.Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config(ibid_home=tmp_path, log_level="CRITICAL")
    with serve.open_services(config) as services:
        opened, dsn = services.database, read_dsn(services)
        library.index_document(opened, dsn, ["The zeppelin crossed the sea."], server=library.add_server(opened))
    change(folders, 60_000)
    monkeypatch.setattr(migrate, "migrate", partial(migrate.migrate, migrations_dir=folders.migrations))
    with serve.open_services(config) as services:
        found = search.hybrid_search(services.database, library.ADA, library.make_query("zeppelin"))
        limit = read_limit(read_dsn(services))
    assert ([hit.text for hit in found.hits], limit) == (["The zeppelin crossed the sea."], 60_000)


def migrate_before(cluster: database_servers.TestCluster, folders: stamp.Folders, version: str) -> str:
    """The DSN of a database that has only the migrations before this version."""
    for path in folders.migrations.glob("*.sql"):
        if path.name >= version:
            path.unlink()
    dsn = cluster.create()
    migrate.migrate(dsn, migrations_dir=folders.migrations)
    return dsn


def index_note(connection: psycopg.Connection, texts: Sequence[str], prefix: str = "") -> int:
    """Writes the rows of an indexed note as earlier versions wrote them; returns its generation."""
    add_server = """
        insert into rag.embedding_servers (name, kind, model, dimensions, max_input_tokens)
        values ('m', 'local', 'm', 2, 99) on conflict (name) do update set model = 'm' returning id
    """
    add_note = "insert into rag.notes (owner_id, title) values (%s, 'Note') returning id"
    add_generation = "insert into rag.generations (owner_id, note_id) values (%s, %s) returning id"
    add_chunk = """
        insert into rag.chunks (generation, owner_id, chunk_index, page_start, page_end, start_offset, end_offset, text,
            search_text, lang, token_count)
        values (%s, %s, %s, 1, 1, 0, 1, %s, %s, 'en', 1) returning id
    """
    add_vector = "insert into rag.chunk_vectors values (%s, %s, %s, %s, '[1, 0]')"

    def add(statement: LiteralString, *values: object) -> Any:
        return connection.execute(statement, values).fetchall()[0][0]

    owner, server_id = library.ADA.id, add(add_server)
    generation = int(add(add_generation, owner, add(add_note, owner)))
    rows = enumerate(texts)
    chunk_ids = [add(add_chunk, generation, owner, index, text, prefix + text) for index, text in rows]
    for chunk_id in chunk_ids:
        connection.execute(add_vector, (chunk_id, generation, owner, server_id))
    connection.execute("select rag.index_chunks(%s)", (chunk_ids,))
    connection.execute("update rag.notes set generation = %s where generation is null", (generation,))
    return generation


def test_a_note_that_was_indexed_before_has_the_embedding_server_of_its_vectors(
    cluster: database_servers.TestCluster, folders: stamp.Folders
) -> None:
    """SET-6"""
    dsn = migrate_before(cluster, folders, "20261123030000")
    with psycopg.connect(dsn) as connection:
        index_note(connection, ["alpha"])
    migrate.migrate(dsn)
    with psycopg.connect(dsn) as connection:
        found = connection.execute("select embedding_server_id from rag.notes").fetchall()
        assert found == connection.execute("select id from rag.embedding_servers").fetchall()


@pytest.mark.parametrize("passages", [1, 7, 8, 40])
def test_what_was_indexed_before_keeps_its_term_counts_and_its_indexed_text(
    cluster: database_servers.TestCluster, folders: stamp.Folders, passages: int
) -> None:
    """RET-2"""
    texts = [f"alpha beta word{n // 3} number{n}" for n in range(passages)]
    dsn = migrate_before(cluster, folders, "20261123100000")
    with psycopg.connect(dsn) as connection:
        generation = index_note(connection, texts, prefix="The title\n")
        before = connection.execute("select term, chunk_frequency from rag.generation_terms").fetchall()
    migrate.migrate(dsn)
    with psycopg.connect(dsn) as connection:
        counted = connection.execute(
            "select rag.chunk_frequencies(%s::int[], %s)", ([term for term, _ in before], [generation])
        ).fetchall()
        stored = connection.execute("select search_prefix, search_text from rag.chunks").fetchall()
    assert counted == [({str(term): count for term, count in before},)]
    assert stored == [("The title\n", None)] * passages


def read_dsn(services: Services) -> str:
    assert services.config.database_url is not None
    return services.config.database_url.get_secret_value()


def test_make_run_refuses_a_database_from_before_the_first_release_in_one_line(tmp_path: Path) -> None:
    with (
        embedded_postgres.start(tmp_path / "postgres", settings=embedded_postgres.FAST_SETTINGS) as server,
        psycopg.connect(server.dsn) as connection,
    ):
        connection.execute(migrate.BOOKKEEPING.encode())
        connection.execute(
            "insert into supabase_migrations.schema_migrations (version) values (%s)", (migrate.FIRST_BEFORE_SQUASH,)
        )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        environment = {"PATH": os.environ["PATH"], "IBID_HOME": str(tmp_path), "PORT": str(free.getsockname()[1])}
    command = [sys.executable, "-m", "functions.local", "serve"]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("ibid: This database was made before the migrations were rewritten on 2026-11-22.")
    assert done.stderr.count("\n") == 1
