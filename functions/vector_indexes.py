"""Schedule, daily: builds the approximate indexes that large libraries have come to need."""

from __future__ import annotations

from typing import Any

from functions.adapters.postgres import vector_indexes
from functions.runtime import wiring


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return build(wiring.services())


def build(services: wiring.Services) -> dict[str, Any]:
    """A build cut off by the time limit leaves nothing behind and is tried again the next day."""
    return {"built": vector_indexes.build_vector_indexes(services.database)}
