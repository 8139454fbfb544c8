"""Decides whether the passages found are good enough to answer from; if they are not, no model is asked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache

from functions.core import models
from functions.core.settings import Settings
from functions.core.text import words

SIMILARITY_SHARE = 0.6
"""The part of similarity in the evidence; the question's words are the rest."""
FOREIGN_SIMILARITY_SHARE = 0.75
"""The same in a passage of another language than the question's, where the words can only be names and figures."""

NAMES_SHARE = 0.4
"""The part that a question's names and figures have in the evidence of a passage of another language."""
MISSING_NAMES = 0.15
"""What a passage loses if its document has none of the question's names and figures in the passages found."""

# The best of many unrelated passages is more similar to a question than the best of few. These factors on the threshold
# were measured in scopes of 8 to 11,000 passages.
MEDIUM_SCOPE = 400
"""A scope of so many passages has the whole threshold."""
SCOPE_GROWTH = 0.5
"""By how much of the threshold the bar is higher in ten times as many passages."""
LEAST_SCOPE_FACTOR, MOST_SCOPE_FACTOR = 0.5, 1.35

# Factors on the threshold, measured on the question sets: with them, hardly more answerable questions are refused than
# at the full threshold with an embedding model that speaks the language.
FOREIGN = 0.9
"""For an embedding model that does not speak the question's language and therefore finds less similarity."""
WORDS_ALONE = 0.45
"""For a search without any embedding server, which lacks half of the evidence."""
NAMED_DOCUMENTS = 0.8
"""For a question asked of chosen documents: whoever chooses them expects the answer there."""
READ_BY_MODEL = 0.6
"""With a language model, which reads the passages and says itself that they do not contain the answer."""

SURE = 2.0
"""So many times the threshold, that without a language model, make a search sure: other words would hardly help it."""

_MESSAGES = {
    "en": "I found nothing in your documents that answers this question.",
    "fr": "Je n'ai rien trouvé dans vos documents qui réponde à cette question.",
}
_NEAREST = {"en": "The nearest passages are in: {}.", "fr": "Les passages les plus proches sont dans : {}."}
_PENDING = {
    "en": "Still being processed, so not searched: {}.",
    "fr": "Encore en cours de traitement, donc pas consultés : {}.",
}


def weigh_evidence(hit: models.SearchHit) -> float:
    """The evidence of one passage, 0…1: its similarity, and the idf-weighted share of the question's words in it.

    Both come from the same passage: a question of exact terms passes by coverage, a paraphrase by similarity,
    and two passages that each fit halfway do not add up.
    """
    share = FOREIGN_SIMILARITY_SHARE if hit.is_foreign else SIMILARITY_SHARE
    return share * max(hit.similarity or 0.0, 0.0) + (1 - share) * hit.coverage


def find_evidence(versions: Sequence[models.Version], hits: Sequence[models.SearchHit]) -> float:
    """The evidence of the strongest passage for a question, which has one version or more; 0 if there is none.

    The names and figures of the question should stand in some passage of the same document, or in its title or file
    name. An abbreviation may be missing, because a question often asks what it means.
    """
    return max(_weigh_in_documents(versions, hits), default=0.0)


def is_answerable(versions: Sequence[models.Version], hits: Sequence[models.SearchHit], threshold: float) -> bool:
    """Whether the strongest passage carries at least `threshold` of evidence."""
    return any(evidence >= threshold for evidence in _weigh_in_documents(versions, hits))


def is_sure(versions: Sequence[models.Version], hits: Sequence[models.SearchHit], threshold: float) -> bool:
    """Whether the evidence is so far above `threshold` that the question need not be searched in other words."""
    return is_answerable(versions, hits, SURE * threshold)


def _weigh_in_documents(versions: Sequence[models.Version], hits: Sequence[models.SearchHit]) -> Iterator[float]:
    """The evidence of each passage, in view of what else was found in its document."""
    texts = {lang: text for text, lang in reversed(versions)}
    list_words = cache(_list_words)
    for hit in hits:
        text = texts.get(hit.lang, versions[0][0])
        names = words.names_and_numbers(text) if hit.is_foreign else words.full_names_and_numbers(text)
        if not names:
            yield weigh_evidence(hit)
            continue
        missing = names - list_words(hit)
        for other in hits:
            if missing and other.source_id == hit.source_id:
                missing -= list_words(other)
        share = 1 - len(missing) / len(names)
        if hit.is_foreign:
            yield (1 - NAMES_SHARE) * max(hit.similarity or 0.0, 0.0) + NAMES_SHARE * share
        else:
            yield max(weigh_evidence(hit) - MISSING_NAMES * (1 - share), 0.0)


def _list_words(hit: models.SearchHit) -> frozenset[str]:
    return words.keys(" ".join(filter(None, (hit.text, hit.translation, hit.section_title, hit.title, hit.file_name))))


def find_threshold(
    lang: str,
    servers: Sequence[models.EmbeddingServer],
    settings: Settings,
    passage_count: int,
    *,
    names_documents: bool = False,
    has_model: bool = False,
) -> float:
    """The evidence required to answer a question in `lang` from so many passages, given the servers that answered.

    With several servers the lowest requirement counts, because a passage may come from any of them. `names_documents`
    says that the user has chosen them, `has_model` that a language model is to write the answer.
    """
    default = settings.similarity_threshold
    factors = [1.0 if not server.languages or lang in server.languages else FOREIGN for server in servers]
    thresholds = [f * (server.guard_threshold or default) for f, server in zip(factors, servers, strict=True)]
    threshold = min(thresholds, default=WORDS_ALONE * default) * _find_scope_factor(passage_count)
    return threshold * (NAMED_DOCUMENTS if names_documents else 1) * (READ_BY_MODEL if has_model else 1)


def _find_scope_factor(passage_count: int) -> float:
    factor = 1 + SCOPE_GROWTH * math.log10(max(passage_count, 1) / MEDIUM_SCOPE)
    return min(max(factor, LEAST_SCOPE_FACTOR), MOST_SCOPE_FACTOR)


def explain_refusal(message: str, lang: str, hits: Sequence[models.SearchHit], pending: Sequence[str]) -> str:
    """The guard's answer: `message` or the standard text, the nearest files, and the documents not searched yet."""
    lang = "fr" if lang == "fr" else "en"
    nearest = list(dict.fromkeys(hit.file_name for hit in sorted(hits, key=weigh_evidence, reverse=True)))[:3]
    parts = [message.strip() or _MESSAGES[lang]]
    if nearest:
        parts.append(_NEAREST[lang].format(", ".join(nearest)))
    if pending:
        parts.append(_PENDING[lang].format(", ".join(pending[:5])))
    return " ".join(parts)
