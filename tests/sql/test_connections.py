from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from functions.adapters.postgres import connection
from functions.adapters.postgres.connection import Database
from functions.core import errors


@pytest.fixture
def one(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """A database to which this process may open one connection."""
    monkeypatch.setattr(connection, "MAX_CONNECTIONS", 1)
    with closing(Database(database)) as opened:
        yield opened


def read_pid(database: Database) -> int:
    with database.as_worker() as opened:
        return opened.info.backend_pid


def test_who_finds_no_connection_free_waits_for_the_one_in_use(one: Database) -> None:
    pids = list[int]()
    waiting = threading.Thread(target=lambda: pids.append(read_pid(one)))
    with one.as_worker() as opened:
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
    waiting.join(10)
    assert pids == [opened.info.backend_pid]


def test_who_waits_too_long_for_a_connection_is_told_so(one: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "WAIT_SECONDS", 0.1)
    with one.as_worker(), pytest.raises(errors.DatabaseUnavailableError, match="busy"):
        read_pid(one)


def test_a_failed_transaction_gives_its_connection_back(one: Database) -> None:
    with pytest.raises(ZeroDivisionError), one.as_worker():
        raise ZeroDivisionError
    assert read_pid(one) > 0


def test_a_connection_in_use_is_closed_after_the_others(one: Database) -> None:
    """A thread may still answer while its server stops."""
    with one.as_worker() as opened:
        one.close()
        assert not opened.closed
    assert opened.closed
