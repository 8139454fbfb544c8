"""The nudge that starts a worker on AWS. The job itself is in the database; a lost message is found by the sweeper."""

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

    # Somebody's request waits for this, and it may be lost: by default a queue that is down is tried for minutes.
    patience = Config(connect_timeout=2, read_timeout=3, retries={"total_max_attempts": 2, "mode": "standard"})
    return boto3.client("sqs", config=patience)


def send_job(queue_url: str, job_id: int) -> None:
    """Sends the id of a due job; a failure is logged, not raised."""
    try:
        _client().send_message(QueueUrl=queue_url, MessageBody=json.dumps({"job_id": job_id}))
    except Exception:
        _log.exception("the ingest queue did not take a message", extra={"job_id": job_id})
