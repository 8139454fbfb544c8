"""Schedule, daily: deletes conversations older than the retention, and expired counters, translations and API keys.

`GET /api/cron/retention` does so too, with the secret.
"""

from __future__ import annotations

from typing import Any

from functions.adapters.postgres import conversations, search, users
from functions.core import errors
from functions.runtime import events
from functions.runtime.logging import with_request_id
from functions.runtime.services import Services, shared_services


@with_request_id
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    if not events.is_http(event):
        return purge(shared_services())
    try:
        services = shared_services()
        if not events.has_bearer(event, services.config.cron_secret):
            return events.refuse(event)
        return events.respond(200, purge(services))
    except errors.IbidError as exc:
        return events.reject(event, exc)


def purge(services: Services) -> dict[str, int]:
    """Deletes in batches, so that a timeout keeps what is done and two simultaneous runs share the work."""
    users.purge_counters(services.database)
    users.purge_keys(services.database)
    search.purge_translations(services.database)
    return {"deleted": conversations.purge_conversations(services.database, services.policy().settings.retention_days)}
