"""Schedule, daily: builds the approximate indexes that large libraries have come to need."""

from __future__ import annotations

from typing import Any

from functions.adapters.postgres import vector_indexes
from functions.runtime.logging import with_request_id
from functions.runtime.services import Services, shared_services

MARGIN_SECONDS = 10
"""A killed function cannot stop the database, which would go on building and lock out writers for nothing."""


@with_request_id
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return build(shared_services(), context.get_remaining_time_in_millis() / 1000 - MARGIN_SECONDS)


def build(services: Services, seconds: float | None = None) -> dict[str, Any]:
    """A build that takes longer than `seconds` is given up, leaves nothing behind and is tried again the next day."""
    return {"built": vector_indexes.build_vector_indexes(services.database, seconds)}
