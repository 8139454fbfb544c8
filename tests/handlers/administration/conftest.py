"""An installation with two embedding servers within reach, and what an administrator does with them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from functions.runtime import policy
from functions.runtime.services import Services, shared_services
from tests.handlers import events
from tests.handlers.conftest import QUEUE, Caller
from tests.handlers.events import Answer, Json
from tests.support.fakes.model_server import FakeModelServer

ROUTE = "/api/rag/embedding-servers"
FACT = b"The boiler burns wood chips in winter."


@pytest.fixture
def model() -> Iterator[FakeModelServer]:
    with FakeModelServer(dimensions=64) as running:
        yield running


@pytest.fixture
def other() -> Iterator[FakeModelServer]:
    with FakeModelServer(dimensions=96) as running:
        yield running


@pytest.fixture
def caller(database: str, tmp_path: Path, model: FakeModelServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Caller]:
    """An administrator of an installation whose environment describes `fake-model`."""
    variables = {
        "DATABASE_URL": database,
        "IBID_HOME": str(tmp_path),
        "INGEST_QUEUE_URL": QUEUE,
        "LOG_LEVEL": "CRITICAL",
        "EMBEDDING_MODEL": "fake-model",
        "EMBEDDING_DIMENSIONS": "64",
        "OPENAI_BASE_URL": model.base_url,
        "OTHER_API_KEY": "sk-other",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(policy, "POLICY_SECONDS", 0.0)
    shared_services.cache_clear()
    services: Services = shared_services()
    services.policy()
    yield Caller(services, admin=True)
    services.database.close()
    shared_services.cache_clear()


def listed(caller: Caller) -> dict[str, Json]:
    """Every server by its name."""
    return {row["name"]: row for row in caller.call("settings", "GET", ROUTE).json["servers"]}


def add(caller: Caller, server: FakeModelServer, name: str = "other", **fields: Any) -> Answer:
    body = {"name": name, "model": f"{name}-model", "base_url": server.base_url} | fields
    return caller.call("settings", "POST", ROUTE, body)


def change(caller: Caller, server: str, /, **fields: Any) -> Answer:
    return caller.call("settings", "PATCH", f"{ROUTE}/{listed(caller)[server]['id']}", fields)


def work(nudged: list[int]) -> None:
    """Runs the sweeper, and the jobs that it names."""
    nudged.clear()
    events.invoke("sweeper", events.load("schedule"))
    for job_id in list(nudged):
        record = events.load("sqs")["Records"][0] | {"body": json.dumps({"job_id": job_id})}
        assert events.invoke("ingest", {"Records": [record]}) == {"batchItemFailures": []}
