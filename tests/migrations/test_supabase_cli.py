"""`supabase db push` and our migrator recognize what the other has applied, and the CLI accepts our configuration."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from functions.adapters.postgres.connection import Database
from functions.core.extraction import file_types
from functions.core.settings import Settings
from functions.local.database import migrate
from tests.migrations.tcp_bridge import open_bridge
from tests.support import database as database_servers
from tests.support import library, requirements
from tests.support.fakes import pg_net
from tests.support.requirements import REPOSITORY

VERSION = "3.1.0"
INSTALLED = REPOSITORY / ".build" / "supabase-cli"
ROWS = re.compile(r"`(\d{14})`\s*\|\s*`\s*(\d*)\s*`")
APPLIED = re.compile(r"Applying migration (\S+?)\.\.\.")
Run = Callable[..., str]


def need_supabase_cli() -> str:
    requirements.need_node()
    program = shutil.which("supabase", path=str(INSTALLED / "node_modules" / ".bin"))
    return program or requirements.missing(f"the Supabase CLI {VERSION} in {INSTALLED.name} (make supabase-cli)")


@pytest.fixture
def cli(tmp_path: Path) -> Run:
    """Runs the CLI on a copy of supabase/, because it leaves files there; returns its output."""
    program = need_supabase_cli()
    shutil.copytree(REPOSITORY / "supabase", tmp_path / "supabase")
    quiet = {"SUPABASE_TELEMETRY_DISABLED": "1", "DO_NOT_TRACK": "1", "CI": "true", "NO_COLOR": "1"}
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)} | quiet

    def run(*arguments: str, dsn: str, **variables: str) -> str:
        with open_bridge(dsn) as url:
            command = [program, *arguments, "--workdir", str(tmp_path), f"--remote={url}"]
            done = subprocess.run(
                command, capture_output=True, text=True, env=environment | variables, timeout=60, check=False
            )
        assert done.returncode == 0, done.stderr
        assert "WARN" not in done.stderr  # the CLI warns of what it does not understand in config.toml
        return done.stdout + done.stderr

    return run


@pytest.fixture
def cluster(clusters: database_servers.Clusters) -> database_servers.TestCluster:
    """One version of Postgres is enough: the CLI is a client like any other, and slow."""
    return clusters.get(database_servers.MAJORS[0])


@pytest.fixture
def project(empty_database: str) -> str:
    """A database with the schemas of a Supabase project, and none of Ibid's."""
    with psycopg.connect(empty_database, autocommit=True) as connection:
        migrate.apply_shim(connection)
    return empty_database


def describe(dsn: str) -> list[Any]:
    """The functions of a database with their bodies and rights, and its columns, policies and triggers."""
    with psycopg.connect(dsn) as connection:
        return connection.execute(
            "select 'function', oid::regprocedure::text, concat(md5(prosrc), proacl::text, proconfig::text)"
            " from pg_proc where pronamespace = 'rag'::regnamespace"
            " union all select 'column', table_name || '.' || column_name, concat(udt_name, column_default)"
            " from information_schema.columns where table_schema = 'rag'"
            " union all select 'policy', tablename || ' ' || policyname, concat(qual, with_check, roles::text)"
            " from pg_policies where schemaname = 'rag'"
            " union all select 'trigger', tgrelid::regclass || ' ' || tgname, pg_get_triggerdef(oid)"
            " from pg_trigger where not tgisinternal order by 1, 2, 3"
        ).fetchall()


def test_the_cli_pushes_everything_and_our_migrator_finds_nothing_left(
    cli: Run, project: str, cluster: database_servers.TestCluster
) -> None:
    output = cli("db", "push", "--yes", "--include-seed", dsn=project)
    assert APPLIED.findall(output) == [migration.path.name for migration in migrate.list_migrations()]
    assert (migrate.migrate(project), migrate.migrate(project, dry_run=True)) == ([], [])
    ours = cluster.create()
    migrate.migrate(ours)
    assert describe(project) == describe(ours)
    cluster.drop(ours)


def test_the_cli_finds_nothing_to_push_after_our_migrator(cli: Run, empty_database: str) -> None:
    migrate.migrate(empty_database)
    assert "up to date" in cli("db", "push", "--yes", dsn=empty_database)
    versions = [migration.version for migration in migrate.list_migrations()]
    assert ROWS.findall(cli("migration", "list", dsn=empty_database)) == [(v, v) for v in versions]


def test_the_cli_continues_where_our_migrator_stopped(cli: Run, project: str, tmp_path: Path) -> None:
    """Our migrator applies the first four migrations, the CLI the rest."""
    half = tmp_path / "half"
    half.mkdir()
    names = [migration.path for migration in migrate.list_migrations()]
    for path in names[:4]:
        shutil.copy(path, half)
    assert migrate.migrate(project, migrations_dir=half) == [path.name for path in names[:4]]
    output = cli("db", "push", "--yes", dsn=project)
    assert APPLIED.findall(output) == [path.name for path in names[4:]]
    assert migrate.migrate(project) == []


def test_the_cli_sets_the_storage_event_up_once(cli: Run, project: str) -> None:
    """ING-10: two variables, once; later pushes without them change nothing."""
    with psycopg.connect(project, autocommit=True) as connection:
        connection.execute((pg_net.NET + pg_net.VAULT).encode())
    url = "https://api.example.org/api/hooks/storage"
    cli("db", "push", "--yes", dsn=project, IBID_WEBHOOK_URL=url, WEBHOOK_SECRET="s3cret")
    cli("db", "push", "--yes", dsn=project)
    database = Database(project)
    library.store_object(project, library.ADA, library.add_document(database))
    database.close()
    with psycopg.connect(project) as connection:
        sent = connection.execute("select url, headers ->> 'x-webhook-secret' from net.http_request_queue").fetchall()
    assert sent == [(url, "s3cret")]


def test_the_configuration_agrees_with_the_migrations_and_the_settings() -> None:
    """The configuration of a project must not contradict the migrations and the settings."""
    config = tomllib.loads((REPOSITORY / "supabase" / "config.toml").read_text(encoding="utf-8"))
    bucket = config["storage"]["buckets"]["documents"]
    assert (bucket["public"], bucket["file_size_limit"], config["storage"]["file_size_limit"]) == (
        False,
        "100MiB",
        "100MiB",
    )
    assert Settings().max_file_bytes <= 100 * 1024 * 1024
    assert set(bucket["allowed_mime_types"]) == set(file_types.MEDIA_TYPES.values())
    assert config["auth"]["enable_anonymous_sign_ins"] is False
