"""Worker: one message, one job, for as long as this invocation lasts; what is left goes back to the queue."""

from __future__ import annotations

import logging
from typing import Any

from functions.core.extraction import scratch
from functions.runtime import events, metrics
from functions.runtime.logging import with_request_id
from functions.runtime.services import shared_services

_log = logging.getLogger(__name__)


@with_request_id
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answers with the messages to deliver again (`ReportBatchItemFailures`); the job itself keeps its own state."""
    scratch.remove_lost_folders()  # of an invocation that was killed here
    failures = []
    for record in event["Records"]:
        try:
            ingest_record(record, context)
        except Exception:
            _log.exception("message not processed", extra={"sqs_message": record["messageId"]})
            failures.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failures}


def ingest_record(record: dict[str, Any], context: Any) -> None:
    services = shared_services()
    job_id = events.read_job_id(record)
    worker = services.make_worker(context.get_remaining_time_in_millis() / 1000)
    if not worker.has_time():  # an earlier message of the batch took it
        services.nudge_worker(job_id)
        return
    outcome = worker.ingest_next(job_id)
    if outcome is None:
        return  # done, or in another worker's hands
    if outcome.status != "queued":
        metrics.record_job(outcome.status)
    _log.info("ai_index_job", extra={"job_id": job_id, "status": outcome.status, "code": outcome.code})
    if outcome.again:
        services.nudge_worker(job_id)
