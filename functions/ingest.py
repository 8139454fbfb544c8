"""Worker: runs the job or translation of each queue message until the invocation ends, and queues the rest again."""

from __future__ import annotations

import logging
from typing import Any

from functions.core.extraction import scratch
from functions.runtime import events, metrics, translating
from functions.runtime.logging import with_request_id
from functions.runtime.services import shared_services

_log = logging.getLogger(__name__)


@with_request_id
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Returns the messages to deliver again (`ReportBatchItemFailures`); the state of a job is in the database."""
    scratch.remove_lost_folders()  # left by an invocation that was killed in this container
    failures = []
    for record in event["Records"]:
        try:
            ingest_record(record, context)
        except Exception:
            _log.exception("a message could not be processed", extra={"sqs_message": record["messageId"]})
            failures.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failures}


def ingest_record(record: dict[str, Any], context: Any) -> None:
    """Runs the job that a message names; raises InvalidInputError when it names none."""
    services = shared_services()
    if (generation := events.read_translation(record)) is not None:
        outcome = translating.translate_next(services, generation, context.get_remaining_time_in_millis() / 1000)
        if outcome is not None and outcome.again:
            services.nudge_translator(generation)
        return
    job_id = events.read_job_id(record)
    worker = services.make_worker(context.get_remaining_time_in_millis() / 1000)
    if not worker.has_time():  # an earlier message of the batch used the time up
        services.nudge_worker(job_id)
        return
    done = worker.ingest_next(job_id)
    if done is None:
        return  # the job is finished, or another worker holds its lease
    if done.status != "queued":
        metrics.record_job(done.status)
    _log.info("ai_index_job", extra={"job_id": done.job_id, "status": done.status, "code": done.code})
    if done.again:
        services.nudge_worker(done.job_id)
    if done.job_id != job_id:  # something more urgent was done first
        services.nudge_worker(job_id)
