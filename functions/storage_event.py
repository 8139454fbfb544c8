"""Trigger (database webhook): starts a worker for a stored object, whose job a database trigger has queued."""

from __future__ import annotations

from typing import Any

from functions.adapters.postgres.jobs import JobStore
from functions.core import errors
from functions.runtime import events
from functions.runtime.logging import with_request_id
from functions.runtime.services import shared_services


@with_request_id
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    try:
        services = shared_services()
        if not events.has_secret(event, "x-webhook-secret", services.config.webhook_secret):
            return events.refuse(event)
        stored = events.read_stored_object(event)
        if stored is None:
            return events.respond(202, {"job_id": None})
        job_id = JobStore(services.database).enqueue_stored_object(stored.path, stored.version, stored.size)
    except errors.IbidError as exc:
        return events.reject(event, exc)
    if job_id is not None:
        services.nudge_worker(job_id)
    return events.respond(202, {"job_id": job_id})
