"""What every test has: a clean environment, and databases on the Postgres versions it is for."""

from __future__ import annotations

import os
from collections.abc import Iterator

import psycopg
import pytest

from tests.support import database as database_servers

OUTSIDE = ("OPENAI_", "SUPABASE_", "CHAT_", "EMBEDDING_", "RERANK_", "IBID_", "PG", "AWS_")
OUTSIDE_NAMES = (
    "DATABASE_URL",
    "CRON_SECRET",
    "WEBHOOK_SECRET",
    "METRICS_TOKEN",
    "PORT",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
)
# Files of few and long tests, the longest first: two processes that share the files would else end with one waiting.
LONGEST = (
    "test_scifact.py",
    "test_make_run.py",
    "test_lexical_arm.py",
    "test_scans.py",
    "test_crashes.py",
    "test_time_limit.py",
)
KEPT = ("IBID_REQUIRE_ALL", "IBID_EVAL_DATA", "IBID_CORPUS_DATA", "IBID_TEST_PG", "IBID_TEST_INSTALL")


@pytest.fixture(scope="session", autouse=True)
def clean_environment() -> Iterator[None]:
    """No key, address or proxy of the machine reaches a test."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if (name.startswith(OUTSIDE) or name.upper() in OUTSIDE_NAMES) and name not in KEPT:
                patch.delenv(name)
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first; `--no-loadscope-reorder` keeps the order where processes share them."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(LONGEST)))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that uses a database, through whatever fixture, runs once for each version it is for."""
    if "postgres_major" in metafunc.fixturenames:
        majors = database_servers.majors_for(metafunc.definition.nodeid)
        metafunc.parametrize("postgres_major", majors, ids=[f"pg{major}" for major in majors], scope="session")


@pytest.fixture(scope="session")
def clusters() -> Iterator[database_servers.Clusters]:
    found = database_servers.Clusters()
    yield found
    found.close()


@pytest.fixture
def cluster(clusters: database_servers.Clusters, postgres_major: int) -> database_servers.TestCluster:
    """The server; for tests that need databases of their own making."""
    return clusters.get(postgres_major)


@pytest.fixture
def empty_database(cluster: database_servers.TestCluster) -> Iterator[str]:
    """The DSN of a database with nothing in it."""
    dsn = cluster.create()
    yield dsn
    cluster.drop(dsn)


@pytest.fixture
def database(cluster: database_servers.TestCluster) -> Iterator[str]:
    """The DSN of a migrated database of the test's own: for commits, several connections, workers."""
    dsn = cluster.clone()
    yield dsn
    cluster.drop(dsn)


@pytest.fixture(scope="module")
def module_database(clusters: database_servers.Clusters, postgres_major: int) -> Iterator[str]:
    """The same for all tests of a file, which have users of their own."""
    cluster = clusters.get(postgres_major)
    dsn = cluster.clone()
    yield dsn
    cluster.drop(dsn)


@pytest.fixture
def connection(cluster: database_servers.TestCluster) -> Iterator[psycopg.Connection]:
    """A transaction in a migrated database, rolled back afterwards: the quick choice."""
    with psycopg.connect(cluster.shared_dsn) as connection:
        yield connection
        connection.rollback()
