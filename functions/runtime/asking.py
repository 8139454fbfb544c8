"""Answers a question and saves both: the one pipeline behind JSON, server-sent events and the command line."""

from __future__ import annotations

import logging
import math
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from functions.adapters.postgres import messages, users
from functions.core import background, errors, models
from functions.core.answering import answers, follow_ups, model_writer, query_rephrasing, query_translation
from functions.core.citations.description import describe_citation, describe_section
from functions.core.retrieval import early_embedding, guard, retriever, sentence_similarity, suggestions
from functions.core.settings import Settings
from functions.core.text import languages, titles
from functions.runtime import metrics, searching, translating
from functions.runtime.policy import Policy
from functions.runtime.services import Services
from functions.runtime.toolbox import Toolbox

NO_PREFERENCES = models.Preferences()
RESERVE_SECONDS = 3.0
"""What remains of the time of a function when its answer must have ended: enough to quote, save and send it."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its scope; `whole_library` ignores the scope of its conversation.

    `replaces` is the id of an earlier question of the conversation, whose place this one takes.

    A question with a `history` belongs to a conversation that the client keeps: neither question nor answer is saved.
    """

    query_text: str
    conversation_id: str | None = None
    document_ids: tuple[str, ...] = ()
    notebook_id: str | None = None
    note_id: str | None = None
    whole_library: bool = False
    filters: Mapping[str, str] = field(default_factory=dict)
    replaces: str | None = None
    history: tuple[models.Turn, ...] | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """The first event: the question is saved; without `conversation_id`, the client keeps the conversation."""

    conversation_id: str | None
    scope: models.Scope
    question_position: int | None = None
    question_id: str | None = None
    preferences: models.Preferences = NO_PREFERENCES


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The last event: the answer is complete and saved; the ids are None if the client keeps the conversation.

    `search_query` is the complete question that was searched in place of a follow-up, `translated_query` the
    translation that was searched as well. With a `failure`, the model stopped early and the answer holds the text up to
    then. `cost` is in US dollars, or None if it is not known. `degraded` names what the search did without.
    `suggestions` are questions that other passages found answer.
    """

    conversation_id: str | None
    question_id: str | None
    message_id: str | None
    scope: models.Scope
    answer: models.Answer
    search_query: str | None = None
    translated_query: str | None = None
    failure: errors.IbidError | None = None
    cost: float | None = None
    degraded: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()


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
    translated_query: str | None = None
    message_id: str | None = None
    is_counted: bool = False
    cost: float | None = None

    def save(self, answer: models.Answer) -> str | None:
        self._count(answer)
        usage = metrics.describe_usage(answer, self.cost)
        if self.opened.conversation_id is None:
            with self.services.database.as_user(self.user) as connection:
                users.count_usage(connection, usage)
            return None
        with self.services.database.as_user(self.user) as connection:
            row = messages.add_answer(
                connection,
                self.user,
                self.opened.conversation_id,
                answer.answer,
                status=answer.status,
                mode=answer.mode,
                sections=[describe_section(section) for section in answer.sections],
                sources=[describe_citation(citation) for citation in answer.sources],
                scope=asdict(self.opened.scope),
                usage=usage,
                search_query=self.search_query,
                translated_query=self.translated_query,
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


@dataclass(frozen=True, slots=True)
class _Found:
    """What a question was rewritten to, translated into and rephrased as, its language, and the passages found.

    The guard judges the `first` search: in other words, off-topic questions find what is similar to those words.
    """

    rewriting: follow_ups.Rewriting
    translation: query_translation.Translation
    rephrasing: query_rephrasing.Rephrasing
    lang: str
    first: retriever.Retrieval
    retrieval: retriever.Retrieval

    @property
    def usage(self) -> models.Usage:
        """The tokens of the short requests before the search."""
        return self.rewriting.usage + self.translation.usage + self.rephrasing.usage


def ask(
    services: Services, user: models.User, question: Question, deadline: float = math.inf
) -> Generator[Opened | TextDelta | Answered, None, None]:
    """Saves the question, finds passages, answers, saves the answer.

    The question is embedded while it is saved, and searched while the first event is sent. If the iterator is closed
    early or the model fails, the text so far is saved as `interrupted`; if the model fails before its first word, the
    answer quotes the passages. The model must end before `deadline`, a `time.monotonic()`. No database connection is
    held between the steps.
    """
    policy = services.policy()
    embedder_of = _begin_embedding(services, policy, question)
    opened, history, known = _open_question(services, user, question, policy)
    finding = background.begin(partial(_find, services, user, policy, question, opened, history, known, embedder_of))
    lang = follow_ups.find_language(question.query_text, history)
    saver = _Saver(services, user, opened, policy.settings)
    failure: errors.IbidError | None = None
    try:
        yield opened
        found = finding.result()
        rewriting, retrieval, hits = found.rewriting, found.retrieval, found.retrieval.ranking.hits
        saver.search_query = rewriting.search_query
        saver.translated_query = found.translation.text
        if searching.has_evidence(services, policy, found.lang, opened.scope, found.first):
            limits = model_writer.TimeLimits(services.first_word_seconds, deadline - RESERVE_SECONDS)
            answer, failure = yield from _answer(services, policy, question, lang, retrieval, history, saver, limits)
        else:
            message = policy.settings.guard_message
            text = guard.explain_refusal(message, lang, hits, searching.list_pending(services, user, opened.scope))
            answer = models.Answer(text, (models.CitedSection(text, (), ()),), (), "guarded", "guard")
            yield TextDelta(text)
        answer = replace(answer, usage=found.usage + answer.usage)
        message_id = saver.save(answer)
        yield Answered(
            opened.conversation_id,
            opened.question_id,
            message_id,
            opened.scope,
            answer,
            rewriting.search_query,
            found.translation.text,
            failure,
            saver.cost,
            retrieval.degraded,
            suggestions.suggest_follow_ups(question.query_text, answer, retrieval.context, lang),
        )
    finally:
        saver.save_interrupted()


def _begin_embedding(services: Services, policy: Policy, question: Question) -> early_embedding.EmbedderOf:
    """Begins to embed the question, unless it may be a follow-up, of which only the rewritten form is embedded."""
    is_first = question.conversation_id is None and not question.history
    if is_first or not policy.settings.rewrite_follow_ups or not follow_ups.refers_back(question.query_text):
        return early_embedding.begin_embedding(question.query_text, policy.servers, services.question_embedder_of)
    return services.question_embedder_of


def _find(
    services: Services,
    user: models.User,
    policy: Policy,
    question: Question,
    opened: Opened,
    history: list[models.Turn],
    known: translating.Known,
    embedder_of: early_embedding.EmbedderOf,
) -> _Found:
    rewriting = _rewrite(services, policy, question, history)
    query_text = rewriting.search_query or question.query_text
    lang = languages.detect_language(query_text, follow_ups.find_language(question.query_text, history))
    translation = translating.translate(services, user, query_text, lang, known)
    search = partial(
        searching.retrieve,
        services,
        user,
        policy,
        query_text,
        lang,
        opened.scope,
        embedder_of=embedder_of,
        conversation_id=opened.conversation_id,
    )
    first = search(translations=translation.versions)
    rephrasing = _rephrase(services, policy, query_text, lang, opened.scope, first)
    versions = (*translation.versions, *rephrasing.versions)
    retrieval = search(translations=versions) if rephrasing.versions else first
    return _Found(rewriting, translation, rephrasing, lang, first, retrieval)


def _rephrase(
    services: Services,
    policy: Policy,
    query_text: str,
    lang: models.Lang,
    scope: models.Scope,
    first: retriever.Retrieval,
) -> query_rephrasing.Rephrasing:
    """The question in the words of a page, unless the first search is sure, or the guard refuses it.

    A small model is slow where it runs and seldom knows the words of a page, so it is not asked.
    """
    model, versions, hits = services.query_model, first.versions, first.ranking.hits
    if model is None or not policy.settings.rephrase_questions:
        return query_rephrasing.Rephrasing()
    sure, answerable = (searching.find_threshold(policy, lang, scope, first, has_model=has) for has in (False, True))
    if guard.is_sure(versions, hits, sure) or not guard.is_answerable(versions, hits, answerable):
        return query_rephrasing.Rephrasing()
    if services.find_profile(policy.settings.prompt_profile) == "compact":
        return query_rephrasing.Rephrasing()
    return query_rephrasing.rephrase(query_text, lang, model)


def _rewrite(
    services: Services, policy: Policy, question: Question, history: list[models.Turn]
) -> follow_ups.Rewriting:
    if not policy.settings.rewrite_follow_ups:
        return follow_ups.Rewriting()
    return follow_ups.rewrite(question.query_text, history, services.query_model)


def _answer(
    services: Services,
    policy: Policy,
    question: Question,
    lang: str,
    retrieval: retriever.Retrieval,
    history: list[models.Turn],
    saver: _Saver,
    limits: model_writer.TimeLimits,
) -> Generator[TextDelta, None, tuple[models.Answer, errors.IbidError | None]]:
    preferences = saver.opened.preferences
    # Administrators may have taken the permission back since the notebook was given its model.
    name = preferences.chat_model if preferences.chat_model in policy.settings.allowed_models else None
    stream = answers.answer_question(
        question.query_text,
        retrieval.context,
        lang=lang,
        history=history,
        chat_model=services.find_chat_model(name),
        tools=Toolbox(services, saver.user, saver.opened.scope, question.query_text),
        tool_rounds=policy.settings.tool_rounds,
        profile=services.find_profile(policy.settings.prompt_profile, name),
        limits=limits,
        search_query=saver.search_query,
        quote_rules=_make_quote_rules(services, policy, lang, retrieval),
        passage_count=retrieval.ranking.candidate_chunks,
        preference=preferences.instructions,
    )
    try:
        with closing(stream):
            for event in stream:
                if isinstance(event, model_writer.TextDelta):
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


def _make_quote_rules(
    services: Services, policy: Policy, lang: str, retrieval: retriever.Retrieval
) -> answers.QuoteRules:
    """Sentences are compared by the first server that answered and understands the question's language."""
    server = next((one for one in retrieval.answered if not one.languages or lang in one.languages), None)
    compare = None if server is None else sentence_similarity.make_compare(server, services.question_embedder_of)
    bar = guard.find_threshold(lang, retrieval.answered, policy.settings, guard.MEDIUM_SCOPE)
    return answers.QuoteRules(compare, bar)


def _open_question(
    services: Services, user: models.User, question: Question, policy: Policy
) -> tuple[Opened, list[models.Turn], translating.Known]:
    """Counts the question, finds its scope, saves it unless the client keeps the history; returns the last turns."""
    scope = choose_scope(question)
    key = translating.find_key(services, policy, question.query_text)
    new = messages.NewQuestion(
        query_text=question.query_text,
        title=titles.make_title(question.query_text),
        scope=scope,
        conversation_id=question.conversation_id,
        document_ids=question.document_ids,
        notebook_id=question.notebook_id,
        note_id=question.note_id,
        inherits_scope=scope.kind == "library" and not question.whole_library,
        is_saved=question.history is None,
        text_hash=key,
        replaces=question.replaces,
    )
    opened = messages.open_question(services.database, user, new, policy.settings)
    history = opened.history if question.history is None else question.history[-2 * policy.settings.context_turns :]
    known = translating.Known(key, opened.translations)
    identity = (opened.conversation_id, opened.scope, opened.position, opened.question_id)
    return Opened(*identity, opened.preferences), list(history), known


def choose_scope(question: Question) -> models.Scope:
    """What the question names: its documents, else its note or notebook, else the whole library.

    A question that names nothing inherits the scope of its conversation, see sql/67_open_question_v2.sql.
    """
    filters = question.filters
    if question.whole_library:
        return models.Scope("library", filters=filters)
    if question.document_ids:
        return models.Scope("documents", document_ids=question.document_ids, filters=filters)
    if question.note_id or question.notebook_id:
        kind: Any = "note" if question.note_id else "notebook"
        return models.Scope(kind, notebook_id=question.notebook_id, note_id=question.note_id, filters=filters)
    return models.Scope("library", filters=filters)
