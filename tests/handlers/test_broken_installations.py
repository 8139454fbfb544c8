"""What the functions answer while the database is down or not migrated."""

from __future__ import annotations

import pytest

from functions.adapters.postgres.connection import Database
from functions.runtime.services import Services
from tests.handlers import events
from tests.handlers.conftest import CRON_SECRET, WEBHOOK_SECRET, Caller

UNREACHABLE = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing"}
LISTS = [
    ("conversations", "/api/rag/conversations"),
    ("documents", "/api/rag/documents"),
    ("settings", "/api/rag/settings"),
    ("search", "/api/rag/search?q=anything"),
]

without_database = pytest.mark.parametrize("fresh_services", [UNREACHABLE], indirect=True, ids=["no-database"])


@without_database
def test_without_a_database_health_is_ok_and_readiness_names_the_database(fresh_services: Services) -> None:
    """OPS-4, SEC-6"""
    assert events.send("page", events.http("GET", "/health")).status == 200
    ready = events.send("page", events.http("GET", "/ready"))
    assert (ready.status, ready.json["status"]) == (503, "degraded")
    silent = {"ok": False, "detail": "The database does not answer. Try again in a moment."}
    assert ready.json["checks"]["database"] == ready.json["checks"]["models"] == silent
    assert ready.json["checks"]["storage"]["ok"] is True
    assert b"127.0.0.1" not in ready.content


@without_database
@pytest.mark.parametrize(("module", "address"), LISTS, ids=[module for module, _ in LISTS])
def test_without_a_database_a_request_gets_a_503_with_retry_after(
    fresh_services: Services, module: str, address: str
) -> None:
    """SEC-6"""
    path, _, query = address.partition("?")
    answer = Caller(fresh_services).call(module, "GET", path, query=query)
    assert answer.problem == (503, "database_unavailable")
    assert answer.headers["retry-after"] == "5"


@without_database
def test_without_a_database_the_queue_redelivers_the_message(fresh_services: Services) -> None:
    """ING-10"""
    event = events.load("sqs")
    assert events.invoke("ingest", event) == {
        "batchItemFailures": [{"itemIdentifier": event["Records"][0]["messageId"]}]
    }


@without_database
def test_without_a_database_webhook_and_cron_get_a_503(fresh_services: Services) -> None:
    """SEC-5, SEC-6"""
    bearer, secret = {"authorization": f"Bearer {CRON_SECRET}"}, {"x-webhook-secret": WEBHOOK_SECRET}
    cron = events.http("GET", "/api/cron/retention", headers=bearer)
    webhook = events.http("POST", "/api/hooks/storage", events.load("storage_insert"), headers=secret)
    assert events.send("retention", cron).problem == (503, "database_unavailable")
    assert events.send("storage_event", webhook).problem == (503, "database_unavailable")


@pytest.mark.parametrize("fresh_services", [{"DATABASE_URL": ""}], indirect=True, ids=["unset"])
def test_readiness_names_the_variable_when_no_database_is_configured(fresh_services: Services) -> None:
    """FIX-7"""
    ready = events.send("page", events.http("GET", "/ready"))
    assert ready.json["checks"]["database"] == {
        "ok": False,
        "detail": "DATABASE_URL is not set. An administrator has to set it.",
    }


def test_readiness_reports_an_unmigrated_database(
    empty_database: str, fresh_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPS-4"""
    empty = Database(empty_database)
    monkeypatch.setitem(vars(fresh_services), "database", empty)
    ready = events.send("page", events.http("GET", "/ready"))
    listed = Caller(fresh_services).call("documents", "GET", "/api/rag/documents")
    empty.close()
    assert ready.status == 503
    assert "has to run the migrations" in ready.json["checks"]["models"]["detail"]
    assert listed.problem == (503, "database_unavailable")
