"""Chooses the adapters from the configuration. Nothing is opened, loaded or read before its first use."""

from __future__ import annotations

import math
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from functions.adapters.models.model_server import COMPACT_PARAMETERS, ModelSize, is_near, read_size
from functions.adapters.postgres.connection import Database
from functions.core import errors, models
from functions.core.retrieval.circuit_breaker import TIME_LIMIT_SECONDS, CircuitBreaker
from functions.runtime import logging
from functions.runtime.config import Config, find_function_name, read_config
from functions.runtime.policy import Policy, PolicyReader

if TYPE_CHECKING:
    from functions.adapters import auth
    from functions.core import ports
    from functions.core.extraction.isolation import PageDrawer
    from functions.core.ingestion.worker import Worker

FIRST_WORD_SECONDS = 60.0
LOCAL_TRANSLATOR = "opus-mt"
"""The value of TRANSLATION_MODEL for the MarianMT models of this machine."""
NEAR_FIRST_WORD_SECONDS = 180.0
"""How long a reader waits for the first word; a model on the reader's own machine reads the prompt slowly."""


class Services:
    """The adapters of one process, created on first use.

    The local embedding model uses `model_threads` threads, of which `model_limit()` at once.
    """

    def __init__(self, config: Config, *, model_threads: int = 1, model_limit: Callable[[], int] | None = None) -> None:
        self.config = config
        self._model_threads, self._model_limit = model_threads, model_limit
        self._policy = PolicyReader(config, lambda: self.database)
        self._embedders: dict[tuple[object, ...], ports.Embedder] = {}
        self._breakers: dict[tuple[object, ...], CircuitBreaker] = {}
        self._chat_models: dict[str, ports.ChatModel] = {}
        self._lock = threading.Lock()
        self._note_worker: Callable[[int], object] | None = None
        logging.configure(config.log_level)

    @property
    def is_local(self) -> bool:
        """Whether the laptop's storage and sign-in are used: without SUPABASE_URL, but never on Lambda."""
        if self.config.supabase_url is None and find_function_name() is not None:
            raise errors.UnavailableError(self.config.describe_unset("SUPABASE_URL"))
        return self.config.supabase_url is None

    @cached_property
    def database(self) -> Database:
        if self.config.database_url is None:
            raise errors.DatabaseUnavailableError(self.config.describe_unset("DATABASE_URL"))
        return Database(self.config.database_url.get_secret_value())

    def close(self) -> None:
        """Closes the connections that were opened to the database and the storage."""
        for name in ("database", "objects"):
            if name in vars(self):
                getattr(self, name).close()

    @cached_property
    def local_secret(self) -> bytes:
        """The laptop's own signing key, created once, in a file that only its user can read."""
        return read_or_create_secret(self.config.home / "secret")

    @cached_property
    def objects(self) -> ports.ObjectStore:
        if self.is_local:
            from functions.adapters.laptop import object_rows
            from functions.adapters.laptop.object_store import LocalObjectStore

            # Signed URLs are relative, so that they work at whichever address the client uses.
            return LocalObjectStore(
                self.config.home / "storage",
                self.local_secret,
                "",
                on_removed=partial(object_rows.forget, self.database),
            )
        from functions.adapters import storage_supabase

        assert self.config.supabase_url is not None
        return storage_supabase.connect(self.config.supabase_url, self._supabase_key())

    @cached_property
    def authenticator(self) -> auth.JwtAuthenticator:
        from functions.adapters import auth

        config = self.config
        if config.supabase_url is None:
            return auth.JwtAuthenticator.for_local(self.local_secret)
        if config.supabase_jwt_secret is not None:
            return auth.JwtAuthenticator.for_shared_secret(
                config.supabase_url, config.supabase_jwt_secret.get_secret_value()
            )
        return auth.JwtAuthenticator.for_supabase(config.supabase_url, config.supabase_jwt_algorithm)

    @cached_property
    def chat_model(self) -> ports.ChatModel | None:
        """None if no model is configured; answers are extractive then."""
        return None if self.config.chat_model is None else self._make_chat_model(self.config.chat_model)

    def _make_chat_model(self, name: str) -> ports.ChatModel:
        from functions.adapters.models import openai_chat, openai_connection

        return openai_chat.OpenAIChatModel(
            model=name,
            api_key=self.chat_key or "none",
            base_url=self.config.openai_base_url,
            read_seconds=max(openai_connection.READ_SECONDS, self.first_word_seconds),
            total_seconds=self.first_word_seconds + openai_chat.TOTAL_SECONDS,
        )

    def find_chat_model(self, name: str | None) -> ports.ChatModel | None:
        """The chat model of this name at the same server, the configured one without a name; None if there is none."""
        if name is None or name == self.config.chat_model or self.chat_model is None:
            return self.chat_model
        with self._lock:
            return self._chat_models.setdefault(name, self._make_chat_model(name))

    @cached_property
    def first_word_seconds(self) -> float:
        """How long a reader waits for the first word of the chat model."""
        usual = NEAR_FIRST_WORD_SECONDS if is_near(self.config.openai_base_url) else FIRST_WORD_SECONDS
        return self.config.chat_first_word_seconds or usual

    def find_profile(self, chosen: str, name: str | None = None) -> models.PromptProfile:
        """The prompt that suits a chat model: what the setting `prompt_profile` says, or for `auto`, its size.

        Of a model that a notebook has chosen (`name`), the name alone tells the size.
        """
        if chosen != "auto":
            return "compact" if chosen == "compact" else "full"
        if name is not None and name != self.config.chat_model:
            return "compact" if (read_size(name) or math.inf) <= COMPACT_PARAMETERS else "full"
        return "compact" if (self.chat_model_size.find() or math.inf) <= COMPACT_PARAMETERS else "full"

    @cached_property
    def chat_model_size(self) -> ModelSize:
        return ModelSize(self.config.chat_model or "", self.config.openai_base_url, self.chat_key)

    @cached_property
    def query_model(self) -> ports.ChatModel | None:
        """The chat model with short limits and no retries, because the user waits for the query that it writes."""
        config = self.config
        if config.chat_model is None:
            return None
        from functions.adapters.models.openai_chat import OpenAIChatModel
        from functions.adapters.models.openai_connection import RetryPolicy
        from functions.core.answering import short_requests

        return OpenAIChatModel(
            model=config.chat_model,
            api_key=self.chat_key or "none",
            base_url=config.openai_base_url,
            max_tokens=short_requests.MAX_REPLY_TOKENS,
            retry_policy=RetryPolicy(attempts=1),
            read_seconds=short_requests.LONGEST_SILENCE_SECONDS,
            total_seconds=short_requests.TIME_LIMIT_SECONDS,
        )

    @cached_property
    def translator(self) -> ports.Translator | None:
        """The translator of documents; None if none is configured, or a local one on Lambda."""
        config = self.config
        if config.translation_model is None:
            return None
        if config.translation_model == LOCAL_TRANSLATOR:
            from functions.adapters.laptop.marian import MarianTranslator

            folder = config.translation_folder or config.home / "translation"
            return None if find_function_name() else MarianTranslator(folder, threads=self._model_threads)
        from functions.adapters.models.openai_translator import OpenAITranslator

        key = config.translation_api_key or config.openai_api_key
        return OpenAITranslator(
            model=config.translation_model,
            base_url=config.translation_base_url or config.openai_base_url,
            api_key=None if key is None else key.get_secret_value(),
        )

    @cached_property
    def reranker(self) -> ports.Reranker | None:
        """None if no server is configured; the fused order is final then."""
        config = self.config
        if config.rerank_base_url is None:
            return None
        from functions.adapters.models.reranker import RerankServer

        key = config.rerank_api_key.get_secret_value() if config.rerank_api_key else None
        return RerankServer(base_url=config.rerank_base_url, model=config.rerank_model, api_key=key)

    @cached_property
    def recognizer(self) -> ports.TextRecognizer | None:
        """None if Tesseract is not installed; pages without text are then reported and not read."""
        from functions.adapters import tesseract

        return tesseract.find_tesseract(self.config.ocr_languages)

    @cached_property
    def page_drawer(self) -> PageDrawer:
        from functions.core.extraction.isolation import PageDrawer

        return PageDrawer()

    @cached_property
    def holder(self) -> str:
        """The name of this process in its leases: "host:pid"."""
        return f"{socket.gethostname()}:{os.getpid()}"

    def embedder_of(self, server: models.EmbeddingServer) -> ports.Embedder:
        """The embedder of a server, one per process, because a local model takes a second to load.

        A server that is not registered yet shares its embedder with the row that it gets.
        """
        key = _key_of(server)
        with self._lock:
            if key not in self._embedders:
                self._embedders[key] = self._make_embedder(server)
            return self._embedders[key]

    def quick_embedder_of(self, server: models.EmbeddingServer) -> ports.Embedder:
        """The embedder of a server for somebody who waits: a second attempt only at once, for a broken connection."""
        if server.kind == "local":
            return self.embedder_of(server)
        key = ("quick", *_key_of(server))
        with self._lock:
            if key not in self._embedders:
                self._embedders[key] = self._make_embedder(server, is_quick=True)
            return self._embedders[key]

    def question_embedder_of(self, server: models.EmbeddingServer) -> ports.QuestionEmbedder:
        """The embedder of a server for questions, which are searched without a server that fails; see CircuitBreaker.

        A changed address or key makes another embedder, whose server has not failed yet.
        """
        if server.kind == "local":
            return self.embedder_of(server)
        embedder = self.quick_embedder_of(server)
        with self._lock:
            return self._breakers.setdefault(_key_of(server), CircuitBreaker(embedder))

    def policy(self) -> Policy:
        """The settings and embedding servers in force."""
        return self._policy.read()

    def forget_policy(self) -> None:
        """Makes the next call of `policy` read the database again."""
        self._policy.forget()

    def make_worker(self, remaining_seconds: float | None = None) -> Worker:
        """A worker for one run; without a time limit it works until its job ends."""
        from functions.adapters.postgres import search
        from functions.adapters.postgres.jobs import JobStore
        from functions.core.ingestion import translation
        from functions.core.ingestion.worker import Worker

        deadline = float("inf") if remaining_seconds is None else time.monotonic() + remaining_seconds
        recognizer = self.recognizer  # looking for Tesseract may take a second, in which a setting may change
        policy = self.policy()
        server = policy.servers[0]
        return Worker(
            store=JobStore(self.database, self.holder),
            objects=self.objects,
            server=server,
            embedder=self.embedder_of(server),
            settings=policy.settings,
            search_as=lambda owner_id: partial(search.hybrid_search, self.database, models.User.named(owner_id)),
            recognizer=recognizer,
            calibrates=True,
            translates=() if self.translator is None else translation.list_langs(policy.settings),
            remaining_seconds=lambda: deadline - time.monotonic(),
        )

    def nudge_worker(self, job_id: int) -> None:
        """Tells a worker that a job is due. If the message is lost, the sweeper finds the job within a minute."""
        if self.config.ingest_queue_url is not None:
            from functions.adapters import sqs

            sqs.send_job(self.config.ingest_queue_url, job_id)

    def nudge_translator(self, generation: int) -> None:
        """Tells a worker that a translation is due."""
        if self.config.ingest_queue_url is not None:
            from functions.adapters import sqs

            sqs.send_translation(self.config.ingest_queue_url, generation)

    def nudge_note_worker(self, job_id: int) -> None:
        """Like `nudge_worker`, unless `index_notes_with` has set a function that indexes notes in this process."""
        if self._note_worker is None:
            self.nudge_worker(job_id)
        else:
            self._note_worker(job_id)

    def index_notes_with(self, work: Callable[[int], object]) -> None:
        """Indexes notes with `work` at once, so that they need not wait while the only worker reads a long document."""
        self._note_worker = work

    def _make_embedder(self, server: models.EmbeddingServer, *, is_quick: bool = False) -> ports.Embedder:
        if server.kind == "local":
            from functions.adapters.laptop.embedder import LocalEmbedder

            return LocalEmbedder(server.model, threads=self._model_threads, limit=self._model_limit)
        from functions.adapters.models import openai_connection
        from functions.adapters.models.openai_embedder import OpenAIEmbedder

        api_key = self.key_of(server) or "none"
        embedder = OpenAIEmbedder(
            model=server.model,
            dimensions=server.dimensions,
            api_key=api_key,
            base_url=server.base_url,
            max_input_tokens=server.max_input_tokens,
            retry_policy=openai_connection.QUICK if is_quick else None,
            read_seconds=TIME_LIMIT_SECONDS if is_quick else openai_connection.READ_SECONDS,
        )
        # The token server has the model of the environment; a database may still have another one.
        if is_quick or self.config.embedding_token_url is None or server.model != self.config.embedding_model:
            return embedder
        from functions.adapters.models.token_embeddings import TokenServer

        return TokenServer(embedder, base_url=self.config.embedding_token_url, api_key=api_key)

    @property
    def chat_key(self) -> str | None:
        """The API key of the chat model's server."""
        key = self.config.openai_api_key
        return None if key is None else key.get_secret_value()

    def key_of(self, server: models.EmbeddingServer) -> str | None:
        """The API key of an embedding server, from the variable or the parameter that its row names."""
        return self.config.find_api_key(server.api_key_env)

    def _supabase_key(self) -> str:
        if self.config.supabase_secret_key is None:
            raise errors.StorageUnavailableError(self.config.describe_unset("SUPABASE_SECRET_KEY"))
        return self.config.supabase_secret_key.get_secret_value()


def _key_of(server: models.EmbeddingServer) -> tuple[object, ...]:
    """What makes two rows the same server for this process; its key does not change while a process runs."""
    return (
        server.kind,
        server.model,
        server.base_url,
        server.dimensions,
        server.max_input_tokens,
        server.api_key_env,
    )


def read_or_create_secret(path: Path) -> bytes:
    """32 random bytes from a file that only its owner can read; of several processes, the first creates it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return path.read_bytes()
    with os.fdopen(descriptor, "wb") as file:
        file.write(secrets.token_bytes(32))
    return path.read_bytes()


@lru_cache(maxsize=1)
def shared_services() -> Services:
    """The services of this process, configured when it first needs them; a failure is not kept."""
    return Services(read_config())
