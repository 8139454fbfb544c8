"""Searches a library as one user, for questions, search requests and tools."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from functions.adapters.postgres import documents, search
from functions.core import models
from functions.core.retrieval import guard, retriever
from functions.core.retrieval.early_embedding import EmbedderOf
from functions.runtime import metrics
from functions.runtime.policy import Policy
from functions.runtime.services import Services


def list_pending(services: Services, user: models.User, scope: models.Scope) -> list[str]:
    """The names of documents that were not searched because they are still being processed."""
    with services.database.as_user(user) as connection:
        return documents.list_pending(connection, scope)


def retrieve(
    services: Services,
    user: models.User,
    policy: Policy,
    query_text: str,
    lang: str,
    scope: models.Scope,
    *,
    translations: Sequence[models.Version] = (),
    embedder_of: EmbedderOf | None = None,
    conversation_id: str | None = None,
    is_request: bool = False,
) -> retriever.Retrieval:
    """Finds passages as this user in one database statement, which with `is_request` also counts a request.

    `translations` of the query are searched in the same statement.
    `embedder_of` are embedders that may have begun with the question, see core/retrieval/early_embedding.py.
    """
    per_minute = policy.settings.requests_per_minute if is_request else 0
    retrieval = retriever.retrieve(
        query_text,
        lang,
        scope,
        servers=policy.servers,
        embedder_of=embedder_of or services.question_embedder_of,
        search=partial(search.hybrid_search, services.database, user, requests_per_minute=per_minute),
        settings=policy.settings,
        reranker=services.reranker,
        translations=translations,
    )
    metrics.record_retrieval(user, conversation_id, scope, retrieval)
    return retrieval


def has_evidence(
    services: Services, policy: Policy, lang: str, scope: models.Scope, retrieval: retriever.Retrieval
) -> bool:
    """Whether the passages may hold the answer.

    The requirement is lower with a language model, which tells when they do not; a small one seldom does.
    """
    is_read = services.chat_model is not None and services.find_profile(policy.settings.prompt_profile) == "full"
    threshold = find_threshold(policy, lang, scope, retrieval, has_model=is_read)
    return guard.is_answerable(retrieval.versions, retrieval.ranking.hits, threshold)


def find_threshold(
    policy: Policy, lang: str, scope: models.Scope, retrieval: retriever.Retrieval, *, has_model: bool
) -> float:
    """The evidence that the guard requires of what was found for a question in `lang`."""
    return guard.find_threshold(
        lang,
        retrieval.answered,
        policy.settings,
        retrieval.ranking.candidate_chunks,
        names_documents=bool(scope.document_ids),
        has_model=has_model,
    )
