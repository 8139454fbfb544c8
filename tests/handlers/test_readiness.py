"""OPS-4: readiness says within seconds and in words what works and what does not."""

from __future__ import annotations

import re
import socket
import time
from pathlib import Path

import pytest

from functions.adapters.postgres.connection import Database
from functions.runtime import readiness
from functions.runtime.config import Config
from functions.runtime.services import Services
from tests.handlers import events
from tests.handlers.conftest import Caller
from tests.handlers.events import Answer, Json
from tests.support.fakes.json_server import Body, FakeServer, Fault

FACT = b"The boiler burns wood chips in winter."


def get_ready() -> Answer:
    return events.send("page", events.http("GET", "/ready"))


def checks() -> dict[str, Json]:
    found: dict[str, Json] = get_ready().json["checks"]
    return found


def test_readiness_counts_the_jobs_waiting_for_a_worker(fresh_services: Services) -> None:
    caller = Caller(fresh_services)
    assert checks()["ingestion"] == {"ok": True, "detail": "No documents or notes are waiting; 0 in progress."}
    caller.store(caller.announce(size=len(FACT)), FACT)
    time.sleep(readiness.FRESH_SECONDS + 0.05)
    assert re.fullmatch(
        r"1 document or note is waiting, the oldest for \d s; 0 in progress\.", checks()["ingestion"]["detail"]
    )


def test_readiness_reports_that_no_worker_is_running(fresh_services: Services) -> None:
    caller = Caller(fresh_services)
    job_id = caller.store(caller.announce(size=len(FACT)), FACT)
    caller.row("update rag.ingest_jobs set run_after = now() - interval '20 min' where id = %s returning id", job_id)
    assert checks()["ingestion"] == {
        "ok": False,
        "detail": "No worker is running: 1 document or note is waiting, the oldest for 20 min. Start a worker.",
    }


def test_readiness_counts_the_jobs_that_were_given_up(fresh_services: Services) -> None:
    caller = Caller(fresh_services)
    fresh_services.make_worker().ingest_next(caller.store(caller.announce(size=3), b"\x00\x01\x02"))
    assert (
        checks()["ingestion"]["detail"] == "No documents or notes are waiting; 0 in progress. Given up within a day: 1."
    )


@pytest.mark.parametrize("fresh_services", [{"METRICS_TOKEN": "metrics-token"}], indirect=True, ids=["token"])
def test_in_the_cloud_only_operators_see_the_checks(fresh_services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-5"""
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "ibid-test-page")
    monkeypatch.setattr(Services, "is_local", True)  # local storage, which no deployed function uses
    bearers = ["guess", Caller(fresh_services).token, "metrics-token", Caller(fresh_services, admin=True).token]
    headers = [{}, *({"authorization": f"Bearer {bearer}"} for bearer in bearers)]
    answers = [events.send("page", events.http("GET", "/ready", headers=each)).json for each in headers]
    assert [bool(answer["checks"]) for answer in answers] == [False, False, False, True, True]
    assert len({answer["status"] for answer in answers}) == 1


@pytest.mark.parametrize(
    ("status", "ok", "detail"),
    [
        (200, True, "Embedding: multilingual-e5-small (local). Answers: fake."),
        (404, True, "Embedding: multilingual-e5-small (local). Answers: fake."),
        (401, False, "Answers (fake): the server refuses the key."),
        (307, False, "Answers (fake): the server redirects requests. Configure the address that it redirects to."),
        (503, False, "Answers (fake): the server answers with an error (503)."),
    ],
)
def test_readiness_asks_the_model_server(
    database: str, tmp_path: Path, status: int, ok: bool, detail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ListOfModels(status) as server:
        services = configure(monkeypatch, database, tmp_path, f"{server.base_url}/v1")
        found = readiness.Readiness(services).check()["models"]
        services.database.close()
    assert (found.ok, found.detail) == (ok, detail)
    (request,) = server.requests
    assert (request["path"], request["headers"]["Authorization"]) == ("/v1/models", "Bearer sk-secret")


def test_an_unreachable_model_server_is_reported_without_its_address_or_key(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = configure(monkeypatch, database, tmp_path, "http://someone:password@127.0.0.1:1/v1")
    found = readiness.Readiness(services).check()
    services.database.close()
    assert found["models"] == readiness.Check(False, "Answers (fake): the server does not answer.")
    assert found["database"].ok


def test_a_key_with_invalid_characters_is_reported(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = configure(monkeypatch, database, tmp_path, "http://127.0.0.1:1/v1", key="sk-\u2011secret")
    found = readiness.Readiness(services).check()["models"]
    services.database.close()
    assert found == readiness.Check(
        False, "Answers (fake): the key contains characters that cannot be sent. Check the key."
    )


def test_the_model_server_is_asked_at_most_twice_a_minute(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ListOfModels(200) as server:
        services = configure(monkeypatch, database, tmp_path, f"{server.base_url}/v1")
        asked = readiness.Readiness(services)
        for _ in range(5):
            asked.check()
        services.database.close()
    assert len(server.requests) == 1


def test_all_checks_share_one_connection(fresh_services: Services) -> None:
    """The pooler limits the number of clients, and every container is one."""
    fresh_services.policy()  # creates the first embedding server, over a second connection
    fresh_services.forget_policy()
    with fresh_services.database.as_worker() as connection:
        assert checks()["ingestion"]["ok"]
        row = connection.execute(
            "select count(*) as n from pg_stat_activity"
            " where application_name = 'ibid' and datname = current_database()"
        )
        assert [dict(found) for found in row.fetchall()] == [{"n": 2}]  # this connection and that of the checks


def test_a_hanging_check_is_reported_within_seconds(fresh_services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # accepts connections and never answers
        port = deaf.getsockname()[1]
        monkeypatch.setitem(vars(fresh_services), "database", Database(f"postgresql://u@127.0.0.1:{port}/x"))
        monkeypatch.setattr(readiness, "TIMEOUT_SECONDS", 0.5)
        began = time.monotonic()
        answer = get_ready()
        took = time.monotonic() - began
    assert (answer.status, took < 2) == (503, True)
    assert answer.json["checks"]["database"]["detail"] == "The check of the database took longer than 0.5 seconds."
    assert answer.json["checks"]["storage"]["ok"] is True


def configure(patch: pytest.MonkeyPatch, dsn: str, home: Path, base_url: str, *, key: str = "sk-secret") -> Services:
    variables = {"DATABASE_URL": dsn, "IBID_HOME": str(home), "CHAT_MODEL": "fake", "LOG_LEVEL": "CRITICAL"}
    for name, value in (variables | {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": key}).items():
        patch.setenv(name, value)
    return Services(Config())


class ListOfModels(FakeServer):
    """A server that answers GET /v1/models with the given status."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self._status = status

    def answer(self, route: str, body: Body) -> Fault:
        return Fault(self._status)
