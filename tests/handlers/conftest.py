"""An installation like one on Lambda: configured by environment variables alone, with its own database and files."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from functions.adapters import auth, sqs
from functions.adapters.laptop import object_rows
from functions.adapters.laptop.object_store import LocalObjectStore
from functions.core import models
from functions.runtime.services import Services, shared_services
from tests.handlers import events
from tests.handlers.events import Answer, Json
from tests.support import database as database_servers

CRON_SECRET = "cron-secret-of-the-tests"
WEBHOOK_SECRET = "webhook-secret-of-the-tests"
QUEUE = "https://sqs.eu-central-1.amazonaws.com/123456789012/ibid-dev-ingest"


@contextmanager
def _installed(dsn: str, home: Path, **environment: str) -> Iterator[Services]:
    variables = {
        "DATABASE_URL": dsn,
        "IBID_HOME": str(home),
        "CRON_SECRET": CRON_SECRET,
        "WEBHOOK_SECRET": WEBHOOK_SECRET,
        "INGEST_QUEUE_URL": QUEUE,
        "LOG_LEVEL": "CRITICAL",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (variables | environment).items():
            patch.setenv(name, value)
        shared_services.cache_clear()
        services = shared_services()
        yield services
        if "database" in vars(services):
            services.database.close()
        shared_services.cache_clear()


@pytest.fixture(scope="module", autouse=True)
def event_loop() -> Iterator[None]:
    """Sets the event loop that Mangum asks for, which an earlier test may have removed, and closes it."""
    with suppress(RuntimeError), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        asyncio.get_event_loop().close()
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.fixture(scope="package")
def _installation(
    clusters: database_servers.Clusters, postgres_major: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path]]:
    cluster = clusters.get(postgres_major)
    dsn = cluster.clone()
    yield dsn, tmp_path_factory.mktemp("home")
    cluster.drop(dsn)


@pytest.fixture(scope="module")
def services(_installation: tuple[str, Path]) -> Iterator[Services]:
    """The services that handlers use. Tests share them, each with its own users."""
    with _installed(*_installation) as services:
        yield services


@pytest.fixture
def fresh_services(database: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Services]:
    """The same on a fresh database; `parametrize(indirect=True)` sets other variables.

    A module uses either this or `services`: the process has one set of services at a time.
    """
    with _installed(database, tmp_path, **getattr(request, "param", {})) as services:
        yield services


@pytest.fixture(autouse=True)
def nudges(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ids of the jobs that were sent to the queue."""
    sent: list[int] = []

    def send_job(queue_url: str, job_id: int) -> None:
        assert queue_url == QUEUE
        sent.append(job_id)

    monkeypatch.setattr(sqs, "send_job", send_job)
    return sent


class Caller:
    """A signed-in user who calls the functions through the gateway."""

    def __init__(self, services: Services, *, admin: bool = False) -> None:
        self.services = services
        self.user = models.User(str(uuid4()), admin, {})
        self.token = auth.issue_local_token(services.local_secret, self.user.id, "someone", admin=admin)

    def call(self, module: str, method: str, path: str, body: Any = None, **options: Any) -> Answer:
        headers = {"authorization": f"Bearer {self.token}"} | options.pop("headers", {})
        return events.send(module, events.http(method, path, body, headers=headers, **options))

    def announce(self, file_name: str = "boiler.txt", size: int = 1000) -> Json:
        answer = self.call("documents", "POST", "/api/rag/documents", {"file_name": file_name, "size": size})
        assert answer.status == 201, answer.content
        document: Json = answer.json["document"]
        return document

    def store(self, document: Json, content: bytes) -> int:
        """Stores the bytes and writes the row as the storage does. Returns the id of the new job."""
        path = f"{self.user.id}/{document['id']}/original.{document['file_type']}"
        store = self.services.objects
        assert isinstance(store, LocalObjectStore)
        store.put(path, [content], record=partial(object_rows.record, self.services.database))
        return int(self.row("select id from rag.ingest_jobs where document_id = %s", document["id"])["id"])

    def add(self, content: bytes, file_name: str = "boiler.txt") -> Json:
        """An indexed document."""
        document = self.announce(file_name, len(content))
        self.services.make_worker().ingest_next(self.store(document, content))
        found = self.call("documents", "GET", f"/api/rag/documents/{document['id']}").json
        assert found["status"] == "indexed", found
        return dict(found)

    def row(self, statement: str, *parameters: object) -> Json:
        """One row, read as the worker role."""
        with self.services.database.as_worker() as connection:
            found = connection.execute(statement, parameters).fetchone()
        assert found is not None
        return found


@pytest.fixture
def caller(services: Services) -> Caller:
    return Caller(services)


@pytest.fixture
def admin(services: Services) -> Iterator[Caller]:
    yield Caller(services, admin=True)
    with services.database.as_worker() as connection:
        connection.execute("delete from rag.settings")
    services.forget_policy()
