"""What administrators do with embedding servers: try, add, change and remove them, and embed a text to look at."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from functions.adapters.models.prefixes import Prefixes, find_prefixes
from functions.adapters.postgres import settings as stored_settings
from functions.adapters.postgres.embedding import administration, moves
from functions.core import errors, models
from functions.core.retrieval.neutral_sentences import read_neutral_sentences
from functions.runtime import policy
from functions.runtime.config import find_function_name

if TYPE_CHECKING:
    from functions.adapters.postgres.connection import Connection
    from functions.runtime.services import Services

Choice = Literal["reindex", "words"]
"""What happens to the documents and notes of a server that is switched off or gets other vectors."""
TRIAL_TEXTS: Final = 8
FIRST_GUESS: Final = 1536
"""The dimensions asked for where nobody has said how many: every model that shortens its vectors has as many."""
MAX_DIMENSIONS: Final = 4000
_OF_VECTORS: Final = ("kind", "model", "dimensions", "passage_prefix")
_OF_REPLIES: Final = frozenset({*_OF_VECTORS, "base_url", "api_key_env", "query_prefix"})
"""Columns on which the vectors depend, and those on which depends whether a server answers at all."""
SAMPLES: Final = 4
LEAST_COSINE: Final = 0.5
"""Of a passage and its stored vector, which also knows its title: vectors of two models have a cosine near 0."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of embedding a few sentences; `error` says in words why a server does not work.

    `suggested` are the prefixes that the model's card asks for.
    """

    dimensions: int | None
    milliseconds: float
    texts_per_second: float | None
    suggested: Prefixes
    error: errors.IbidError | None = None


def try_server(services: Services, server: models.EmbeddingServer) -> Trial:
    """Lets a server embed some sentences as passages; never raises what the server does."""
    sentences = [server.passage_prefix + pair.en for pair in read_neutral_sentences()[:TRIAL_TEXTS]]
    suggested = find_prefixes(server.model)
    started = time.perf_counter()
    try:
        _check_place(server)
        vectors = services.quick_embedder_of(server).embed(sentences)
    except errors.IbidError as exc:
        returned = exc.details.get("returned_dimensions")
        if exc.details.get("status") in (401, 403) and (unset := _describe_unset_key(services, server)):
            exc = errors.ModelRejectedError(unset)
        return Trial(returned, (time.perf_counter() - started) * 1000, None, suggested, exc)
    seconds, returned = time.perf_counter() - started, len(vectors[0])
    wrong = None if returned == server.dimensions else _describe_other_size(server, returned)
    return Trial(returned, seconds * 1000, len(sentences) / seconds, suggested, wrong)


def add(
    services: Services, server: models.EmbeddingServer, user: models.User, *, finds_size: bool, is_default: bool
) -> str:
    """Registers a server that works, and returns its id; with `finds_size` it gets as many dimensions as it returns.

    Raises what is wrong with the server, and ConflictError for a name that another one has.
    """
    if server.kind == "local":
        server = replace(_find_local(server.model), name=server.name)
    if unset := _describe_unset_key(services, server):
        raise errors.InvalidInputError(unset)
    server = require(services, server, finds_size=finds_size)
    with services.database.as_worker() as connection:
        server_id = administration.save_server(connection, server, user)
        if is_default:
            administration.make_default(connection, server_id, user)
    services.forget_policy()
    return server_id


def change(
    services: Services,
    server_id: str,
    changes: Mapping[str, Any],
    user: models.User,
    *,
    is_default: bool = False,
    active: bool | None = None,
    documents: Choice | None = None,
) -> str:
    """Changes a server that works with the changes, makes it the default, or switches it on or off; returns its id.

    Other vectors than those of its documents get a server of their own, with another id, to which the library moves.
    Raises ServerInUseError where documents or notes need a `documents` that is not given, or that is not possible.
    """
    if active is False:
        _switch_off(services, server_id, user, documents, is_default=is_default)
        return server_id
    with services.database.as_worker() as connection:
        row = stored_settings.find_server(connection, server_id)
    server = _apply(row.server, changes)
    if "api_key_env" in changes and (unset := _describe_unset_key(services, server)):
        raise errors.InvalidInputError(unset)
    if changes.keys() & _OF_REPLIES or is_default or active:
        require(services, server)
    if (keeps_vectors := _gives_same_vectors(server, row.server)) and server.base_url != row.server.base_url:
        _check_same_vectors(services, server)
    with services.database.as_worker() as connection:
        row = administration.hold_server(connection, server_id, tried=row)
        if not keeps_vectors:
            server_id = _replace(connection, row, server, user, documents)
        elif changes:
            administration.save_server(connection, server, user)
        if is_default:
            administration.make_default(connection, server_id, user)
        elif active:
            administration.switch_on(connection, row, user)
        if changes or is_default:
            moves.retry_rejected_sources(connection)
    services.forget_policy()
    return server_id


def remove(services: Services, server_id: str, user: models.User) -> None:
    """Raises ConflictError for the default server, and ServerInUseError for one that holds documents or notes."""
    with services.database.as_worker() as connection:
        row = administration.hold_server(connection, server_id)
        _refuse_default(row)
        administration.remove_server(connection, row, user)
    services.forget_policy()


def embed(services: Services, server_id: str | None, texts: Sequence[str], *, as_query: bool) -> dict[str, Any]:
    """The vectors of texts with the prefix of a question or a passage, by the default server unless another is named.

    Raises what the server raises.
    """
    with services.database.as_worker() as connection:
        rows = stored_settings.describe_servers(connection)
        server = stored_settings.find_server(connection, server_id).server if server_id else rows[0].server
    prefix = server.query_prefix if as_query else server.passage_prefix
    started = time.perf_counter()
    vectors = services.quick_embedder_of(server).embed([prefix + text for text in texts])
    return {
        "server": {"id": server.id, "name": server.name, "model": server.model},
        "prefix": prefix,
        "dimensions": len(vectors[0]),
        "milliseconds": round((time.perf_counter() - started) * 1000, 1),
        "embeddings": [[round(float(value), 7) for value in vector] for vector in vectors],
    }


def require(services: Services, server: models.EmbeddingServer, *, finds_size: bool = False) -> models.EmbeddingServer:
    """The server, if it works, with `finds_size` of as many dimensions as it returns; raises what is wrong with it."""
    trial = try_server(services, server)
    if finds_size and trial.error is not None and trial.dimensions is not None:
        if trial.dimensions > MAX_DIMENSIONS:
            raise errors.ModelRejectedError(
                f"The server returns {trial.dimensions} dimensions, and a vector has at most {MAX_DIMENSIONS} here."
                " Choose another model, or dimensions that this one shortens its vectors to."
            )
        server = replace(server, dimensions=trial.dimensions)
        trial = try_server(services, server)
    if trial.error is not None:
        raise trial.error
    return server


def _describe_other_size(server: models.EmbeddingServer, returned: int) -> errors.ModelRejectedError:
    """What is wrong with the dimensions of a local server; embedders of other servers check theirs themselves."""
    return errors.ModelRejectedError(
        f"{server.model} has {returned} dimensions, not {server.dimensions}.", returned_dimensions=returned
    )


def _check_place(server: models.EmbeddingServer) -> None:
    if server.kind == "local" and find_function_name() is not None:
        raise errors.ModelRejectedError("Functions do not contain the local models. Choose a server with an address.")


def _describe_unset_key(services: Services, server: models.EmbeddingServer) -> str | None:
    """What to set where the variable of the key is not set; a server without keys does not mind."""
    if server.api_key_env is None or services.key_of(server) is not None:
        return None
    return f"The environment variable {server.api_key_env} is not set. Set it first."


def _find_local(model: str) -> models.EmbeddingServer:
    """The local server of a model, which may have the name of its author before its own."""
    for name, server in policy.LOCAL_SERVERS.items():
        if model in (name, server.model):
            return server
    raise errors.InvalidInputError(f"There is no local model {model}. There are {' and '.join(policy.LOCAL_SERVERS)}.")


def _apply(server: models.EmbeddingServer, changes: Mapping[str, Any]) -> models.EmbeddingServer:
    """The server with the changes; prefixes that are those of its model become those of its new model."""
    if server.kind == "local" and "model" in changes:
        local = _find_local(changes["model"])
        server = replace(local, id=server.id, name=server.name)
        changes = {**changes, "model": local.model}
    elif "model" in changes and find_prefixes(server.model) == (server.query_prefix, server.passage_prefix):
        query, passage = find_prefixes(changes["model"])
        changes = {"query_prefix": query, "passage_prefix": passage, **changes}
    return replace(server, **changes, managed=True)


def _gives_same_vectors(one: models.EmbeddingServer, other: models.EmbeddingServer) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in _OF_VECTORS)


def _check_same_vectors(services: Services, server: models.EmbeddingServer) -> None:
    """Raises ConflictError where an address has another model than the one that indexed the server's documents."""
    from functions.adapters.postgres.jobs import JobStore

    samples = JobStore(services.database, services.holder).sample_passages(server, SAMPLES)
    if not samples:
        return
    vectors = services.quick_embedder_of(server).embed([server.passage_prefix + sample.text for sample in samples])
    pairs = zip(vectors, (sample.vector for sample in samples), strict=True)
    cosines = [sum(a * b for a, b in zip(given, stored, strict=True)) for given, stored in pairs]
    if sum(cosines) / len(cosines) < LEAST_COSINE:
        raise errors.ConflictError(
            "The server at this address gives other vectors than those of its documents. Add it as a server of its own,"
            " and re-index the library with that."
        )


def _replace(
    connection: Connection,
    row: stored_settings.StoredServer,
    server: models.EmbeddingServer,
    user: models.User,
    documents: Choice | None,
) -> str:
    """Adds the changed server in place of the row, because a worker may be indexing with that at this moment."""
    holds = row.documents + row.notes > 0
    if holds and (documents != "reindex" or not row.is_default):
        raise errors.ServerInUseError(
            f"{_count(row)} have the vectors of {row.server.name}, which would change. For the default server, send"
            ' "documents": "reindex" to index the whole library again; otherwise add another server.',
            documents=row.documents,
            notes=row.notes,
        )
    changed = replace(server, id="", similarity_scales={}, calibrated_passages=None)
    administration.set_aside(connection, row)
    server_id = administration.save_server(connection, changed, user)
    if holds:
        moves.move_to_server(connection, server_id, user)
    elif row.is_default:
        administration.make_default(connection, server_id, user)
    return server_id


def _switch_off(
    services: Services, server_id: str, user: models.User, documents: Choice | None, *, is_default: bool
) -> None:
    if is_default:
        raise errors.InvalidInputError("A server that is switched off cannot be the default.")
    with services.database.as_worker() as connection:
        row = administration.hold_server(connection, server_id)
        _refuse_default(row)
        holds = row.documents + row.notes > 0
        if holds and documents is None:
            raise errors.ServerInUseError(
                f'{_count(row)} have the vectors of {row.server.name}. Send "documents": "reindex" to index them again'
                ' with the default server, or "words" to let questions find them by their words alone.',
                documents=row.documents,
                notes=row.notes,
            )
        administration.switch_off(connection, row, user, reindexes=holds and documents == "reindex")
    services.forget_policy()


def _refuse_default(row: stored_settings.StoredServer) -> None:
    if row.is_default:
        raise errors.ConflictError(f"{row.server.name} is the default server. Make another one the default first.")


def _count(row: stored_settings.StoredServer) -> str:
    return f"{row.documents} documents and {row.notes} notes"
