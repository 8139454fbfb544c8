"""Translates what is searched into the other language of its scope, at most once a day for the same words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from functions.adapters.postgres import search
from functions.core import models
from functions.core.answering import query_translation
from functions.core.answering.query_translation import Translation
from functions.core.text.languages import OTHER_LANGUAGE
from functions.runtime.policy import Policy
from functions.runtime.services import Services


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
