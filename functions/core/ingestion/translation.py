"""Translates the passages of an indexed source, so that they are searched in the other language too.

The source is ready before its translation begins, and stays ready whatever happens to it. What is left to translate is
read from the tables, and each batch is saved as soon as it is there: a run that ends in the middle loses no finished
batch, and the next run asks for none of them again.
"""

from __future__ import annotations

import hashlib
import logging
import random
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from functions.core import errors, models, ports
from functions.core.ingestion import embedding
from functions.core.settings import Settings
from functions.core.text import languages, words
from functions.core.text.storable import clean_text

if TYPE_CHECKING:
    from functions.core.ports import Matrix

BATCH_PASSAGES: Final = 8
SAVE_SECONDS: Final = 30.0
"""A batch is saved after so many passages, or with the first passage after so many seconds."""
LEASE_SECONDS: Final = 300
"""Longer than SAVE_SECONDS and the longest request with its retries."""
RESERVE_SECONDS: Final = 100.0
"""A batch begins only if this run has at least so much time left."""
MAX_GROWTH: Final = 3
SPARE_CHARS: Final = 200

_LANGS: Final[Mapping[str, tuple[models.Lang, ...]]] = {
    "off": (),
    "en_to_fr": ("en",),
    "fr_to_en": ("fr",),
    "both": ("en", "fr"),
}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage to translate; `search_prefix` is what stands above it where it is embedded."""

    chunk_id: int
    lang: models.Lang
    text: str
    search_prefix: str


@dataclass(frozen=True, slots=True)
class Translation:
    """A translation of a passage into `lang`; `text` is None where the translator gave nothing that can be used."""

    passage: StoredPassage
    lang: models.Lang
    text: str | None


@dataclass(frozen=True, slots=True)
class TranslationJob:
    """The leased translation of a generation, whose vectors are those of the server `server_id`, None without any."""

    generation: int
    owner_id: str
    lease_token: str
    attempts: int
    langs: tuple[models.Lang, ...]
    server_id: str | None


@dataclass(slots=True)
class TranslationOutcome:
    """What happened to a claimed translation; `again` if another run should continue it at once."""

    generation: int
    status: str = "superseded"
    again: bool = False
    code: str | None = None
    usage: models.Usage = field(default_factory=models.Usage)
    cost: float = 0.0


class TranslationStore(Protocol):
    """The queue and the table of translations. Every write raises LeaseLostError if the lease is lost."""

    def claim_translation(
        self, generation: int | None, langs: Sequence[str], lease_seconds: int
    ) -> TranslationJob | None: ...

    def list_untranslated(self, job: TranslationJob, count: int) -> list[StoredPassage]: ...

    def list_unembedded(self, job: TranslationJob) -> list[Translation]:
        """The translations without a vector, which a run left that ended before it had embedded them."""
        ...

    def recall_translations(self, owner_id: str, text_hashes: Collection[str]) -> Mapping[tuple[str, str], str]:
        """What the owner's passages of these texts were translated into, by hash and language."""
        ...

    def save_translations(
        self,
        job: TranslationJob,
        translations: Sequence[Translation],
        lease_seconds: int,
        usage: models.Usage,
        cost: float,
    ) -> None: ...

    def save_vectors(
        self, job: TranslationJob, chunk_ids: Sequence[int], vectors: Sequence[Matrix], lease_seconds: int
    ) -> None: ...

    def end_translation(
        self, job: TranslationJob, error: errors.IbidError | None = None, wait_seconds: float | None = None
    ) -> str | None: ...


def list_langs(settings: Settings) -> tuple[models.Lang, ...]:
    """The languages of the passages that the setting `translate_documents` wants translated."""
    return _LANGS[settings.translate_documents]


def hash_text(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def find_cost(usage: models.Usage, settings: Settings) -> float:
    """The cost of a translator's tokens in US dollars at the prices in the settings."""
    read, written = usage.prompt_tokens or 0, usage.completion_tokens or 0
    prices = settings.price_translation_input_per_million, settings.price_translation_output_per_million
    return (max(read, 0) * prices[0] + max(written, 0) * prices[1]) / 1e6


def check_translation(text: str, passage: StoredPassage, lang: models.Lang) -> str | None:
    """The text, if it can be a translation of the passage: of about its length, and in no other language."""
    text = clean_text(text).strip()
    if not words.keys(text) or len(text) > MAX_GROWTH * len(passage.text) + SPARE_CHARS:
        return None
    if len(passage.text) > MAX_GROWTH * len(text) + SPARE_CHARS:
        return None
    return text if languages.detect_certain_language(text) in (None, lang) else None


@dataclass(frozen=True, slots=True)
class PassageTranslator:
    """Everything that translating needs from outside; `embedder_of` returns a server with its embedder, by its id."""

    store: TranslationStore
    translator: ports.Translator
    embedder_of: Callable[[str], tuple[models.EmbeddingServer, ports.Embedder] | None]
    settings: Settings
    remaining_seconds: Callable[[], float] = lambda: float("inf")
    lease_seconds: int = LEASE_SECONDS

    def has_time(self) -> bool:
        return self.remaining_seconds() >= RESERVE_SECONDS

    def translate_next(self, generation: int | None = None) -> TranslationOutcome | None:
        """Claims a due translation (the given one, or the one waiting longest) and works on it until its end."""
        langs = list_langs(self.settings)
        job = self.store.claim_translation(generation, langs, self.lease_seconds) if langs else None
        if job is None:
            return None
        outcome = TranslationOutcome(job.generation)
        try:
            self._translate(job, outcome)
        except errors.LeaseLostError:
            return outcome
        except errors.IbidError as exc:
            self._fail(job, outcome, exc)
        except Exception:
            _log.exception("an internal error ended a translation", extra={"generation": job.generation})
            self._fail(job, outcome, errors.ProcessingFailedError())
        return outcome

    def _fail(self, job: TranslationJob, outcome: TranslationOutcome, error: errors.IbidError) -> None:
        wait = None
        if error.retryable and job.attempts < self.settings.max_attempts:
            asked = error.details.get("retry_after")
            wait = min(asked or min(300.0, 2.0**job.attempts), 3600.0) * random.uniform(1.0, 1.2)
        outcome.code = error.code
        outcome.status = self.store.end_translation(job, error, wait) or "superseded"

    def _translate(self, job: TranslationJob, outcome: TranslationOutcome) -> None:
        self._embed(job, self.store.list_unembedded(job))
        while passages := self.store.list_untranslated(job, BATCH_PASSAGES):
            if not self.has_time():
                outcome.again = True
                outcome.status = self.store.end_translation(job, wait_seconds=0.0) or "superseded"
                return
            self._translate_batch(job, passages, outcome)
        outcome.status = self.store.end_translation(job) or "superseded"

    def _translate_batch(
        self, job: TranslationJob, passages: Sequence[StoredPassage], outcome: TranslationOutcome
    ) -> None:
        """Translates and saves passages; what was translated before the translator failed is saved, too."""
        known = self.store.recall_translations(job.owner_id, {hash_text(passage.text) for passage in passages})
        done: list[Translation] = []
        unknown: list[StoredPassage] = []
        for passage in passages:
            target = languages.OTHER_LANGUAGE[passage.lang]
            text = known.get((hash_text(passage.text), target))
            if text is None:
                unknown.append(passage)
            else:
                done.append(Translation(passage, target, text))
        usage, started = models.Usage(), time.monotonic()
        try:
            for passage in unknown:
                translation, spent = self._translate_passage(passage)
                done.append(translation)
                usage += spent
                if time.monotonic() - started > SAVE_SECONDS:
                    break
        finally:
            if done:
                self._save(job, done, usage, outcome)

    def _translate_passage(self, passage: StoredPassage) -> tuple[Translation, models.Usage]:
        target = languages.OTHER_LANGUAGE[passage.lang]
        try:
            text, usage = self.translator.translate(passage.text, passage.lang, target)
        except errors.ModelRejectedError as exc:
            if exc.concerns_every_text:
                raise
            _log.warning("the translator refused a passage: %s", exc.code, extra={"chunk": passage.chunk_id})
            return Translation(passage, target, None), models.Usage()
        return Translation(passage, target, check_translation(text, passage, target)), usage

    def _save(
        self,
        job: TranslationJob,
        translations: Sequence[Translation],
        usage: models.Usage,
        outcome: TranslationOutcome,
    ) -> None:
        cost = find_cost(usage, self.settings)
        self.store.save_translations(job, translations, self.lease_seconds, usage, cost)
        outcome.usage, outcome.cost = outcome.usage + usage, outcome.cost + cost
        self._embed(job, translations)

    def _embed(self, job: TranslationJob, translations: Iterable[Translation]) -> None:
        """Saves the vectors of translations, from the server that embedded their passages; none where that is gone."""
        given = [translation for translation in translations if translation.text is not None]
        found = self.embedder_of(job.server_id) if job.server_id is not None and given else None
        if found is None:
            return
        server, embedder = found
        texts = [embedded_text(server, one.passage.search_prefix, one.text or "") for one in given]
        for batch in embedding.embed_chunks(embedder, texts, batch_size=server.batch_size):
            chunk_ids = [given[index].passage.chunk_id for index in batch.indices]
            self.store.save_vectors(job, chunk_ids, list(batch.vectors), self.lease_seconds)


def embedded_text(server: models.EmbeddingServer, search_prefix: str, text: str) -> str:
    """A translation as it is embedded: like its passage, below the same title and section."""
    return server.passage_prefix + search_prefix + text
