"""An installation whose database, storage and model server can fail: what is outside of it is behind a switch."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

import psycopg
from pydantic import SecretStr

from functions import sweeper
from functions.adapters.postgres import settings as stored_settings
from functions.core import errors, models
from functions.local.database import embedded_postgres, migrate
from functions.local.server import worker as local_worker
from tests.acceptance.support import stored_state
from tests.faults.proxy import Proxy
from tests.support.fakes import key_server, storage_server
from tests.support.fakes.model_server import FakeModelServer
from tests.support.fakes.storage_refusals import KEY
from tests.support.fakes.storage_server import StorageServer
from tests.support.local_server import Json, LocalServer, Person, run_local_server, wait_until

JWT_SECRET = "the legacy secret of a project, 40 bytes"
FIRST_WORD_SECONDS = 2.0
KEPT = "The lighthouse of Aarhus was painted green in 1931."
KEPT_QUESTION = "When was the lighthouse of Aarhus painted green?"
_LIMITS = {"questions_per_day": 100_000, "requests_per_minute": 10_000, "uploads_per_minute": 1_000}


def do_nothing() -> None:
    """What a fault does between two steps of a flow, unless it sets something else."""


@dataclass
class Plant:
    """The running installation, and what faults switch."""

    postgres: embedded_postgres.Server
    database: Proxy
    storage: StorageServer
    storage_proxy: Proxy
    model: FakeModelServer
    server: LocalServer
    home: Path
    between_steps: Callable[[], None] = field(default=do_nothing)
    """Called in the middle of a flow that has several steps."""
    person: Person | None = None
    """Who is visiting."""
    announces_uploads: bool = True
    """Whether the client says that its upload is complete."""

    @property
    def dsn(self) -> str:
        """The address of the database itself."""
        return self.postgres.dsn

    def execute(self, statement: str) -> None:
        """Runs a statement as the superuser, past the switch."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(statement.encode())

    def environment(self) -> dict[str, str]:
        """The variables with which another process is a server of this installation."""
        config = self.server.services.config
        assert config.database_url is not None
        return {
            "DATABASE_URL": config.database_url.get_secret_value(),
            "IBID_HOME": str(self.home),
            "SUPABASE_URL": str(config.supabase_url),
            "SUPABASE_SECRET_KEY": KEY,
            "SUPABASE_JWT_SECRET": JWT_SECRET,
            "OPENAI_BASE_URL": self.model.base_url,
            "CHAT_MODEL": "fake",
            "EMBEDDING_MODEL": "fake",
            "EMBEDDING_BASE_URL": self.model.base_url,
            "EMBEDDING_DIMENSIONS": str(self.model.dimensions),
            "LOG_LEVEL": "CRITICAL",
        }

    def kill_database(self) -> None:
        assert self.postgres.pid is not None
        os.kill(self.postgres.pid, signal.SIGKILL)
        wait_until(lambda: self.postgres.pid is None)

    def let_time_pass(self) -> None:
        """What the next minutes bring: waits of retries end, lost jobs are given back, the sweeper runs."""
        with suppress(errors.IbidError):
            self.execute("update rag.ingest_jobs set run_after = clock_timestamp() where status = 'queued'")
            with self.server.worker.paused():
                local_worker.release_lost_jobs(self.server.services)
            sweeper.sweep(self.server.services)

    def find_leftovers(self) -> Json:
        """Orphans in the database; the storage keeps its objects in memory."""
        found = stored_state.find_leftovers(self.dsn, self.home / "storage")
        return {what: rows for what, rows in found.items() if what != "files"}

    @contextmanager
    def visitor(self) -> Iterator[Person]:
        """A new user."""
        with self.server.person() as person:
            claims = key_server.claims(
                f"{self.server.services.config.supabase_url}/auth/v1", sub=person.id, exp=int(time.time()) + 3600
            )
            person.token = key_server.sign(claims, JWT_SECRET, "HS256")
            person.http.headers["Authorization"] = f"Bearer {person.token}"
            self.person = person
            yield person


def _connect_to(dsn: str) -> socket.socket:
    target = psycopg.conninfo.conninfo_to_dict(dsn)
    inside = socket.socket(socket.AF_UNIX)
    try:
        inside.connect(f"{target['host']}/.s.PGSQL.{target['port']}")
    except OSError:
        inside.close()
        raise
    return inside


@contextmanager
def open_plant() -> Iterator[Plant]:
    with ExitStack() as stack:
        # Not pytest's folder: root's is closed to the server's user. Only fsync is off, so commits survive a kill.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ibid-faults-"))).resolve()
        postgres = stack.enter_context(embedded_postgres.start(folder / "postgres", settings={"fsync": "off"}))
        migrate.migrate(postgres.dsn)
        target = psycopg.conninfo.conninfo_to_dict(postgres.dsn)
        database = Proxy(lambda: _connect_to(postgres.dsn))
        stack.callback(database.close)
        storage = stack.enter_context(storage_server.run(postgres.dsn))
        address = urlsplit(storage.url)
        storage_proxy = Proxy(lambda: socket.create_connection((str(address.hostname), int(address.port or 0))))
        stack.callback(storage_proxy.close)
        model = stack.enter_context(FakeModelServer())
        dsn = (
            f"postgresql://{target['user']}:x@127.0.0.1:{database.port}/{quote(str(target['dbname']))}?sslmode=disable"
        )
        (folder / "home").mkdir()
        server = stack.enter_context(
            run_local_server(
                dsn,
                folder / "home",
                supabase_url=f"http://127.0.0.1:{storage_proxy.port}",
                supabase_secret_key=SecretStr(KEY),
                supabase_jwt_secret=SecretStr(JWT_SECRET),
                chat_model="fake",
                openai_base_url=model.base_url,
                chat_first_word_seconds=FIRST_WORD_SECONDS,
                embedding_model="fake",
                embedding_base_url=model.base_url,
                embedding_dimensions=model.dimensions,
            )
        )
        with server.services.database.as_worker() as connection:
            stored_settings.write(connection, _LIMITS, models.User.named("00000000-0000-4000-8000-000000000000"))
        server.services.forget_policy()
        yield Plant(postgres, database, storage, storage_proxy, model, server, folder / "home")
