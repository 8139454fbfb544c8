"""Schedule, daily: builds the approximate vector indexes that large libraries need."""

from __future__ import annotations

from typing import Any

from functions.adapters.postgres.embedding import vector_indexes
from functions.runtime.logging import with_request_id
from functions.runtime.services import Services, shared_services

MARGIN_SECONDS = 10
"""The build stops this long before the timeout: the database would continue for a killed function and block writers."""


@with_request_id
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return build(shared_services(), context.get_remaining_time_in_millis() / 1000 - MARGIN_SECONDS)


def build(services: Services, seconds: float | None = None) -> dict[str, Any]:
    """Builds the missing indexes; a build longer than `seconds` is rolled back and tried again the next day."""
    return {"built": vector_indexes.build_vector_indexes(services.database, seconds)}
