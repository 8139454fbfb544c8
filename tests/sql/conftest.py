from __future__ import annotations

from collections.abc import Iterator

import pytest

from functions.adapters.postgres.connection import Database
from functions.core import models
from tests.support import library


@pytest.fixture
def db(database: str) -> Iterator[Database]:
    """The adapter on a database of the test's own."""
    opened = Database(database)
    yield opened
    opened.close()


@pytest.fixture
def server(db: Database) -> models.EmbeddingServer:
    return library.add_server(db)
