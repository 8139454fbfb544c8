"""Moves a library to another embedding server, while it is searched.

The server becomes the default at once. Documents and notes follow one by one, as ordinary jobs behind all others. Until
one of them has its new vectors, search finds its old ones, and questions are embedded by both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from functions.adapters.postgres import settings as stored_settings
from functions.adapters.postgres.embedding import administration, moves
from functions.core import errors, models
from functions.runtime import embedding_servers, policy

if TYPE_CHECKING:
    from functions.runtime.services import Services

BATCH_SIZE: Final = 1000
"""How many documents and notes one call of `proceed` queues, so that no transaction holds many locks."""


@dataclass(frozen=True, slots=True)
class State:
    """Which model the library is indexed with, which one the environment configures, and how far a move has come.

    `is_other` says that the environment configures something else than is in force. `servers` are all that are
    registered; `rejected` documents and notes could not be indexed because an embedding server failed.
    """

    stored: models.EmbeddingServer
    configured: models.EmbeddingServer
    is_other: bool
    move: moves.Move | None
    servers: tuple[stored_settings.StoredServer, ...] = ()
    rejected: int = 0

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
            if self.move.paused:
                told.append("Re-indexing is paused.")
        if self.rejected:
            told.append(
                f"{self.rejected} documents and notes could not be indexed because the embedding server failed. Correct"
                " it, then try again: on the page, or POST /api/rag/embedding-servers/retry."
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
        move, rejected = moves.describe_reindexing(connection), moves.count_rejected_sources(connection)
        return State(stored, configured, is_other, move, servers, rejected)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What moving the library to a server takes; `seconds` are those of embedding alone, `cost` is in US dollars.

    None where the speed of the server or its price is not known.
    """

    size: moves.Estimate
    seconds: float | None
    cost: float | None


def adopt(services: Services, user: models.User) -> State:
    """Makes the configured embedding model the default, and begins to re-index the library with it.

    When it already is the default, what could not be re-indexed is tried again. Raises what is wrong with the model;
    nothing has changed then.
    """
    state = describe(services)
    if not state.is_other and state.move is None:
        return state
    if not state.is_other:
        return move(services, state.stored.id, user)
    embedding_servers.require(services, state.configured)
    moves.adopt_embedding_server(services.database, state.configured, user)
    return _begin(services)


def estimate(services: Services, server_id: str) -> Estimate:
    """Lets the server embed a few sentences to know its speed; raises NotFoundError, and what the server raises."""
    with services.database.as_worker() as connection:
        server = stored_settings.find_server(connection, server_id).server
        size = moves.estimate_reindexing(connection, server_id)
    trial = embedding_servers.try_server(services, server)
    if trial.error is not None:
        raise trial.error
    speed, price = trial.texts_per_second, server.price_per_million_tokens
    return Estimate(size, size.passages / speed if speed else None, size.tokens / 1e6 * price if price else None)


def move(services: Services, server_id: str, user: models.User) -> State:
    """Makes a registered server the default, and begins to re-index the whole library with it.

    What could not be re-indexed, or was paused, is tried again. Raises NotFoundError, and what is wrong with the
    server; nothing has changed then.
    """
    with services.database.as_worker() as connection:
        server = stored_settings.find_server(connection, server_id).server
    embedding_servers.require(services, server)
    with services.database.as_worker() as connection:
        administration.hold_server(connection, server_id)
        moves.move_to_server(connection, server_id, user)
    return _begin(services)


def pause(services: Services, user: models.User, *, paused: bool) -> State:
    """Pauses the move of the library, or resumes it; raises ConflictError when none is under way."""
    _find_move(services)
    with services.database.as_worker() as connection:
        moves.pause_reindexing(connection, user, paused=paused)
    return _begin(services)


def retry(services: Services) -> State:
    """Queues again what an embedding server refused, of all users, after the default server has passed a trial.

    Raises what is wrong with the server.
    """
    embedding_servers.require(services, describe(services).stored)
    with services.database.as_worker() as connection:
        moves.retry_rejected_sources(connection)
    return describe(services)


def cancel(services: Services, user: models.User) -> State:
    """Ends the move of the library, of which each document keeps the vectors it has; raises ConflictError likewise."""
    _find_move(services)
    with services.database.as_worker() as connection:
        moves.cancel_reindexing(connection, user)
    services.forget_policy()
    return describe(services)


def _find_move(services: Services) -> moves.Move:
    with services.database.as_worker() as connection:
        found = moves.describe_reindexing(connection)
    if found is None:
        raise errors.ConflictError("The library is not being re-indexed.")
    return found


def _begin(services: Services) -> State:
    services.forget_policy()
    proceed(services)
    return describe(services)


def proceed(services: Services) -> int:
    """Queues the next documents and notes of a move, and ends it when none is left; does nothing without a move.

    Nothing moves before every process has read which server is the default, and has had as long again to finish what
    it was doing. Returns how many were queued.
    """
    return moves.continue_reindexing(services.database, BATCH_SIZE, 2 * policy.POLICY_SECONDS)
