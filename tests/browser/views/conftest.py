"""A person with a furnished library, for tests that look at every view."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.views import tour
from tests.support.local_server import LocalServer, Person


@pytest.fixture(scope="module")
def grace(server: LocalServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    """An administrator, who sees every view."""
    with server.person("Grace", admin=True) as person:
        tour.furnish(person, tmp_path_factory.mktemp("library"))
        yield person
