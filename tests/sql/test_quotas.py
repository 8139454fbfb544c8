"""OPS-5 in the database: concurrent requests all count, and no user can change the counters of another or reset one."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from uuid import uuid4

import psycopg
import pytest

from functions.adapters.postgres import messages, search, users
from functions.adapters.postgres.connection import Connection, Database
from functions.core import errors, models
from functions.core.settings import MEGABYTE, Settings
from tests.support import library
from tests.support.library import ADA, BOB, add_document

LIMITS = Settings(questions_per_day=7, requests_per_minute=0, uploads_per_minute=0, max_documents=0)
THREADS = 8


@pytest.fixture(autouse=True)
def start_within_a_minute() -> None:
    """A test that begins at the end of a minute would count in two windows."""
    seconds_left = 60 - time.time() % 60
    time.sleep(seconds_left if seconds_left < 2 else 0)


def take(db: Database, act: Callable[[Connection], None], user: models.User = ADA) -> bool:
    try:
        with db.as_user(user) as connection:
            act(connection)
    except errors.LimitReachedError:
        return False
    return True


def ask(db: Database, settings: Settings = LIMITS, user: models.User = ADA) -> bool:
    try:
        messages.open_question(db, user, library.make_question(), settings)
    except errors.LimitReachedError:
        return False
    return True


def used(dsn: str) -> dict[str, int]:
    with psycopg.connect(dsn) as connection:
        return dict(connection.execute("select kind, used from rag.usage_counters").fetchall())


def set_back(dsn: str, interval: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("update rag.usage_counters set window_start = window_start - %s::interval", (interval,))


def test_concurrent_questions_cannot_exceed_the_quota(db: Database, database: str) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        taken = list(pool.map(lambda _: ask(db), range(40)))
    assert (sum(taken), used(database)) == (7, {"question": 7})


def test_concurrent_uploads_cannot_exceed_the_quota(db: Database) -> None:
    def announce(index: int) -> bool:
        def act(connection: Connection) -> None:
            users.take_upload(connection, replace(LIMITS, max_documents=5), 10)
            document_id = str(uuid4())
            connection.execute(
                "insert into rag.documents (id, owner_id, file_name, file_type, size_bytes, object_path)"
                " values (%s, %s, %s, 'pdf', 10, %s)",
                (document_id, ADA.id, f"{index}.pdf", f"{ADA.id}/{document_id}/original.pdf"),
            )

        return take(db, act)

    with ThreadPoolExecutor(THREADS) as pool:
        assert sum(pool.map(announce, range(24))) == 5


def test_a_refusal_says_which_quota_is_used_up_and_when_the_next_window_begins(db: Database) -> None:
    settings = replace(LIMITS, questions_per_day=1)
    assert ask(db, settings)
    with pytest.raises(errors.QuotaExceededError, match=r"asked 1 questions today.* after midnight UTC") as refused:
        messages.open_question(db, ADA, library.make_question(), settings)
    assert 0 < refused.value.details["retry_after"] <= 24 * 3600


def test_the_quota_of_a_minute_is_renewed_after_a_minute(db: Database, database: str) -> None:
    settings = replace(LIMITS, requests_per_minute=1)
    assert ask(db, settings)
    with pytest.raises(errors.RateLimitedError) as refused:
        users.take_request(db, ADA, settings)
    assert 0 < refused.value.details["retry_after"] <= 60
    set_back(database, "1 minute")
    users.take_request(db, ADA, settings)
    assert used(database) == {"question": 1, "request": 1}


def test_each_user_has_a_quota_of_their_own(db: Database) -> None:
    settings = replace(LIMITS, questions_per_day=1)
    assert [ask(db, settings, user) for user in (ADA, BOB, ADA)] == [True, True, False]


def test_a_question_that_is_refused_is_not_counted(db: Database, database: str) -> None:
    with suppress(errors.NotFoundError):
        messages.open_question(db, ADA, library.make_question(document_ids=(str(uuid4()),)), LIMITS)
    assert used(database) == {}


def test_a_used_up_quota_does_not_affect_the_other(db: Database, database: str) -> None:
    settings = replace(LIMITS, requests_per_minute=5, questions_per_day=1)
    assert [ask(db, settings) for _ in range(3)] == [True, False, False]
    assert used(database) == {"question": 1, "request": 1}


def test_a_quota_of_zero_is_no_limit_and_writes_nothing(db: Database, database: str) -> None:
    settings = replace(LIMITS, questions_per_day=0, max_library_megabytes=0)
    assert ask(db, settings)
    assert take(db, lambda c: users.take_upload(c, settings, 10**15))
    assert used(database) == {}


def test_announced_bytes_count_as_stored(db: Database) -> None:
    settings = replace(LIMITS, max_library_megabytes=1)
    add_document(db)  # 10 bytes
    assert take(db, lambda c: users.take_upload(c, settings, MEGABYTE - 10))
    with pytest.raises(errors.QuotaExceededError, match="more than the 1 MB"), db.as_user(ADA) as connection:
        users.take_upload(connection, settings, MEGABYTE - 9)


def test_an_expired_upload_does_not_count(db: Database, database: str) -> None:
    settings = replace(LIMITS, max_documents=1)
    add_document(db)
    assert not take(db, lambda c: users.take_upload(c, settings, 10))
    with psycopg.connect(database) as connection:
        connection.execute("update rag.documents set status = 'failed', error_code = 'upload_expired'")
    assert take(db, lambda c: users.take_upload(c, settings, 10))


def test_a_search_counts_itself_and_is_refused_before_it_begins(db: Database, database: str) -> None:
    library.add_server(db)
    found = [search.hybrid_search(db, ADA, library.make_query("zeppelin"), requests_per_minute=2) for _ in range(2)]
    assert [result.hits for result in found] == [(), ()]
    with pytest.raises(errors.RateLimitedError):
        search.hybrid_search(db, ADA, library.make_query("zeppelin"), requests_per_minute=2)
    assert used(database) == {"request": 2}


def test_users_can_neither_read_nor_write_the_counters(db: Database) -> None:
    """SEC-2"""
    for statement in ("select * from", "delete from", "update rag.usage_counters set used = 0 --"):
        with pytest.raises(errors.NotAllowedError), db.as_user(ADA) as connection:
            connection.execute(f"{statement} rag.usage_counters".encode())


def test_a_caller_can_only_count_up(db: Database, database: str) -> None:
    """Whatever quota the caller passes, the database chooses the window."""
    ask(db)
    for claimed in (1, 5, 1_000_000):
        ask(db, replace(LIMITS, questions_per_day=claimed))
    assert used(database)["question"] == 3


def test_counters_of_old_windows_are_purged(db: Database, database: str) -> None:
    ask(db)
    assert users.purge_counters(db) == 0
    set_back(database, "3 days")
    assert (users.purge_counters(db), used(database)) == (1, {})
