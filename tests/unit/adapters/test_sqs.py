"""The nudge through SQS, with the real client: it arrives, or fails quickly without an error."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator

import pytest

from functions.adapters import sqs
from tests.support.fakes.json_server import Body, FakeServer, Fault

QUEUE = "https://sqs.eu-central-1.amazonaws.com/123456789012/ibid-dev-ingest"


class Queue(FakeServer):
    """A queue that accepts every message."""

    def answer(self, route: str, body: Body) -> Fault:
        return Fault(body={"MessageId": "1"}, headers={"Content-Type": "application/x-amz-json-1.0"})


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Iterator[Queue]:
    with Queue() as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", running.base_url)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
        sqs._client.cache_clear()
        yield running
        sqs._client().close()
        sqs._client.cache_clear()


def test_a_nudge_sends_the_id_of_its_job(queue: Queue) -> None:
    """ING-10"""
    for job_id in (7, 8):
        sqs.send_job(QUEUE, job_id)
    bodies = [request["body"] for request in queue.requests]
    assert [(body["QueueUrl"], json.loads(body["MessageBody"])) for body in bodies] == [
        (QUEUE, {"job_id": 7}),
        (QUEUE, {"job_id": 8}),
    ]


def test_a_nudge_sends_the_generation_of_its_translation(queue: Queue) -> None:
    """LANG-2"""
    sqs.send_translation(QUEUE, 7)
    assert [json.loads(request["body"]["MessageBody"]) for request in queue.requests] == [{"translation": 7}]


@pytest.mark.parametrize(
    "fault",
    [Fault(403, body={"__type": "AccessDeniedException"}), Fault(500), Fault(delay=4)],
    ids=["denied", "broken", "slow"],
)
def test_a_failing_queue_costs_seconds_at_most_and_is_logged(
    queue: Queue, fault: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "functions")
    queue.script(*[fault] * 2)
    started = time.monotonic()
    sqs.send_job(QUEUE, 7)
    assert time.monotonic() - started < 10
    assert len(queue.requests) <= 2
    assert [(record.message, vars(record)["job_id"]) for record in caplog.records if record.levelname == "ERROR"] == [
        ("the ingest queue did not accept a message", 7)
    ]
