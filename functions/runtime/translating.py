"""Translates questions into the other language of their scope, and passages of indexed documents.

A question is translated at most once a day for the same words, a passage once in a library.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from functions.adapters.postgres import search
from functions.core import models, ports
from functions.core.answering import query_translation
from functions.core.answering.query_translation import Translation
from functions.core.text.languages import OTHER_LANGUAGE
from functions.runtime import metrics
from functions.runtime.policy import Policy
from functions.runtime.services import Services

if TYPE_CHECKING:  # only workers translate passages
    from functions.core.ingestion.translation import TranslationOutcome

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Known:
    """What the database knows before a question is searched: the languages of its scope, with its translations.

    `translations` has None for a language that the question has not been translated into.
    """

    text_hash: str | None = None
    translations: Mapping[str, str | None] = field(default_factory=dict)


def find_key(services: Services, policy: Policy, question: str) -> str | None:
    """The key of a question's translations; None if there is no model, or it shall not translate."""
    if services.query_model is None or not policy.settings.translate_questions:
        return None
    return query_translation.hash_query(question)


def translate(services: Services, user: models.User, query: str, lang: models.Lang, known: Known) -> Translation:
    """The query in the other of English and French, if its scope holds that language.

    A new translation takes a request to the model and is kept for a day. Never fails because of the model.
    """
    model, other = services.query_model, OTHER_LANGUAGE.get(lang)
    if model is None or other is None or other not in known.translations:
        return Translation()
    key = query_translation.hash_query(query)
    # The translations of a rewritten follow-up could not be looked up with the question.
    is_known = key == known.text_hash
    kept = known.translations[other] if is_known else search.find_translation(services.database, user, key, other)
    if kept is not None:
        return Translation(kept, other)
    translation = query_translation.translate(query, other, model)
    if translation.text is not None:
        search.save_translation(services.database, user, key, other, translation.text)
    return translation


def translate_next(
    services: Services, generation: int | None = None, remaining_seconds: float = float("inf")
) -> TranslationOutcome | None:
    """Works on the due translation of a generation, or on the one waiting longest; None if there is none.

    Without the setting `translate_documents` or a translator, nothing is asked of the database.
    """
    settings = services.policy().settings
    if settings.translate_documents == "off" or services.translator is None:
        return None
    from functions.adapters.postgres.ingestion.translations import TranslationStore
    from functions.core.ingestion.translation import PassageTranslator

    def embedder_of(server_id: str) -> tuple[models.EmbeddingServer, ports.Embedder] | None:
        server = next((server for server in services.policy().servers if server.id == server_id), None)
        return None if server is None else (server, services.embedder_of(server))

    deadline = time.monotonic() + remaining_seconds
    outcome = PassageTranslator(
        store=TranslationStore(services.database),
        translator=services.translator,
        embedder_of=embedder_of,
        settings=settings,
        remaining_seconds=lambda: deadline - time.monotonic(),
    ).translate_next(generation)
    if outcome is not None:
        metrics.record_tokens(outcome.usage, outcome.cost)
        facts = {"generation": outcome.generation, "status": outcome.status, "code": outcome.code}
        _log.info("ai_translate", extra=facts)
    return outcome


def queue(services: Services) -> None:
    """Queues what was indexed before translation was switched on, and tells the workers what is due."""
    settings = services.policy().settings
    if settings.translate_documents == "off" or services.translator is None:
        return
    from functions.adapters.postgres.ingestion.translations import TranslationStore
    from functions.core.ingestion.translation import list_langs

    for generation in TranslationStore(services.database).queue_translations(list_langs(settings)):
        services.nudge_translator(generation)
