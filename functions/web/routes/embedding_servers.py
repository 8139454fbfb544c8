"""The embedding servers of an installation, and the move of its library from one to another; for administrators."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from fastapi import APIRouter, Response

from functions.adapters.models.prefixes import find_prefixes
from functions.adapters.postgres import settings as stored_settings
from functions.core import models
from functions.runtime import embedding_servers, reindexing
from functions.runtime.services import Services
from functions.web.deps import Admin, ServicesDep, read_id
from functions.web.schemas import embedding_servers as bodies
from functions.web.schemas import server_results as results

router = APIRouter(prefix="/api/rag")

_PATH: Final = "/embedding-servers"
_WHAT: Final = "embedding server"
_PUBLIC: Final = (
    "id",
    "name",
    "kind",
    "model",
    "dimensions",
    "api_key_env",
    "max_input_tokens",
    "languages",
    "batch_size",
    "token_level",
    "query_prefix",
    "passage_prefix",
    "price_per_million_tokens",
    "managed",
)


@router.get(_PATH, response_model=results.Servers)
def get_servers(_: Admin, services: ServicesDep) -> dict[str, Any]:
    return _describe(services, reindexing.describe(services))


@router.post(_PATH, status_code=201, response_model=results.Server, responses={409: {}})
def add_server(body: bodies.NewServer, user: Admin, services: ServicesDep) -> dict[str, Any]:
    """Registers a server that embeds a few sentences; what is wrong with it is the error otherwise."""
    known = find_prefixes(body.model)
    server = models.EmbeddingServer(
        id="",
        name=body.name,
        kind=body.kind,
        model=body.model,
        dimensions=body.dimensions or embedding_servers.FIRST_GUESS,
        max_input_tokens=body.max_input_tokens,
        languages=body.languages,
        base_url=body.base_url,
        api_key_env=body.api_key_env,
        batch_size=body.batch_size,
        query_prefix=known.query if body.query_prefix is None else body.query_prefix,
        passage_prefix=known.passage if body.passage_prefix is None else body.passage_prefix,
        price_per_million_tokens=body.price_per_million_tokens,
    )
    server_id = embedding_servers.add(
        services, server, user, finds_size=body.dimensions is None, is_default=body.is_default
    )
    return _find(services, server_id)


@router.post(f"{_PATH}/adopt", response_model=results.Servers, responses={409: {}})
def adopt_server(user: Admin, services: ServicesDep) -> dict[str, Any]:
    """Makes the model that the environment configures the default, and re-indexes the library of every user with it."""
    return _describe(services, reindexing.adopt(services, user))


@router.post(f"{_PATH}/retry", response_model=results.Servers)
def retry_sources(_: Admin, services: ServicesDep) -> dict[str, Any]:
    """Indexes again what an embedding server refused, once the default server works."""
    return _describe(services, reindexing.retry(services))


@router.post(f"{_PATH}/reindexing/{{action}}", response_model=results.Servers, responses={409: {}})
def steer_move(action: Literal["pause", "resume", "cancel"], user: Admin, services: ServicesDep) -> dict[str, Any]:
    """Steers the move of the library; what a worker is moving at this moment still moves."""
    if action == "cancel":
        return _describe(services, reindexing.cancel(services, user))
    return _describe(services, reindexing.pause(services, user, paused=action == "pause"))


@router.get(f"{_PATH}/{{server_id}}/reindex", response_model=results.Estimate)
def estimate_move(server_id: str, _: Admin, services: ServicesDep) -> dict[str, Any]:
    """What moving the whole library to this server takes."""
    found = reindexing.estimate(services, read_id(server_id, _WHAT))
    return {
        **asdict(found.size),
        "embedding_seconds": None if found.seconds is None else round(found.seconds, 1),
        "cost_usd": None if found.cost is None else round(found.cost, 6),
    }


@router.post(f"{_PATH}/{{server_id}}/reindex", response_model=results.Servers, responses={409: {}})
def begin_move(server_id: str, user: Admin, services: ServicesDep) -> dict[str, Any]:
    """Makes this server the default, and re-indexes the library of every user with it in the background."""
    return _describe(services, reindexing.move(services, read_id(server_id, _WHAT), user))


@router.patch(f"{_PATH}/{{server_id}}", response_model=results.Server, responses={409: {}})
def change_server(server_id: str, body: bodies.ServerChanges, user: Admin, services: ServicesDep) -> dict[str, Any]:
    changed_id = embedding_servers.change(
        services,
        read_id(server_id, _WHAT),
        body.columns(),
        user,
        is_default=bool(body.is_default),
        active=body.active,
        documents=body.documents,
    )
    return _find(services, changed_id)


@router.delete(f"{_PATH}/{{server_id}}", status_code=204, responses={409: {}})
def remove_server(server_id: str, user: Admin, services: ServicesDep) -> Response:
    embedding_servers.remove(services, read_id(server_id, _WHAT), user)
    return Response(status_code=204)


@router.post(f"{_PATH}/{{server_id}}/test", response_model=results.Trial)
def try_server(server_id: str, _: Admin, services: ServicesDep) -> dict[str, Any]:
    """What the server returns for a few sentences now, or in words why it does not."""
    with services.database.as_worker() as connection:
        server = stored_settings.find_server(connection, read_id(server_id, _WHAT)).server
    trial = embedding_servers.try_server(services, server)
    return {
        "ok": trial.error is None,
        "error": None if trial.error is None else {"code": trial.error.code, "detail": trial.error.message},
        "dimensions": {"configured": server.dimensions, "returned": trial.dimensions},
        "prefixes": {
            "configured": {"query": server.query_prefix, "passage": server.passage_prefix},
            "suggested": trial.suggested._asdict(),
        },
        "milliseconds": round(trial.milliseconds, 1),
        "texts_per_second": None if trial.texts_per_second is None else round(trial.texts_per_second, 1),
    }


@router.post("/embed", response_model=results.Embeddings, responses={404: {}, 409: {}})
def embed_texts(body: bodies.TextsToEmbed, _: Admin, services: ServicesDep) -> dict[str, Any]:
    """The vectors of texts, to look at."""
    server_id = None if body.server_id is None else str(body.server_id)
    return embedding_servers.embed(services, server_id, body.texts, as_query=body.kind == "query")


def _find(services: Services, server_id: str) -> dict[str, Any]:
    with services.database.as_worker() as connection:
        return _describe_row(services, stored_settings.find_server(connection, server_id))


def _describe(services: Services, state: reindexing.State) -> dict[str, Any]:
    return {
        "servers": [_describe_row(services, row) for row in state.servers],
        "stored": _describe_server(state.stored),
        "configured": _describe_server(state.configured),
        "can_adopt": state.is_other,
        "reindexing": None if state.move is None else asdict(state.move),
        "words_alone": [{"name": row.server.name, "sources": row.documents + row.notes} for row in state.words_alone],
        "rejected": state.rejected,
        "detail": state.sentence,
    }


def _describe_row(services: Services, row: stored_settings.StoredServer) -> dict[str, Any]:
    return {
        **{name: getattr(row.server, name) for name in _PUBLIC},
        "base_url": _hide_user(row.server.base_url),
        "key_is_set": services.key_of(row.server) is not None,
        "is_default": row.is_default,
        "active": row.active,
        "is_leaving": row.is_leaving and row.documents + row.notes > 0,
        "documents": row.documents,
        "notes": row.notes,
    }


def _hide_user(base_url: str | None) -> str | None:
    """The address without a name and a password, which one from the environment may have."""
    if base_url is None:
        return None
    try:
        parts = urlsplit(base_url)
    except ValueError:  # it is no address, and no request goes there
        return base_url.rpartition("@")[2]
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _describe_server(server: models.EmbeddingServer) -> dict[str, Any]:
    return {"name": server.name, "model": server.model, "dimensions": server.dimensions}
