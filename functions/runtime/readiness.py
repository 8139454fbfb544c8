"""Whether everything needed is there, said in words within a few seconds, whatever hangs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as OverdueError
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from functions.adapters.models.probe import probe_server
from functions.adapters.postgres import connection, jobs
from functions.core import errors, models
from functions.runtime.config import find_function_name

if TYPE_CHECKING:
    from functions.runtime.services import Services

PATIENCE_SECONDS: Final = 4.0
FRESH_SECONDS: Final = 1.0
MODELS_FRESH_SECONDS: Final = 30.0
STUCK_SECONDS: Final = 600.0
"""A job that has waited so long while no other is worked on says that there is no worker."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Check:
    """One part, and how it is."""

    ok: bool
    detail: str


class Probe:
    """Asks one part in a thread of its own, at most every `fresh_seconds` and never twice at once."""

    def __init__(self, name: str, ask: Callable[[], str], fresh_seconds: float = FRESH_SECONDS) -> None:
        self._name = name
        self._ask = ask
        self._fresh_seconds = fresh_seconds
        self._lock = threading.Lock()
        self._asked: Future[Check] | None = None
        self._asked_at = 0.0

    def start(self) -> Future[Check]:
        with self._lock:
            asked = self._asked
            if asked is None or (asked.done() and time.monotonic() - self._asked_at > self._fresh_seconds):
                asked = self._asked = Future()
                self._asked_at = time.monotonic()
                threading.Thread(target=self._run, args=(asked,), name=f"ready-{self._name}", daemon=True).start()
            return asked

    def wait(self, asked: Future[Check], seconds: float) -> Check:
        try:
            return asked.result(timeout=max(0.0, seconds))
        except OverdueError:
            return Check(False, f"No answer about the {self._name} within {PATIENCE_SECONDS:g} seconds.")

    def _run(self, asked: Future[Check]) -> None:
        try:
            asked.set_result(Check(True, self._ask()))
        except errors.IbidError as exc:
            asked.set_result(Check(False, exc.message))
        except Exception:
            _log.exception("the %s could not be asked", self._name)
            asked.set_result(Check(False, f"The {self._name} could not be asked: something is wrong on our side."))


class Readiness:
    """The parts of one installation."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._one_connection = threading.Lock()
        """A container has one connection to the database, also when several parts are asked about at once."""
        self._probes = {
            "database": Probe("database", self._describe_database),
            "storage": Probe("storage", self._describe_storage),
            "models": Probe("models", self._describe_models, MODELS_FRESH_SECONDS),
            "ingestion": Probe("ingestion", self._describe_ingestion),
        }

    def check(self) -> dict[str, Check]:
        """Every part by name, after PATIENCE_SECONDS at most."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        asked = {name: probe.start() for name, probe in self._probes.items()}
        return {name: self._probes[name].wait(asked[name], deadline - time.monotonic()) for name in asked}

    def _describe_database(self) -> str:
        with self._one_connection:
            versions = connection.ping(self.services.database)
        return f"Postgres {versions['postgres']}, pgvector {versions['pgvector']}"

    def _describe_storage(self) -> str:
        self.services.objects.info("ready/probe")
        return "The file storage answers."

    def _describe_models(self) -> str:
        """Asks each server of models that is configured; a local model has none."""
        services, config = self.services, self.services.config
        with self._one_connection:
            servers = services.policy().servers
        asked: set[tuple[str | None, str | None]] = set()
        for server in servers:
            if server.kind == "local":
                _check_local_model(server)
                continue
            key = services.key_of(server)
            if (server.base_url, key) not in asked:
                asked.add((server.base_url, key))
                probe_server(server.base_url, key, f"Embedding ({server.name})")
        if config.chat_model is not None and (config.openai_base_url, services.chat_key) not in asked:
            probe_server(config.openai_base_url, services.chat_key, f"Answers ({config.chat_model})")
        embedding = ", ".join(server.name for server in servers)
        return f"Embedding: {embedding}. Answers: {config.chat_model or 'extractive, no model configured'}."

    def _describe_ingestion(self) -> str:
        with self._one_connection:
            found = jobs.read_backlog(self.services.database)
        given_up = f" Given up within a day: {found.given_up}." if found.given_up else ""
        if found.due and not found.running and found.oldest_seconds > STUCK_SECONDS:
            minutes = round(found.oldest_seconds / 60)
            raise errors.UnavailableError(f"No worker is at work: {_count(found.due)}, the oldest for {minutes} min.")
        if not found.due:
            return f"Nothing waits, {found.running} in work.{given_up}"
        return f"{_count(found.due)}, the oldest for {found.oldest_seconds:.0f} s; {found.running} in work.{given_up}"


def _check_local_model(server: models.EmbeddingServer) -> None:
    if find_function_name() is not None:
        raise errors.ModelRejectedError(
            f"Embedding ({server.name}): functions hold no local model. Set EMBEDDING_MODEL."
        )


def _count(due: int) -> str:
    return "one document or note waits" if due == 1 else f"{due} documents or notes wait"
