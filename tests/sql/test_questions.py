"""rag.open_question: one statement counts, checks and saves a question, or leaves no trace of it."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import psycopg
import pytest

from functions.adapters.postgres import conversations, messages, users
from functions.adapters.postgres.connection import Database
from functions.core import errors, models
from functions.core.settings import Settings
from tests.support import library
from tests.support.library import ADA, BOB

SETTINGS = Settings(context_turns=2)


def ask(db: Database, text: str = "What burns?", **fields: Any) -> messages.OpenedQuestion:
    return messages.open_question(db, ADA, library.make_question(text, **fields), SETTINGS)


def begin(db: Database, **fields: Any) -> str:
    conversation_id = ask(db, **fields).conversation_id
    assert conversation_id is not None
    return conversation_id


def follow(db: Database, conversation_id: str) -> models.Scope:
    """The scope of a further question that names nothing."""
    return ask(db, conversation_id=conversation_id, inherits_scope=True).scope


def answer(db: Database, asked: messages.OpenedQuestion, text: str, **fields: Any) -> None:
    assert asked.conversation_id is not None
    with db.as_user(ADA) as connection:
        messages.add_answer(connection, ADA, asked.conversation_id, text, question_position=asked.position, **fields)


def trash(db: Database, note_id: str) -> None:
    with db.as_user(ADA) as connection:
        connection.execute("update rag.notes set trashed_at = now() where id = %s", (note_id,))


def count_rows(dsn: str) -> tuple[Any, ...] | None:
    with psycopg.connect(dsn) as connection:
        return connection.execute(
            "select (select count(*) from rag.conversations), (select count(*) from rag.messages),"
            " (select count(*) from rag.usage_counters)"
        ).fetchone()


def test_a_first_question_begins_a_conversation_and_is_saved_and_counted(db: Database, database: str) -> None:
    asked = ask(db)
    assert (asked.scope, asked.history) == (models.Scope("library"), [])
    assert count_rows(database) == (1, 1, 2)


def test_a_question_of_a_conversation_that_the_client_keeps_is_counted_but_not_saved(
    db: Database, database: str
) -> None:
    assert ask(db, is_saved=False) == messages.OpenedQuestion(None, None, models.Scope("library"), None, [], {})
    assert count_rows(database) == (0, 0, 2)


@pytest.mark.parametrize("name", ["document_ids", "notebook_id", "note_id", "conversation_id"])
def test_a_question_about_something_unknown_leaves_no_trace(db: Database, database: str, name: str) -> None:
    unknown = str(uuid4())
    fields: dict[str, Any] = {name: (unknown,) if name == "document_ids" else unknown}
    with pytest.raises(errors.NotFoundError):
        ask(db, **fields)
    assert count_rows(database) == (0, 0, 0)


def test_a_question_about_what_another_user_has_is_refused_as_if_it_did_not_exist(db: Database) -> None:
    """SEC-3"""
    named: list[dict[str, Any]] = [
        {"document_ids": (library.add_document(db),)},
        {"notebook_id": library.add_notebook(db)},
        {"note_id": library.add_note(db)},
        {"conversation_id": begin(db)},
    ]
    for fields in named:
        with pytest.raises(errors.NotFoundError):
            messages.open_question(db, BOB, library.make_question(**fields), SETTINGS)


def test_a_question_that_names_nothing_inherits_attached_documents_before_the_note_before_the_notebook(
    db: Database,
) -> None:
    """CHAT-3"""
    notebook_id, note_id, document_id = library.add_notebook(db), library.add_note(db), library.add_document(db)
    in_notebook = begin(db, scope=models.Scope("notebook", notebook_id=notebook_id))
    both = begin(db, scope=models.Scope("note", notebook_id=notebook_id, note_id=note_id))
    assert follow(db, in_notebook) == models.Scope("notebook", notebook_id=notebook_id)
    assert follow(db, both) == models.Scope("note", note_id=note_id)
    with db.as_user(ADA) as connection:
        conversations.attach_documents(connection, ADA, both, [document_id], replace=False)
    assert follow(db, both) == models.Scope("conversation", document_ids=(document_id,))


def test_a_question_with_a_scope_of_its_own_inherits_none(db: Database) -> None:
    """CHAT-3"""
    conversation_id = begin(db, scope=models.Scope("note", note_id=library.add_note(db)))
    assert ask(db, conversation_id=conversation_id).scope == models.Scope("library")


def test_an_inherited_scope_keeps_the_filters_of_the_question(db: Database) -> None:
    note_id = library.add_note(db)
    conversation_id = begin(db, scope=models.Scope("note", note_id=note_id))
    filtered = models.Scope("library", filters={"lang": "fr"})
    asked = ask(db, conversation_id=conversation_id, scope=filtered, inherits_scope=True)
    assert asked.scope == models.Scope("note", note_id=note_id, filters={"lang": "fr"})


def test_the_history_is_the_last_answered_questions_with_what_was_searched(db: Database) -> None:
    """CHAT-7"""
    first = ask(db, "first")
    answer(db, first, "one")
    again: dict[str, Any] = {"conversation_id": first.conversation_id}
    answer(db, ask(db, "second", **again), "two", search_query="second, rewritten")
    ask(db, "unanswered", **again)
    answer(db, ask(db, "third", **again), "three")
    assert ask(db, **again).history == [
        models.Turn("user", "second", "second, rewritten"),
        models.Turn("assistant", "two"),
        models.Turn("user", "third"),
        models.Turn("assistant", "three"),
    ]


def test_a_question_about_a_note_in_the_trash_is_refused(db: Database, database: str) -> None:
    note_id = library.add_note(db)
    conversation_id = begin(db, scope=models.Scope("note", note_id=note_id))
    trash(db, note_id)
    before = count_rows(database)
    with pytest.raises(errors.ConflictError, match="before you ask"):
        follow(db, conversation_id)
    with pytest.raises(errors.ConflictError, match="Restore it first"):
        ask(db, note_id=note_id)
    assert count_rows(database) == before


def test_a_question_about_documents_of_a_note_in_the_trash_is_refused(db: Database) -> None:
    note_id, document_id = library.add_note(db), library.add_document(db)
    with db.as_user(ADA) as connection:
        connection.execute("update rag.documents set note_id = %s", (note_id,))
    trash(db, note_id)
    with pytest.raises(errors.ConflictError, match="Restore them before"):
        ask(db, document_ids=(document_id,), scope=models.Scope("documents", document_ids=(document_id,)))


def test_a_replaced_question_is_kept_but_is_no_history(db: Database) -> None:
    """CHAT-15"""
    first = ask(db, "What burns?")
    answer(db, first, "Wood.")
    again = ask(db, "What burns in winter?", conversation_id=first.conversation_id, replaces=first.question_id)
    answer(db, again, "Peat.")
    assert again.history == []
    following = ask(db, "And in summer?", conversation_id=first.conversation_id)
    assert [turn.content for turn in following.history] == ["What burns in winter?", "Peat."]
    assert first.conversation_id is not None
    with db.as_user(ADA) as connection:
        rows, _ = messages.list_messages(connection, first.conversation_id, 10, None)
        exported = messages.read_all_messages(connection, first.conversation_id)
    assert [row["content"] for row in rows[:4]] == ["What burns?", "Wood.", "What burns in winter?", "Peat."]
    assert [row["content"] for row in exported] == ["What burns in winter?", "Peat.", "And in summer?"]


def test_only_a_question_of_the_conversation_can_be_replaced(db: Database) -> None:
    """CHAT-15, SEC-3"""
    other, own = ask(db), ask(db)
    with pytest.raises(errors.NotFoundError, match="no such question"):
        ask(db, conversation_id=own.conversation_id, replaces=other.question_id)


def test_a_conversation_is_found_by_the_words_of_its_title_and_messages(db: Database) -> None:
    """CHAT-16"""
    found, other = ask(db, "Où est l’été ?"), ask(db, "What burns?")
    answer(db, found, "Beyond the équinoxe, where the boiler sleeps.")
    with db.as_user(ADA) as connection:
        rows, _ = conversations.list_page(connection, 10, None, "ETE  Boiler")
        everything, _ = conversations.list_page(connection, 10, None)
    assert [(str(row["id"]), row["excerpt"]) for row in rows] == [(found.conversation_id, "Où est l’été ?")]
    assert {str(row["id"]) for row in everything} == {found.conversation_id, other.conversation_id}


def test_an_answer_is_counted_in_the_usage_of_its_day(db: Database) -> None:
    """OPS-7"""
    asked = ask(db)
    for cost in (0.5, 0.25):
        answer(db, asked, "Wood.", usage={"prompt_tokens": 100, "completion_tokens": 10, "cost_usd": cost})
    with db.as_user(ADA) as connection:
        before, today = users.list_usage(connection, 2, of=ADA)
        users.count_usage(connection, {"prompt_tokens": None, "completion_tokens": None})
        (later,) = users.list_usage(connection, 1, of=ADA)
    assert {key: value for key, value in today.items() if key != "day"} == {
        "questions": 2, "prompt_tokens": 200, "completion_tokens": 20, "cost_usd": 0.75,
    }  # fmt: skip
    assert (before["questions"], later["questions"]) == (0, 3)


@pytest.mark.parametrize(("claims", "seen"), [({}, 0), ({"app_metadata": {"role": "admin"}}, 1)])
def test_only_administrators_read_the_usage_of_others(db: Database, claims: dict[str, Any], seen: int) -> None:
    """OPS-7, SEC-2"""
    answer(db, ask(db), "Wood.")
    reader = models.User(BOB.id, bool(claims), {"sub": BOB.id, **claims})
    with db.as_user(reader) as connection:
        (today,) = users.list_usage(connection, 1, of=None)
    assert today["questions"] == seen


def test_a_rating_is_kept_listed_and_withdrawn(db: Database) -> None:
    """EVAL-5"""
    asked = ask(db)
    answer(db, asked, "Wood.")
    conversation_id = str(asked.conversation_id)
    with db.as_user(ADA) as connection:
        (_, row), _ = messages.list_messages(connection, conversation_id, 10, None)
        messages.rate_answer(connection, conversation_id, str(row["id"]), "down", "It was peat.")
        (rated,), _ = messages.list_rated(connection, 10, None)
        messages.rate_answer(connection, conversation_id, str(row["id"]), None)
        assert messages.list_rated(connection, 10, None) == ([], None)
    assert (rated["question"], rated["content"], rated["rating"]) == ("What burns?", "Wood.", "down")
    assert rated["rating_reason"] == "It was peat."
