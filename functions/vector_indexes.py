"""Schedule, daily: writes the posting lists and builds the vector indexes that large libraries need."""

from __future__ import annotations

import time
from typing import Any

from functions.adapters.postgres import search
from functions.adapters.postgres.embedding import vector_indexes
from functions.runtime.logging import with_request_id
from functions.runtime.services import Services, shared_services

MARGIN_SECONDS = 10
"""The build stops this long before the timeout: the database would continue for a killed function and block writers."""


@with_request_id
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return build(shared_services(), context.get_remaining_time_in_millis() / 1000 - MARGIN_SECONDS)


def build(services: Services, seconds: float | None = None) -> dict[str, Any]:
    """Returns the names of the vector indexes that were built, and the passages of each segment of posting lists.

    A vector index that takes longer than the rest of `seconds` is rolled back and tried again the next day. Posting
    lists come first, and take at most half of them.
    """
    started = time.monotonic()
    segments = search.renew_segments(services.database, None if seconds is None else seconds / 2)
    rest = None if seconds is None else seconds - (time.monotonic() - started)
    return {"built": vector_indexes.build_vector_indexes(services.database, rest), "segments": segments}
