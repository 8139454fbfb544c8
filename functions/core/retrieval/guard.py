"""Whether what was found is good enough to answer from; when it is not, no model is asked."""

from __future__ import annotations

from collections.abc import Sequence

from functions.core import models
from functions.core.settings import Settings

# Shares of the threshold at which not many more answerable questions are refused than at all of it where a model that
# speaks the language answered; measured on the question sets.
FOREIGN = 0.9
"""Where the embedding model does not speak the question's language and finds less similarity."""
WORDS_ALONE = 0.4
"""Where no embedding server answered, so that half of the evidence is missing."""

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
    """Joint evidence of one passage, 0…1: half similarity, half the idf-weighted share of the question's words in it.

    Both must come from the same passage: a question of exact terms passes on coverage, a paraphrase on similarity, and
    two different half-fitting passages do not add up.
    """
    return 0.5 * max(hit.similarity or 0.0, 0.0) + 0.5 * hit.coverage


def find_evidence(hits: Sequence[models.SearchHit]) -> float:
    """The evidence of the passage that carries most; 0 of none."""
    return max(map(weigh_evidence, hits), default=0.0)


def is_answerable(hits: Sequence[models.SearchHit], threshold: float) -> bool:
    """Whether the best passage carries at least `threshold` of evidence."""
    return find_evidence(hits) >= threshold


def find_threshold(lang: str, servers: Sequence[models.EmbeddingServer], settings: Settings) -> float:
    """The evidence that a question in `lang` takes, given the embedding servers that answered.

    Of several servers the least demanding decides, because a passage may be from any of them.
    """
    usual = settings.similarity_threshold
    shares = [1.0 if not server.languages or lang in server.languages else FOREIGN for server in servers]
    asked = [share * (server.guard_threshold or usual) for share, server in zip(shares, servers, strict=True)]
    return min(asked, default=WORDS_ALONE * usual)


def explain_refusal(message: str, lang: str, hits: Sequence[models.SearchHit], pending: Sequence[str]) -> str:
    """The guard's answer: `message` (or the standard text), the nearest misses, and documents not searched yet."""
    lang = "fr" if lang == "fr" else "en"
    nearest = list(dict.fromkeys(hit.file_name for hit in sorted(hits, key=weigh_evidence, reverse=True)))[:3]
    parts = [message.strip() or _MESSAGES[lang]]
    if nearest:
        parts.append(_NEAREST[lang].format(", ".join(nearest)))
    if pending:
        parts.append(_PENDING[lang].format(", ".join(pending[:5])))
    return " ".join(parts)
