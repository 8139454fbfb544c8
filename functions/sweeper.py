"""Schedule, every minute: repairs the queue after crashes and lost messages, and starts workers for due jobs."""

from __future__ import annotations

import logging
from typing import Any

from functions.adapters.postgres import jobs
from functions.adapters.postgres.jobs import JobStore
from functions.runtime import metrics, reindexing, translating
from functions.runtime.logging import with_request_id
from functions.runtime.services import Services, shared_services

_log = logging.getLogger(__name__)


@with_request_id
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return sweep(shared_services())


def sweep(services: Services) -> dict[str, Any]:
    """Returns what was repaired and which jobs are due; logs the backlog, on which alarms are based."""
    if metrics.is_embedded():
        backlog = jobs.read_backlog(services.database)
        metrics.record_backlog(backlog.due, backlog.oldest_seconds, backlog.given_up)
    report = JobStore(services.database).sweep_ingest_jobs(services.policy().settings.max_attempts)
    metrics.record_job("dead", report["dead"])
    reindexing.proceed(services)
    translating.queue(services)
    for job_id in report["due"]:
        services.nudge_worker(job_id)
    if report["objects"]:
        services.objects.remove(report["objects"])
    if any(report.values()):
        counts = {name: len(report[name]) for name in ("due", "objects")}
        _log.info("swept", extra={"report": report | counts})
    return report
