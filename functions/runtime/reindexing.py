"""Moves a library to the embedding model that the environment configures, while it is searched.

The model becomes the default at once. Documents and notes follow one by one, as ordinary jobs behind all others. Until
one of them has its new vectors, search finds its old ones, and questions are embedded by both models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from functions.adapters.postgres import settings as stored_settings
from functions.core import models
from functions.runtime import policy

if TYPE_CHECKING:
    from functions.runtime.services import Services

BATCH_SIZE: Final = 1000
"""How many documents and notes one call of `proceed` queues, so that no transaction holds many locks."""


@dataclass(frozen=True, slots=True)
class State:
    """Which model the library is indexed with, which one the environment configures, and how far a move has come.

    `is_other` says that the environment configures something else than is in force. `servers` are all that are
    registered.
    """

    stored: models.EmbeddingServer
    configured: models.EmbeddingServer
    is_other: bool
    move: stored_settings.Move | None
    servers: tuple[stored_settings.StoredServer, ...] = ()

    @property
    def words_alone(self) -> tuple[stored_settings.StoredServer, ...]:
        """The servers that are switched off and hold documents or notes, which only their words find."""
        return tuple(
            row for row in self.servers if not row.active and not row.is_leaving and row.documents + row.notes > 0
        )

    @property
    def sentence(self) -> str:
        """The state in words, for administrators."""
        told = []
        if self.move is not None:
            total = self.move.done + self.move.remaining
            told.append(f"{self.move.done} of {total} documents and notes are re-indexed with {self.stored.name}.")
            if self.move.failed:
                told.append(
                    f"{self.move.failed} could not be, and keep their old vectors; re-indexing tries them again."
                )
        told += [_describe_words_alone(row) for row in self.words_alone]
        if self.is_other:
            told.append(policy.describe_other_model(self.configured, self.stored))
        return " ".join(told) or f"Documents and notes are indexed with {self.stored.name}."


def _describe_words_alone(row: stored_settings.StoredServer) -> str:
    return (
        f"{row.documents + row.notes} documents and notes are found by their words alone, because {row.server.name},"
        " which indexed them, is switched off. Switch it on, or re-index the library."
    )


def describe(services: Services) -> State:
    configured = policy.configured_server(services.config)
    with services.database.as_worker() as connection:
        servers = tuple(stored_settings.describe_servers(connection))
        stored = next((row.server for row in servers if row.is_default), configured)
        is_other = policy.differs(services.config, stored)
        return State(stored, configured, is_other, stored_settings.describe_reindexing(connection), servers)


def adopt(services: Services, user: models.User) -> State:
    """Makes the configured embedding model the default, and begins to re-index the library with it.

    When it already is the default, what could not be re-indexed is tried again. Raises what the model raises if it does
    not embed a word; nothing has changed then.
    """
    state = describe(services)
    if not state.is_other and state.move is None:
        return state
    configured = state.configured
    services.embedder_of(configured).embed([configured.query_prefix + "ready"])
    stored_settings.adopt_embedding_server(services.database, configured, user)
    services.forget_policy()
    proceed(services)
    return describe(services)


def proceed(services: Services) -> int:
    """Queues the next documents and notes of a move, and ends it when none is left; does nothing without a move.

    Nothing moves before every process has read which server is the default, and has had as long again to finish what
    it was doing. Returns how many were queued.
    """
    return stored_settings.continue_reindexing(services.database, BATCH_SIZE, 2 * policy.POLICY_SECONDS)
