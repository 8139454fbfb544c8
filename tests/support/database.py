"""Databases for tests: one embedded server for each version, with a migrated template that each test clones."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from functions.local.database import embedded_postgres, migrate, stamp

# Supabase runs a version between these two; SQL is tested on both.
MAJORS = (18, 16)
MIN_FREE_MEMORY = 8 << 30
ON_BOTH_VERSIONS = ("tests/sql/", "tests/migrations/")


def majors_for(node_id: str) -> tuple[int, ...]:
    """The versions a test runs on; IBID_TEST_PG=16 or 18,16 decides for all tests."""
    if chosen := os.environ.get("IBID_TEST_PG"):
        return tuple(int(major) for major in chosen.split(","))
    return MAJORS if node_id.startswith(ON_BOTH_VERSIONS) else MAJORS[:1]


class TestCluster:
    """A temporary server whose databases are cloned from one template."""

    __test__ = False

    def __init__(self, major: int, folder: Path) -> None:
        self.major = major
        self.server = embedded_postgres.start(folder, major=major, settings=embedded_postgres.FAST_SETTINGS)
        self._numbers = itertools.count(1)

    @cached_property
    def template(self) -> str:
        """The name of a database that was migrated as `make run` migrates it."""
        if unstamped := stamp.find_changes():
            raise AssertionError(
                f"Databases for tests would lack the changes of {', '.join(unstamped)}. Run make sql-stamp first."
            )
        dsn = self.create(None, "ibid_template")
        migrate.migrate(dsn)
        return "ibid_template"

    @cached_property
    def shared_dsn(self) -> str:
        """A migrated database for tests that roll back all their changes."""
        return self.clone()

    def clone(self) -> str:
        """The DSN of a new migrated database."""
        return self.create(self.template)

    def create(self, template: str | None = None, name: str | None = None) -> str:
        """The DSN of a new database, an empty one by default."""
        name = name or f"test_{next(self._numbers)}"
        # Copying the files takes half as long as copying pages through the log, the default.
        self._run("create database {} template {} strategy file_copy", name, template or "template0")
        return self.server.dsn_for(name)

    def drop(self, dsn: str) -> None:
        self._run("drop database {} with (force)", psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])

    def _run(self, statement: str, *names: Any) -> None:
        with psycopg.connect(self.server.dsn, autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def _find_memory_folder() -> str | None:
    """A folder in memory, if it has space: creating and dropping a thousand databases on a disk is slow."""
    memory = Path("/dev/shm")
    has_space = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > MIN_FREE_MEMORY
    return str(memory) if has_space else None


class Clusters:
    """The servers of this test run, each started when a test first needs it."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._started: dict[int, TestCluster] = {}

    def get(self, major: int) -> TestCluster:
        if major not in self._started:
            folder = self._stack.enter_context(
                tempfile.TemporaryDirectory(prefix="ibid-test-", dir=_find_memory_folder())
            )
            cluster = TestCluster(major, Path(folder))
            self._stack.callback(cluster.server.stop)
            self._started[major] = cluster
        return self._started[major]

    def close(self) -> None:
        self._stack.close()


def add_user(connection: psycopg.Connection, name: str = "someone") -> str:
    """A new row of auth.users; returns its id."""
    user_id = str(uuid.uuid4())
    connection.execute("insert into auth.users (id, email) values (%s, %s)", (user_id, f"{name}-{user_id}@example.org"))
    return user_id


@contextmanager
def as_user(
    connection: psycopg.Connection, user_id: str | None, *, role: str = "authenticated", admin: bool = False
) -> Iterator[psycopg.Connection]:
    """Inside the block, statements run as they do for this user through the API; `role="anon"` needs no user."""
    claims: dict[str, Any] = {"role": role, "aud": role}
    if user_id is not None:
        claims["sub"] = user_id
    if admin:
        claims["app_metadata"] = {"role": "admin"}
    with connection.transaction():
        connection.execute(
            "select set_config('role', %s, true), set_config('request.jwt.claims', %s, true)",
            (role, json.dumps(claims)),
        )
        yield connection
        connection.execute("select set_config('role', 'none', true), set_config('request.jwt.claims', '', true)")
