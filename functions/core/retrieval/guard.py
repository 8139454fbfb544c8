"""Decides whether the passages found are good enough to answer from; if they are not, no model is asked."""

from __future__ import annotations

from collections.abc import Sequence

from functions.core import models
from functions.core.settings import Settings

SIMILARITY_SHARE = 0.6
"""The part of similarity in the evidence; the question's words are the rest."""
FOREIGN_SIMILARITY_SHARE = 0.75
"""The same in a passage of another language than the question's, where the words can only be names and figures."""

# Factors on the threshold, measured on the question sets: with them, hardly more answerable questions are refused than
# at the full threshold with an embedding model that speaks the language.
FOREIGN = 0.9
"""For an embedding model that does not speak the question's language and therefore finds less similarity."""
WORDS_ALONE = 0.45
"""For a search without any embedding server, which lacks half of the evidence."""

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


def find_evidence(hits: Sequence[models.SearchHit]) -> float:
    """The evidence of the strongest passage; 0 if there is none."""
    return max(map(weigh_evidence, hits), default=0.0)


def is_answerable(hits: Sequence[models.SearchHit], threshold: float) -> bool:
    """Whether the strongest passage carries at least `threshold` of evidence."""
    return find_evidence(hits) >= threshold


def find_threshold(lang: str, servers: Sequence[models.EmbeddingServer], settings: Settings) -> float:
    """The evidence required to answer a question in `lang`, given the embedding servers that answered.

    With several servers the lowest requirement counts, because a passage may come from any of them.
    """
    default = settings.similarity_threshold
    factors = [1.0 if not server.languages or lang in server.languages else FOREIGN for server in servers]
    thresholds = [f * (server.guard_threshold or default) for f, server in zip(factors, servers, strict=True)]
    return min(thresholds, default=WORDS_ALONE * default)


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
