"""Answers a question and saves both: the one pipeline behind JSON, server-sent events and the command line."""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

from functions.adapters.postgres import conversations, documents, messages, users
from functions.core import errors, models
from functions.core.answering import answers, follow_ups
from functions.core.citations.description import describe_citation, describe_section
from functions.core.retrieval import guard, retriever
from functions.core.settings import Settings
from functions.core.text import languages
from functions.runtime import metrics, searching
from functions.runtime.policy import Policy
from functions.runtime.services import Services
from functions.runtime.toolbox import Toolbox

TITLE_LENGTH = 80

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its scope; `whole_library` ignores the scope of its conversation.

    A question with a `history` belongs to a conversation that the client keeps: neither question nor answer is saved.
    """

    query_text: str
    conversation_id: str | None = None
    document_ids: tuple[str, ...] = ()
    notebook_id: str | None = None
    note_id: str | None = None
    whole_library: bool = False
    filters: Mapping[str, str] = field(default_factory=dict)
    history: tuple[models.Turn, ...] | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """The first event: the question is saved; without `conversation_id`, the client keeps the conversation."""

    conversation_id: str | None
    scope: models.Scope
    question_position: int | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The last event: the answer is complete and saved; the ids are None if the client keeps the conversation.

    `search_query` is the complete question that was searched in place of a follow-up. With a `failure`, the model
    stopped early and the answer holds the text up to then. `cost` is in US dollars, or None if it is not known.
    """

    conversation_id: str | None
    message_id: str | None
    scope: models.Scope
    answer: models.Answer
    search_query: str | None = None
    failure: errors.IbidError | None = None
    cost: float | None = None


@dataclass(slots=True)
class _Saver:
    """Saves and counts the answer exactly once, whether it completes, fails or is interrupted."""

    services: Services
    user: models.User
    opened: Opened
    settings: Settings
    written: list[str] = field(default_factory=list)
    draft: models.Answer | None = None
    search_query: str | None = None
    message_id: str | None = None
    is_counted: bool = False
    cost: float | None = None

    def save(self, answer: models.Answer) -> str | None:
        self._count(answer)
        if self.opened.conversation_id is None:
            return None
        with self.services.database.as_user(self.user) as connection:
            row = messages.add_message(
                connection,
                self.user,
                self.opened.conversation_id,
                "assistant",
                answer.answer,
                status=answer.status,
                mode=answer.mode,
                sections=[describe_section(section) for section in answer.sections],
                sources=[describe_citation(citation) for citation in answer.sources],
                scope=asdict(self.opened.scope),
                usage=metrics.describe_usage(answer.usage, self.cost),
                search_query=self.search_query,
                question_position=self.opened.question_position,
            )
        self.message_id = str(row["id"])
        return self.message_id

    def save_interrupted(self) -> None:
        """Saves the text so far if the client disconnected or the model failed; an answer without text is not saved."""
        text = "".join(self.written).strip()
        if self.message_id is None and (self.draft or text):
            try:
                mode: Any = "extractive" if self.services.chat_model is None else "model"
                self.save(self.draft or models.Answer(text, (), (), "interrupted", mode))
            except errors.IbidError:
                _log.exception("an interrupted answer could not be saved")

    def _count(self, answer: models.Answer) -> None:
        """Counts every answer, also one that is not saved, because its tokens were used."""
        if not self.is_counted:
            self.is_counted = True
            self.cost = metrics.find_cost(answer.usage, self.settings)
            metrics.record_answer(self.user, self.opened.conversation_id, answer, self.cost)


def ask(
    services: Services, user: models.User, question: Question
) -> Generator[Opened | TextDelta | Answered, None, None]:
    """Saves the question, finds passages, answers, saves the answer.

    If the iterator is closed early or the model fails, the text so far is saved as `interrupted`; an error before the
    first word is raised. No database connection is held between the steps.
    """
    policy = services.policy()
    opened, history = _open_question(services, user, question, policy)
    lang = follow_ups.find_language(question.query_text, history)
    saver = _Saver(services, user, opened, policy.settings)
    failure: errors.IbidError | None = None
    try:
        yield opened
        rewriting = _rewrite(services, policy, question, history)
        saver.search_query = rewriting.search_query
        query_text = rewriting.search_query or question.query_text
        search_lang = languages.detect_language(query_text, lang)
        retrieval = searching.retrieve(
            services, user, policy, query_text, search_lang, opened.scope, conversation_id=opened.conversation_id
        )
        hits = retrieval.ranking.hits
        if guard.is_answerable(hits, guard.find_threshold(search_lang, retrieval.answered, policy.settings)):
            # A model also gets the history. Extractive answers see only the question, so they need the rewritten one.
            effective = question if services.chat_model is not None else replace(question, query_text=query_text)
            answer, failure = yield from _answer(services, policy, effective, lang, retrieval, history, saver)
        else:
            message = policy.settings.guard_message
            text = guard.explain_refusal(message, lang, hits, searching.list_pending(services, user, opened.scope))
            answer = models.Answer(text, (models.CitedSection(text, (), ()),), (), "guarded", "guard")
            yield TextDelta(text)
        answer = replace(answer, usage=rewriting.usage + answer.usage)
        message_id = saver.save(answer)
        yield Answered(
            opened.conversation_id, message_id, opened.scope, answer, rewriting.search_query, failure, saver.cost
        )
    finally:
        saver.save_interrupted()


def _rewrite(
    services: Services, policy: Policy, question: Question, history: list[models.Turn]
) -> follow_ups.Rewriting:
    if not policy.settings.rewrite_follow_ups:
        return follow_ups.Rewriting()
    return follow_ups.rewrite(question.query_text, history, services.rewriting_model)


def _answer(
    services: Services,
    policy: Policy,
    question: Question,
    lang: str,
    retrieval: retriever.Retrieval,
    history: list[models.Turn],
    saver: _Saver,
) -> Generator[TextDelta, None, tuple[models.Answer, errors.IbidError | None]]:
    stream = answers.answer_question(
        question.query_text,
        retrieval.context,
        lang=lang,
        history=history,
        chat_model=services.chat_model,
        tools=Toolbox(services, saver.user, saver.opened.scope, question.query_text),
        tool_rounds=policy.settings.tool_rounds,
    )
    try:
        with closing(stream):
            for event in stream:
                if isinstance(event, answers.TextDelta):
                    saver.written.append(event.text)
                    yield TextDelta(event.text)
                else:
                    saver.draft = event.answer
    except errors.UnavailableError as exc:
        if saver.draft is None:
            raise
        return saver.draft, exc
    if saver.draft is None:
        raise errors.ModelUnavailableError("The model returned no answer. Ask again.")
    return saver.draft, None


def _open_question(
    services: Services, user: models.User, question: Question, policy: Policy
) -> tuple[Opened, list[models.Turn]]:
    """Counts the question, chooses its scope and saves it, unless the client keeps the history: one transaction."""
    with services.database.as_user(user) as connection:
        users.take_question(connection, policy.settings)
        documents.check_scope(connection, question.document_ids, question.notebook_id, question.note_id)
        if question.history is not None:
            latest = list(question.history[-2 * policy.settings.context_turns :])
            return Opened(None, choose_scope(question)), latest
        history: list[models.Turn] = []
        if question.conversation_id is not None:
            row = conversations.find(connection, question.conversation_id)
            conversation_id = question.conversation_id
            attached = conversations.attached_documents(connection, conversation_id)
            history = messages.list_turns(connection, conversation_id, policy.settings.context_turns)
            scope = choose_scope(question, attached, row)
        else:
            scope = choose_scope(question)
            created = conversations.create(connection, user, make_title(question.query_text), scope)
            conversation_id = str(created["id"])
        message = messages.add_message(
            connection, user, conversation_id, "user", question.query_text, scope=asdict(scope)
        )
        return Opened(conversation_id, scope, message["position"]), history


def choose_scope(
    question: Question, attached: tuple[str, ...] = (), conversation: Mapping[str, Any] = MappingProxyType({})
) -> models.Scope:
    """The first that exists of: ids in the question, documents attached to the conversation, its note or notebook.

    Without any of these, or with `whole_library`, the scope is the whole library.
    """
    filters = question.filters
    if question.whole_library:
        return models.Scope("library", filters=filters)
    if question.document_ids:
        return models.Scope("documents", document_ids=question.document_ids, filters=filters)
    if question.note_id or question.notebook_id:
        kind: Any = "note" if question.note_id else "notebook"
        return models.Scope(kind, notebook_id=question.notebook_id, note_id=question.note_id, filters=filters)
    if attached:
        return models.Scope("conversation", document_ids=attached, filters=filters)
    note_id, notebook_id = conversation.get("note_id"), conversation.get("notebook_id")
    if note_id:
        return models.Scope("note", note_id=str(note_id), filters=filters)
    if notebook_id:
        return models.Scope("notebook", notebook_id=str(notebook_id), filters=filters)
    return models.Scope("library", filters=filters)


def make_title(text: str) -> str:
    """The question as a title: one line of at most TITLE_LENGTH characters, cut after a word."""
    line = " ".join(text.split())
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rsplit(" ", 1)[0] + "…"
