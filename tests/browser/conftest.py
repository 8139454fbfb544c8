"""One server and one Chromium for each file of browser tests; every test has its own user."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.support import database as database_servers
from tests.support.local_server import LocalServer, Person, run_local_server
from tests.support.requirements import need_chromium

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def server(
    clusters: database_servers.Clusters, postgres_major: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalServer]:
    with run_local_server(clusters.get(postgres_major).clone(), tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = need_chromium()
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=chromium, args=QUIET) as browser:
        yield browser


@pytest.fixture
def ada(server: LocalServer) -> Iterator[Person]:
    with server.person("ada") as person:
        yield person
