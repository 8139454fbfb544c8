"""One running server for all acceptance tests. Every test has its own users, which keeps the tests apart."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import database as database_servers
from tests.support.fakes.model_server import FakeModelServer
from tests.support.local_server import LocalServer, Person, run_local_server

CRON_SECRET = "cron-secret-of-the-tests"


@pytest.fixture(scope="session")
def server(
    clusters: database_servers.Clusters, postgres_major: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalServer]:
    cluster = clusters.get(postgres_major)
    dsn = cluster.clone()
    with run_local_server(
        dsn, tmp_path_factory.mktemp("home"), cron_secret=CRON_SECRET, translation_model="opus-mt"
    ) as running:
        yield running
    cluster.drop(dsn)


@pytest.fixture
def ada(server: LocalServer) -> Iterator[Person]:
    with server.person("Ada") as person:
        yield person


@pytest.fixture
def bob(server: LocalServer) -> Iterator[Person]:
    with server.person("Bob") as person:
        yield person


@pytest.fixture
def admin(server: LocalServer) -> Iterator[Person]:
    with server.person("Grace", admin=True) as person:
        yield person


@pytest.fixture(scope="module")
def model() -> Iterator[FakeModelServer]:
    with FakeModelServer() as fake:
        yield fake


@pytest.fixture(scope="module")
def thinking(server: LocalServer, model: FakeModelServer) -> Iterator[LocalServer]:
    """A second server on the same library, which answers with the model."""
    config = server.services.config
    assert config.database_url is not None
    dsn = config.database_url.get_secret_value()
    with run_local_server(dsn, config.home, worker=False, chat_model="fake", openai_base_url=model.base_url) as running:
        yield running
