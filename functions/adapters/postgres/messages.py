"""The messages of a conversation: questions, each with its answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import psycopg

from functions.adapters.postgres import conversations, paging, users
from functions.adapters.postgres.connection import Connection, Database, write_claims
from functions.core import errors, models
from functions.core.settings import Settings

Row = dict[str, Any]

REFUSED_SQLSTATE: Final = "IB003"  # raised by rag.open_question_v2, with a key of _REFUSALS as its message
_REFUSALS: Final[dict[str, tuple[type[errors.IbidError], str]]] = {
    "document": (errors.NotFoundError, "There is no such document."),
    "place": (errors.NotFoundError, "There is no such notebook or note."),
    "conversation": (errors.NotFoundError, "There is no such conversation."),
    "question": (errors.NotFoundError, "There is no such question in this conversation."),
    "named note": (errors.ConflictError, "The note is in the trash. Restore it first."),
    "note": (errors.ConflictError, "The note is in the trash. Restore it before you ask about it."),
    "documents": (
        errors.ConflictError,
        "The documents are in the trash, or attached to a note in the trash. Restore them before you ask about them.",
    ),
}

# As in search.py, the statement itself sets role and claims, and it is a transaction: one round trip.
_OPEN_QUESTION: Final = """
with act as materialized (
    select set_config('role', 'authenticated', true), set_config('request.jwt.claims', %(claims)s, true),
        %(query_text)s::text as query_text
)
select rag.open_question_v2(
    act.query_text, %(title)s, %(conversation_id)s::uuid, %(document_ids)s::uuid[], %(notebook_id)s::uuid,
    %(note_id)s::uuid, %(scope)s::jsonb, %(inherits_scope)s::boolean, %(is_saved)s::boolean, %(turn_count)s::int,
    %(requests_per_minute)s::int, %(questions_per_day)s::int, %(text_hash)s,
    %(replaces)s::uuid
) as opened from act
"""


@dataclass(frozen=True, slots=True)
class NewQuestion:
    """A question and what it names; without `is_saved`, the client keeps its conversation.

    With `inherits_scope` the conversation's scope takes the place of the question's. `title` is that of a conversation
    that begins with this question. `text_hash` is the key of its translations, None if it shall not be translated.
    `replaces` is the id of an earlier question of the conversation, whose place this one takes.
    """

    query_text: str
    title: str
    scope: models.Scope
    conversation_id: str | None = None
    document_ids: tuple[str, ...] = ()
    notebook_id: str | None = None
    note_id: str | None = None
    inherits_scope: bool = False
    is_saved: bool = True
    text_hash: str | None = None
    replaces: str | None = None


@dataclass(frozen=True, slots=True)
class OpenedQuestion:
    """A question that is counted and saved, its scope, and the latest turns before it, oldest first.

    `translations` has the languages of its scope, see sql/17_find_translations.sql. `preferences` are of its notebook.
    """

    conversation_id: str | None
    question_id: str | None
    scope: models.Scope
    position: int | None
    history: list[models.Turn]
    translations: dict[str, str | None]
    preferences: models.Preferences = field(default_factory=models.Preferences)


def open_question(database: Database, user: models.User, question: NewQuestion, settings: Settings) -> OpenedQuestion:
    """Counts, checks and saves a question in one round trip; see sql/67_open_question_v2.sql.

    Raises NotFoundError, also for what belongs to another user, ConflictError for a question about trashed content, and
    RateLimitedError or QuotaExceededError; nothing is saved or counted then.
    """
    parameters = {
        **asdict(question),
        "claims": write_claims(user),
        "document_ids": list(question.document_ids),
        "scope": json.dumps(asdict(question.scope)),
        "turn_count": settings.context_turns,
        "requests_per_minute": settings.requests_per_minute,
        "questions_per_day": settings.questions_per_day,
    }
    with _refusals(), users.quota_errors(), database.autocommit() as connection:
        row = connection.execute(_OPEN_QUESTION, parameters).fetchone()
    assert row is not None
    opened = row["opened"]
    scope = opened["scope"] | {"document_ids": tuple(opened["scope"]["document_ids"])}
    history = [models.Turn(**turn) for turn in opened["history"]]
    return OpenedQuestion(
        opened["conversation_id"],
        opened["question_id"],
        models.Scope(**scope),
        opened["position"],
        history,
        opened["translations"],
        models.Preferences(**(opened["preferences"] or {})),
    )


@contextmanager
def _refusals() -> Iterator[None]:
    """Turns the refusals of rag.open_question_v2 into NotFoundError or ConflictError."""
    try:
        yield
    except psycopg.Error as exc:
        if exc.sqlstate != REFUSED_SQLSTATE:
            raise
        kind, message = _REFUSALS[str(exc.diag.message_primary)]
        raise kind(message) from exc


def list_messages(
    connection: Connection, conversation_id: str, limit: int, cursor: str | None
) -> tuple[list[Row], str | None]:
    """One page of messages, the oldest question first, each followed by its answer, and the cursor of the next."""
    conversations.find(connection, conversation_id)
    turn, position = paging.read_message_cursor(cursor)
    rows = connection.execute(
        """
        select m.* from (
            select *, coalesce(question_position, position) as turn from rag.messages where conversation_id = %(id)s
        ) m
        where %(turn)s::bigint is null or (m.turn, m.position) > (%(turn)s::bigint, %(position)s::bigint)
        order by m.turn, m.position
        limit %(limit)s + 1
        """,
        {"id": conversation_id, "turn": turn, "position": position, "limit": limit},
    ).fetchall()
    return paging.cut_page(rows, limit, "turn", "position")


def read_all_messages(connection: Connection, conversation_id: str) -> list[Row]:
    """The messages of a conversation, the oldest question first, each followed by its answer.

    Questions that others replace are left out with their answers.
    """
    return connection.execute(
        """
        select m.* from rag.messages m
        where m.conversation_id = %(id)s and coalesce(m.question_position, m.position) <> all (array(
            select q.position from rag.messages q join rag.messages later on later.replaces = q.id
            where q.conversation_id = %(id)s))
        order by coalesce(m.question_position, m.position), m.position
        """,
        {"id": conversation_id},
    ).fetchall()


def find_answer(connection: Connection, conversation_id: str, message_id: str) -> Row:
    """An answer with the text of its question as `question`; raises NotFoundError, also for the id of a question."""
    row = connection.execute(
        """
        select m.*, (
            select q.content from rag.messages q
            where q.conversation_id = m.conversation_id and q.role = 'user'
                and q.position <= coalesce(m.question_position, m.position)
            order by q.position desc limit 1
        ) as question
        from rag.messages m
        where m.conversation_id = %s and m.id = %s and m.role = 'assistant'
        """,
        (conversation_id, message_id),
    ).fetchone()
    if row is None:
        raise errors.NotFoundError("There is no such answer.")
    return row


def add_answer(
    connection: Connection,
    user: models.User,
    conversation_id: str,
    content: str,
    *,
    status: models.MessageStatus = "complete",
    mode: str | None = None,
    sections: list[Row] | None = None,
    sources: list[Row] | None = None,
    scope: Row | None = None,
    usage: Row | None = None,
    search_query: str | None = None,
    translated_query: str | None = None,
    question_position: int | None = None,
) -> Row:
    """Saves and counts an answer and moves its conversation to the top; raises NotFoundError when that was deleted."""
    row = connection.execute(
        """
        with moved as (
            update rag.conversations set updated_at = clock_timestamp() where id = %(conversation_id)s returning id
        ), counted as materialized (
            select rag.count_usage(%(prompt_tokens)s::bigint, %(completion_tokens)s::bigint, %(cost_usd)s::numeric)
        )
        insert into rag.messages
            (conversation_id, owner_id, role, content, status, mode, sections, sources, scope, usage, search_query,
            translated_query, question_position)
        select id, %(owner_id)s, 'assistant', %(content)s, %(status)s, %(mode)s, %(sections)s, %(sources)s, %(scope)s,
            %(usage)s, %(search_query)s, %(translated_query)s, %(question_position)s
        from moved, counted
        returning *
        """,
        {
            "conversation_id": conversation_id,
            "owner_id": user.id,
            "content": content,
            "status": status,
            "mode": mode,
            "sections": json.dumps(sections or []),
            "sources": json.dumps(sources or []),
            "scope": None if scope is None else json.dumps(scope),
            "usage": None if usage is None else json.dumps(usage),
            **{name: (usage or {}).get(name) for name in ("prompt_tokens", "completion_tokens", "cost_usd")},
            "search_query": search_query,
            "translated_query": translated_query,
            "question_position": question_position,
        },
    ).fetchone()
    if row is None:
        raise errors.NotFoundError("There is no such conversation.")
    return row


def rate_answer(
    connection: Connection, conversation_id: str, message_id: str, rating: str | None, reason: str = ""
) -> Row:
    """Keeps the reader's judgement of an answer, or with None withdraws it; raises NotFoundError."""
    row = connection.execute(
        """
        update rag.messages
        set rating = %(rating)s, rating_reason = %(reason)s,
            rated_at = case when %(rating)s::text is not null then clock_timestamp() end
        where conversation_id = %(conversation_id)s and id = %(message_id)s and role = 'assistant'
        returning *
        """,
        {"conversation_id": conversation_id, "message_id": message_id, "rating": rating, "reason": reason},
    ).fetchone()
    if row is None:
        raise errors.NotFoundError("There is no such answer.")
    return row


def list_rated(connection: Connection, limit: int, cursor: str | None) -> tuple[list[Row], str | None]:
    """One page of rated answers with their questions, the last rated first, and the cursor of the next page."""
    rated_at, last_id = paging.read_time_cursor(cursor)
    rows = connection.execute(
        """
        select m.*, q.content as question
        from rag.messages m
        join rag.messages q on q.conversation_id = m.conversation_id and q.position = m.question_position
        where m.rating is not null and (%(rated_at)s::timestamptz is null
            or (m.rated_at, m.id) < (%(rated_at)s::timestamptz, %(last_id)s::uuid))
        order by m.rated_at desc, m.id desc
        limit %(limit)s + 1
        """,
        {"rated_at": rated_at, "last_id": last_id, "limit": limit},
    ).fetchall()
    return paging.cut_page(rows, limit, "rated_at", "id")
