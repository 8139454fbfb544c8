"""Checks database, storage, models and ingestion within a few seconds, even if one of them hangs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as OverdueError
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from functions.adapters.models.probe import probe_embedding, probe_server
from functions.adapters.postgres import connection, jobs
from functions.core import background, errors, models
from functions.runtime import reindexing
from functions.runtime.config import find_function_name

if TYPE_CHECKING:
    from functions.runtime.services import Services

TIMEOUT_SECONDS: Final = 4.0
FRESH_SECONDS: Final = 1.0
MODELS_FRESH_SECONDS: Final = 30.0
LIBRARY_FRESH_SECONDS: Final = 5.0
STUCK_SECONDS: Final = 600.0
"""If a job has waited this long while no job is running, no worker is running."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Check:
    """The state of one part, with a sentence for the administrator."""

    ok: bool
    detail: str


class Probe:
    """Checks one part in a thread, at most every `fresh_seconds` and never twice at the same time.

    `describe` returns a sentence about the part, or raises.
    """

    def __init__(self, name: str, describe: Callable[[], str], fresh_seconds: float = FRESH_SECONDS) -> None:
        self._name = name
        self._describe = describe
        self._fresh_seconds = fresh_seconds
        self._lock = threading.Lock()
        self._latest: Future[Check] | None = None
        self._started_at = 0.0

    def start(self) -> Future[Check]:
        """The running check, the latest if it is still fresh, or else a new one."""
        with self._lock:
            check = self._latest
            if check is None or (check.done() and time.monotonic() - self._started_at > self._fresh_seconds):
                check = self._latest = Future()
                self._started_at = time.monotonic()
                threading.Thread(target=self._run, args=(check,), name=f"ready-{self._name}", daemon=True).start()
            return check

    def wait(self, check: Future[Check], seconds: float) -> Check:
        try:
            return check.result(timeout=max(0.0, seconds))
        except OverdueError:
            return Check(False, f"The check of the {self._name} took longer than {TIMEOUT_SECONDS:g} seconds.")

    def _run(self, check: Future[Check]) -> None:
        try:
            check.set_result(Check(True, self._describe()))
        except errors.IbidError as exc:
            check.set_result(Check(False, exc.message))
        except Exception:
            _log.exception("the check of the %s failed", self._name)
            check.set_result(Check(False, f"The check of the {self._name} failed. The log has the cause."))


class Readiness:
    """The checks of one installation."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._one_connection = threading.Lock()
        """Serialises the checks that use the database, because a container has only one connection."""
        self._probes = {
            "database": Probe("database", self._describe_database),
            "storage": Probe("storage", self._describe_storage),
            "models": Probe("models", self._describe_models, MODELS_FRESH_SECONDS),
            "ingestion": Probe("ingestion", self._describe_ingestion),
            "library": Probe("library", self._describe_library, LIBRARY_FRESH_SECONDS),
        }

    def check(self) -> dict[str, Check]:
        """Every check by the name of its part, after at most TIMEOUT_SECONDS."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        running = {name: probe.start() for name, probe in self._probes.items()}
        return {name: self._probes[name].wait(running[name], deadline - time.monotonic()) for name in running}

    def _describe_database(self) -> str:
        with self._one_connection:
            versions = connection.ping(self.services.database)
        return f"Postgres {versions['postgres']}, pgvector {versions['pgvector']}"

    def _describe_storage(self) -> str:
        self.services.objects.check()
        return "The file storage answers."

    def _describe_models(self) -> str:
        """Probes every model server at once; raises UnavailableError with a sentence for each that fails."""
        services, config = self.services, self.services.config
        with self._one_connection:
            policy = services.policy()
        servers = policy.servers
        probes = [partial(_probe_embedding, services, server) for server in servers]
        if config.chat_model is not None:
            what = f"Answers ({config.chat_model})"
            probes.append(partial(probe_server, config.openai_base_url, services.chat_key, what))
        faults = [fault for fault in map(_find_fault, [background.begin(probe) for probe in probes]) if fault]
        if faults:
            raise errors.UnavailableError(" ".join(faults))
        embedding = ", ".join(server.name for server in servers)
        answers = config.chat_model or "extractive, no model configured"
        translates = policy.settings.translate_documents != "off"
        return f"Embedding: {embedding}. Answers: {answers}.{_describe_translator(services) if translates else ''}"

    def _describe_library(self) -> str:
        """Says what an administrator should know about its embedding model; none of it is a failure."""
        with self._one_connection:
            return reindexing.describe(self.services).sentence

    def _describe_ingestion(self) -> str:
        with self._one_connection:
            backlog = jobs.read_backlog(self.services.database)
        given_up = f" Given up within a day: {backlog.given_up}." if backlog.given_up else ""
        if backlog.due and not backlog.running and backlog.oldest_seconds > STUCK_SECONDS:
            minutes = round(backlog.oldest_seconds / 60)
            raise errors.UnavailableError(
                f"No worker is running: {_describe_waiting(backlog.due)}, the oldest for {minutes} min. Start a worker."
            )
        running = f"{backlog.running} in progress.{given_up}"
        if not backlog.due:
            return f"No documents or notes are waiting; {running}"
        return f"{_describe_waiting(backlog.due)}, the oldest for {backlog.oldest_seconds:.0f} s; {running}"


def _probe_embedding(services: Services, server: models.EmbeddingServer) -> None:
    if server.kind != "local":
        probe_embedding(server, services.key_of(server))
    elif find_function_name() is not None:
        raise errors.ModelRejectedError(
            f"Embedding ({server.name}): functions do not contain the local model. Set EMBEDDING_MODEL."
        )


def _describe_translator(services: Services) -> str:
    """Which translator documents have; a missing one is no failure, because documents are ready without it."""
    if services.translator is None:
        return " Translation: none, because TRANSLATION_MODEL is not set; the setting translate_documents needs it."
    return f" Translation: {services.config.translation_model}."


def _find_fault(probe: Future[None]) -> str | None:
    """What an administrator should know of a probe that failed."""
    try:
        return probe.result()
    except errors.UnavailableError as exc:
        return exc.message


def _describe_waiting(due: int) -> str:
    return "1 document or note is waiting" if due == 1 else f"{due} documents or notes are waiting"
