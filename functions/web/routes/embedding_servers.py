"""The embedding model that the library is indexed with, and the move to another one; for administrators."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter

from functions.core import models
from functions.runtime import reindexing
from functions.web.deps import Admin, ServicesDep

router = APIRouter(prefix="/api/rag/embedding-servers")


@router.get("")
def get_servers(_: Admin, services: ServicesDep) -> dict[str, Any]:
    return _describe(reindexing.describe(services))


@router.post("/adopt")
def adopt_server(user: Admin, services: ServicesDep) -> dict[str, Any]:
    """Makes the model that the environment configures the default, and re-indexes the library of every user with it."""
    return _describe(reindexing.adopt(services, user))


def _describe(state: reindexing.State) -> dict[str, Any]:
    return {
        "stored": _describe_server(state.stored),
        "configured": _describe_server(state.configured),
        "can_adopt": state.is_other,
        "reindexing": None if state.move is None else asdict(state.move),
        "words_alone": [{"name": row.server.name, "sources": row.documents + row.notes} for row in state.words_alone],
        "detail": state.sentence,
    }


def _describe_server(server: models.EmbeddingServer) -> dict[str, Any]:
    return {"name": server.name, "model": server.model, "dimensions": server.dimensions}
