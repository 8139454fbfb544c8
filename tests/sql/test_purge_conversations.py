from __future__ import annotations

import psycopg
import pytest

from functions.adapters.postgres import conversations, messages
from functions.adapters.postgres.connection import Database
from functions.core import models
from functions.core.settings import Settings
from tests.support import library
from tests.support.library import ADA, BOB


def add_conversation(db: Database, user: models.User, title: str) -> None:
    messages.open_question(db, user, library.make_question(title=title), Settings())


@pytest.fixture
def aged(db: Database, database: str) -> Database:
    """Two old conversations of two users, one new."""
    for user, title in ((ADA, "old"), (BOB, "old too"), (ADA, "new")):
        add_conversation(db, user, title)
    with psycopg.connect(database) as connection:
        connection.execute(
            "update rag.conversations set updated_at = now() - interval '31 days' where title like 'old%'"
        )
    return db


def test_old_conversations_are_deleted_with_their_messages_and_new_ones_are_kept(aged: Database, database: str) -> None:
    """OPS-1"""
    assert conversations.purge_conversations(aged, 30) == 2
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "select c.title, count(*) from rag.conversations c"
            " join rag.messages m on m.conversation_id = c.id group by 1"
        ).fetchall()
        orphans = connection.execute("select count(*) from rag.messages").fetchone()
    assert (rows, orphans) == ([("new", 1)], (1,))


def test_purging_twice_deletes_nothing_more(aged: Database) -> None:
    """OPS-1"""
    assert [conversations.purge_conversations(aged, 30), conversations.purge_conversations(aged, 30)] == [2, 0]


def test_a_purge_skips_rows_that_another_purge_has_locked(aged: Database, database: str) -> None:
    """OPS-1"""
    with psycopg.connect(database) as other:
        other.execute("select from rag.conversations where title = 'old' for update")
        assert conversations.purge_conversations(aged, 30) == 1
