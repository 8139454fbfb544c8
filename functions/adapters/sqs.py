"""Sends the queue message that starts a worker on AWS.

The job itself is in the database, so a lost message only delays it until the sweeper finds the job.
"""

from __future__ import annotations

import json
import logging
from functools import lru_cache
from typing import Any

_log = logging.getLogger(__name__)


@lru_cache(maxsize=1)
def _client() -> Any:
    import boto3  # part of the Lambda runtime, absent on a laptop
    from botocore.config import Config

    # A user's request waits for this call, and its message may be lost; the defaults would retry for minutes.
    config = Config(connect_timeout=2, read_timeout=3, retries={"total_max_attempts": 2, "mode": "standard"})
    return boto3.client("sqs", config=config)


def send_job(queue_url: str, job_id: int) -> None:
    """Sends the id of a due job. A failure is logged and not raised, because the sweeper starts the job later."""
    _send(queue_url, {"job_id": job_id})


def send_translation(queue_url: str, generation: int) -> None:
    """Sends the generation of a due translation; the sweeper does so again if the message is lost."""
    _send(queue_url, {"translation": generation})


def _send(queue_url: str, message: dict[str, int]) -> None:
    try:
        _client().send_message(QueueUrl=queue_url, MessageBody=json.dumps(message))
    except Exception:
        _log.exception("the ingest queue did not accept a message", extra=message)
