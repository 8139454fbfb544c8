"""A database and a folder shared by workers in this process and in processes that tests can kill."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from pydantic import SecretStr

from functions.adapters.postgres import documents, settings
from functions.core import models
from functions.local import terminal
from functions.runtime.config import Config
from functions.runtime.services import Services
from tests.acceptance.support import stored_state
from tests.support.requirements import REPOSITORY


class Workplace:
    """An installation without a server; files are added as `functions.local ingest` adds them."""

    def __init__(self, dsn: str, home: Path) -> None:
        self.dsn = dsn
        self.home = home
        self.temporary = home / "tmp"
        self.temporary.mkdir(parents=True, exist_ok=True)
        self.services = Services(Config(database_url=SecretStr(dsn), ibid_home=home, log_level="CRITICAL"))

    def start_worker(self) -> subprocess.Popen[bytes]:
        """A worker process as the server starts it, with its own folder for temporary files."""
        environment = {"DATABASE_URL": self.dsn, "IBID_HOME": str(self.home), "TMPDIR": str(self.temporary)}
        return subprocess.Popen(
            [sys.executable, "-m", "functions.local", "work", "--parent", str(os.getpid())],
            cwd=REPOSITORY,
            env=os.environ | environment | {"LOG_LEVEL": "CRITICAL"},
        )

    def set(self, key: str, value: int) -> None:
        with self.services.database.as_worker() as connection:
            settings.write(connection, {key: value}, make_user())
        self.services.forget_policy()

    def add_note(self, user: models.User, title: str, content: str) -> None:
        with self.services.database.as_user(user) as connection:
            connection.execute(
                "insert into rag.notes (owner_id, title, content) values (%s, %s, %s)", (user.id, title, content)
            )

    def add_files(self, user: models.User, folder: Path) -> None:
        for path in sorted(folder.iterdir()):
            terminal.add_file(self.services, user, path)

    def reindex(self, user: models.User) -> None:
        """Queues every document again."""
        with self.services.database.as_user(user) as connection:
            for row in connection.execute("select id from rag.documents").fetchall():
                documents.request_ingest_job(connection, str(row["id"]))

    def run_due_jobs(self) -> None:
        """Runs jobs in this process until none is due."""
        while self.services.make_worker().ingest_next() is not None:
            pass

    def count(self, condition: str) -> int:
        """The number of jobs that match a condition in SQL."""
        with self.services.database.as_worker() as connection:
            row = connection.execute(f"select count(*) as n from rag.ingest_jobs where {condition}").fetchone()
        assert row is not None
        return int(row["n"])

    def is_idle(self) -> bool:
        return self.count("status in ('queued', 'running')") == 0

    def find_leftovers(self) -> Mapping[str, object]:
        """Orphans, including temporary files of workers."""
        found: dict[str, object] = dict(stored_state.find_leftovers(self.dsn, self.home / "storage"))
        # onnxruntime keeps one small file (.ses) there, which is no leftover.
        if names := sorted(path.name for path in self.temporary.iterdir() if path.name != ".ses"):
            found["temporary files"] = names
        return found

    def contents(self, user: models.User) -> dict[str, dict[str, stored_state.Rows]]:
        return stored_state.read_contents(self.dsn, user.id)

    def statuses(self, user: models.User) -> dict[str, str]:
        return stored_state.read_statuses(self.dsn, user.id)


@contextmanager
def open_workplace(dsn: str, home: Path) -> Iterator[Workplace]:
    place = Workplace(dsn, home)
    try:
        yield place
    finally:
        place.services.database.close()


def make_user() -> models.User:
    return models.User.named(str(uuid4()))


def wait_for(condition: object, seconds: float) -> bool:
    """Whether `condition()` became true in time."""
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not (found := bool(condition())) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found
