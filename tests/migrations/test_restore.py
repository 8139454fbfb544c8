"""A dump restored with pg_restore is a working installation, as functions/RUNBOOK.md promises."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from functions.adapters.postgres import search, users
from functions.adapters.postgres.connection import Database
from functions.core import errors, models
from functions.core.settings import Settings
from functions.local.database import cluster as clusters
from functions.local.database import migrate
from tests.support import library
from tests.support.database import TestCluster
from tests.support.library import ADA, BOB


@pytest.fixture
def restored(cluster: TestCluster, database: str, empty_database: str, tmp_path: Path) -> Iterator[Database]:
    """A database with a document, dumped, and restored as another database of the same server, which has the roles."""
    original = Database(database)
    library.index_document(
        original, database, ["The zeppelin crossed the sea."], server=library.add_server(original), file_name="a.pdf"
    )
    original.close()
    binaries, dump = clusters._find_binaries(cluster.major), str(tmp_path / "ibid.dump")
    for command in (
        [str(binaries / "pg_dump"), "--format=custom", "--file", dump, "--dbname", database],
        [str(binaries / "pg_restore"), "--no-owner", "--dbname", empty_database, dump],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
    opened = Database(empty_database)
    yield opened
    opened.close()


def find(database: Database, words: str, user: models.User = ADA) -> list[str]:
    found = search.hybrid_search(database, user, library.make_query(words))
    return [hit.file_name for hit in found.hits]


def test_a_restored_database_answers_its_owner_and_nobody_else(restored: Database) -> None:
    """SEC-2"""
    assert (find(restored, "zeppelin"), find(restored, "zeppelin", BOB)) == (["a.pdf"], [])


def test_a_restored_database_accepts_documents_and_counts_quotas(restored: Database, empty_database: str) -> None:
    server = library.add_server(restored)
    library.index_document(restored, empty_database, ["A submarine."], server=server, file_name="b.pdf")
    assert find(restored, "submarine") == ["b.pdf"]
    limit = Settings(requests_per_minute=1)
    users.take_request(restored, ADA, limit)
    with pytest.raises(errors.RateLimitedError):
        users.take_request(restored, ADA, limit)


def test_a_restored_database_has_no_pending_migrations(restored: Database, empty_database: str) -> None:
    assert migrate.migrate(empty_database, dry_run=True) == []
