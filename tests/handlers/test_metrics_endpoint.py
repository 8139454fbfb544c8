"""OPS-3: metrics for Prometheus, and the same for CloudWatch."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from functions.adapters.models.openai_chat import OpenAIChatModel
from functions.runtime import metrics
from functions.runtime.services import Services
from functions.web import app
from functions.web.routes import health
from tests.handlers import events
from tests.handlers.conftest import Caller
from tests.handlers.events import Answer, Json
from tests.support.fakes.model_server import FakeModelServer

TOKEN = "metrics-token-of-the-tests"
BEARER = {"authorization": f"Bearer {TOKEN}"}
FACT = b"The boiler burns wood chips in winter."
QUESTION = {"query": "What does the boiler burn in winter?"}
PRICES = {"price_input_per_million": 2.0, "price_output_per_million": 8.0}

with_token = pytest.mark.parametrize("fresh_services", [{"METRICS_TOKEN": TOKEN}], indirect=True, ids=["token"])


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> metrics.Registry:
    """Empty counters for this test."""
    registry = metrics.Registry()
    monkeypatch.setattr(metrics, "REGISTRY", registry)
    return registry


@pytest.fixture
def model(fresh_services: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeModelServer]:
    with FakeModelServer() as server:
        monkeypatch.setitem(vars(fresh_services), "chat_model", OpenAIChatModel(model="fake", base_url=server.base_url))
        yield server


@pytest.fixture
def on_lambda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "ibid-test-chat")
    monkeypatch.setattr(Services, "is_local", True)  # local storage, which no deployed function uses


def get_metrics(headers: Json = BEARER) -> Answer:
    return events.send("page", events.http("GET", "/metrics", headers=headers))


def read_figures(text: str) -> dict[str, float]:
    """The metrics: name with labels → value."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def embedded(capsys: pytest.CaptureFixture[str]) -> list[Json]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines() if "_aws" in line]


@with_token
def test_requests_searches_answers_and_jobs_are_counted(fresh_services: Services) -> None:
    caller = Caller(fresh_services)
    caller.add(FACT)
    caller.call("chat", "POST", "/api/rag/chat", QUESTION)
    caller.call("search", "GET", "/api/rag/search", query="q=boiler")
    caller.call("documents", "GET", "/api/rag/documents/nonsense")
    answer = get_metrics()
    assert (answer.status, answer.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    figures = read_figures(answer.content.decode())
    assert figures['ai_rag_retrieve_total{scope="library"}'] == 2
    assert figures["ai_rag_chunks_retrieved_count"] == figures["ai_rag_embed_latency_seconds_count"] == 2
    assert figures["ai_rag_chunks_retrieved_sum"] == 2
    assert figures['ai_rag_answers_total{mode="extractive",status="complete"}'] == 1
    assert figures['ai_index_jobs_total{status="done"}'] == 1
    assert figures["ai_index_jobs_due"] == figures["ai_index_jobs_given_up"] == 0
    assert figures['http_requests_total{method="GET",route="/api/rag/documents/{document_id}",status="404"}'] == 1


@with_token
def test_no_label_holds_an_id_or_user_text(fresh_services: Services) -> None:
    caller = Caller(fresh_services)
    events.send("page", events.http("BREW", "/quastenflosser"))
    caller.call("conversations", "GET", f"/api/rag/conversations/{caller.user.id}/messages", query="cursor=quasten")
    text = get_metrics().content.decode()
    assert 'method="other",route="none",status="404"' in text or 'method="other",route="none",status="405"' in text
    assert not re.search(f"quasten|{caller.user.id}", text)


@with_token
@pytest.mark.parametrize("headers", [{}, {"authorization": f"Bearer {TOKEN}x"}, {"authorization": TOKEN}])
def test_metrics_need_the_token(fresh_services: Services, headers: Json) -> None:
    """SEC-5"""
    assert get_metrics(headers).problem == (401, "not_signed_in")


def test_without_a_configured_token_no_remote_client_sees_metrics(fresh_services: Services) -> None:
    """SEC-5: the caller of the sample event is not this machine."""
    assert get_metrics({}).problem == get_metrics({"authorization": "Bearer None"}).problem == (401, "not_signed_in")


def test_a_laptop_shows_its_metrics_to_local_clients(fresh_services: Services) -> None:
    """SEC-5: a page of another host whose name resolves to this machine is also refused."""
    served = app.create_app(health.router, services=fresh_services)

    def request_metrics(host: str, client: str) -> int:
        return TestClient(served, base_url=f"http://{host}:8000", client=(client, 50000)).get("/metrics").status_code

    assert [request_metrics("127.0.0.1", "127.0.0.1"), request_metrics("localhost", "127.0.0.1")] == [200, 200]
    assert [request_metrics("evil.example", "127.0.0.1"), request_metrics("localhost", "192.0.2.7")] == [401, 401]


@pytest.mark.parametrize(
    "fresh_services",
    [{"METRICS_TOKEN": TOKEN, "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing"}],
    indirect=True,
    ids=["no-database"],
)
def test_without_a_database_the_process_still_shows_its_own_metrics(fresh_services: Services) -> None:
    answer = get_metrics()
    assert answer.status == 200
    assert "ai_index" not in answer.content.decode()


def test_on_lambda_the_same_metrics_are_log_lines(
    fresh_services: Services, model: FakeModelServer, on_lambda: None, capsys: pytest.CaptureFixture[str]
) -> None:
    caller = Caller(fresh_services, admin=True)
    job_id = caller.store(caller.announce(size=len(FACT)), FACT)
    events.invoke("ingest", {"Records": [{"messageId": "m", "body": json.dumps({"job_id": job_id})}]})
    caller.call("settings", "PATCH", "/api/rag/settings", PRICES)
    asked = caller.call("chat", "POST", "/api/rag/chat", QUESTION)
    job, retrieval, answer = embedded(capsys)
    assert (job["ai_index_jobs_total"], job["status"]) == (1, "done")
    assert (retrieval["ai_rag_retrieve_total"], retrieval["scope"], retrieval["ai_rag_chunks_retrieved"]) == (
        1,
        "library",
        1,
    )
    assert answer["ai_rag_input_tokens_total"] == asked.json["usage"]["prompt_tokens"]
    assert answer["ai_rag_cost_usd_total"] == asked.json["usage"]["cost_usd"]
    assert retrieval["request_id"] == answer["request_id"] == asked.headers["x-request-id"] == "JKJaXmPLvHcESHA="
    for line in (job, retrieval, answer):
        check_embedded(line)


def check_embedded(line: Json) -> None:
    """Checks a log line against the specification of CloudWatch's embedded metric format."""
    assert abs(line["_aws"]["Timestamp"] / 1000 - time.time()) < 60
    for directive in line["_aws"]["CloudWatchMetrics"]:
        assert directive["Namespace"] == "Ibid"
        for names in directive["Dimensions"]:
            assert 1 <= len(names) <= 30
            assert all(isinstance(line[name], str) and line[name] for name in names)
        for metric in directive["Metrics"]:
            assert isinstance(line[metric["Name"]], int | float)
            assert metric["Unit"] in ("Count", "Seconds", "None")


def test_on_lambda_the_metrics_page_points_to_cloudwatch(
    fresh_services: Services, on_lambda: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "check_secret", lambda *_: None)
    text = get_metrics().content.decode()
    assert text.startswith("# CloudWatch has the metrics of retrievals, answers, tokens and cost")
    assert set(read_figures(text)) == {
        "ai_index_jobs_due",
        "ai_index_jobs_given_up",
        "ai_index_oldest_due_seconds",
    }


def test_the_sweeper_reports_the_waiting_jobs(
    fresh_services: Services, on_lambda: None, capsys: pytest.CaptureFixture[str]
) -> None:
    caller = Caller(fresh_services)
    caller.store(caller.announce(size=len(FACT)), FACT)
    events.invoke("sweeper", events.load("schedule"))
    (line,) = embedded(capsys)
    check_embedded(line)
    assert (line["ai_index_jobs_due"], line["ai_index_jobs_given_up"]) == (1, 0)
    assert 0 <= line["ai_index_oldest_due_seconds"] < 60
    assert line["request_id"] == events.Context().aws_request_id


def test_the_cost_is_returned_and_saved_when_prices_are_configured(
    fresh_services: Services, model: FakeModelServer
) -> None:
    caller = Caller(fresh_services, admin=True)
    caller.add(FACT)
    assert "cost_usd" not in caller.call("chat", "POST", "/api/rag/chat", QUESTION).json["usage"]
    caller.call("settings", "PATCH", "/api/rag/settings", PRICES)
    asked = caller.call("chat", "POST", "/api/rag/chat", QUESTION).json
    usage = asked["usage"]
    expected = (usage["prompt_tokens"] * 2.0 + usage["completion_tokens"] * 8.0) / 1e6
    assert usage["cost_usd"] == pytest.approx(expected)
    kept = caller.row("select usage from rag.messages where id = %s", asked["message_id"])
    assert kept["usage"] == usage
