"""Fixtures for every test: a clean environment, and databases on the Postgres versions that it runs on."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator

import hypothesis
import psycopg
import pytest

from functions.adapters.laptop import embedder
from tests.support import database as database_servers

# The same examples in every run, on a slow machine too, and no file of earlier failures.
hypothesis.settings.register_profile("ibid", derandomize=True, database=None, deadline=None)
hypothesis.settings.load_profile("ibid")

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
# Files of few, long tests, the longest first: otherwise one of two test processes would wait for the other at the end.
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
    """Removes the machine's keys, addresses and proxies from the environment."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if (name.startswith(OUTSIDE) or name.upper() in OUTSIDE_NAMES) and name not in KEPT:
                patch.delenv(name)
        yield


@pytest.fixture(scope="session", autouse=True)
def shared_models() -> Iterator[None]:
    """Loads a local embedding model once in a process, as one does that has one set of services; tests make many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedder, "LocalEmbedder", functools.cache(embedder.LocalEmbedder))
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs the longest files first; `--no-loadscope-reorder` keeps this order with several processes."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(LONGEST)))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs a test that uses a database, through any fixture, once for each of its Postgres versions."""
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
    """The server, for tests that create their own databases."""
    return clusters.get(postgres_major)


@pytest.fixture
def empty_database(cluster: database_servers.TestCluster) -> Iterator[str]:
    """The DSN of an empty database."""
    dsn = cluster.create()
    yield dsn
    cluster.drop(dsn)


@pytest.fixture
def database(cluster: database_servers.TestCluster) -> Iterator[str]:
    """The DSN of a migrated database for one test: for commits, several connections, workers."""
    dsn = cluster.clone()
    yield dsn
    cluster.drop(dsn)


@pytest.fixture(scope="module")
def module_database(clusters: database_servers.Clusters, postgres_major: int) -> Iterator[str]:
    """The DSN of a migrated database for all tests of a file, each with its own users."""
    cluster = clusters.get(postgres_major)
    dsn = cluster.clone()
    yield dsn
    cluster.drop(dsn)


@pytest.fixture
def connection(cluster: database_servers.TestCluster) -> Iterator[psycopg.Connection]:
    """A transaction in a migrated database, rolled back afterwards: faster than `database`."""
    with psycopg.connect(cluster.shared_dsn) as connection:
        yield connection
        connection.rollback()
