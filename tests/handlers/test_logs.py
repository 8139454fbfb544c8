"""OPS-3: what a request logs, and that no word of a document or a question is ever logged."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from starlette.testclient import TestClient

from functions.adapters.models.openai_chat import OpenAIChatModel
from functions.adapters.models.openai_connection import RetryPolicy
from functions.adapters.postgres import messages
from functions.core import errors
from functions.runtime import logging as json_logging
from functions.runtime.services import Services
from functions.web import app
from tests.handlers import events
from tests.handlers.conftest import Caller
from tests.handlers.events import Json
from tests.support.documents import make_pdf
from tests.support.fakes.model_server import FakeModelServer, Reply, answer

MARK = "Quastenflosser"
TEXT = f"The {MARK} boiler burns wood chips in winter, and nobody knows who has built it."
QUESTION = f"What does the {MARK} boiler burn in winter?"


class LogCapture(io.StringIO):
    """Everything that any logger writes."""

    @property
    def lines(self) -> list[Json]:
        return [json.loads(line) for line in self.getvalue().splitlines()]

    def named(self, message: str) -> list[Json]:
        return [line for line in self.lines if line["message"] == message]


@pytest.fixture
def written(fresh_services: Services) -> Iterator[LogCapture]:
    stream = LogCapture()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(json_logging.JsonFormatter())
    loggers = (logging.getLogger(), logging.getLogger("functions"))
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    yield stream
    for logger, level in zip(loggers, levels, strict=True):
        logger.removeHandler(handler)
        logger.setLevel(level)


@pytest.fixture
def caller(fresh_services: Services) -> Caller:
    return Caller(fresh_services)


def ask(caller: Caller, **body: Any) -> events.Answer:
    return caller.call("chat", "POST", "/api/rag/chat", {"query": QUESTION} | body)


def fail(*_: Any, **__: Any) -> Any:
    raise ValueError(f"cannot take {TEXT}")


def refuse(*_: Any, **__: Any) -> Any:
    try:
        raise psycopg.errors.CheckViolation(f"DETAIL: Failing row contains ({TEXT})")
    except psycopg.Error:
        raise KeyError(TEXT)  # noqa: B904  the fault that it was raised from must not be logged either


def use_everything(caller: Caller, patch: pytest.MonkeyPatch, model: FakeModelServer) -> None:
    """Uploads every kind of document and causes every kind of answer and fault, all with MARK in them."""
    services = caller.services
    caller.add(TEXT.encode(), f"{MARK}.txt")
    caller.add(make_pdf(services.config.home / "made.pdf", [TEXT]).read_bytes(), f"{MARK}.pdf")
    caller.call("notebooks", "POST", "/api/rag/notes", {"title": MARK, "content": TEXT})
    services.make_worker().ingest_next()
    broken = caller.announce("broken.pdf")
    services.make_worker().ingest_next(caller.store(broken, f"%PDF-1.4 {TEXT}".encode()))
    failing = replace(services.make_worker(), open_document=fail)
    failing.ingest_next(caller.store(caller.announce("other.txt"), TEXT.encode() + b" Again."))
    ask(caller)  # extractive
    caller.call("search", "GET", "/api/rag/search", query=f"q={MARK}&debug=true")
    patch.setitem(
        vars(services),
        "chat_model",
        OpenAIChatModel(model="fake", base_url=model.base_url, retry_policy=RetryPolicy(attempts=1)),
    )
    conversation = ask(caller).json["conversation_id"]
    model.script(Reply(status=500, error={"message": f"no: {TEXT}"}), Reply(status=400, error={"message": TEXT}))
    ask(caller), ask(caller, stream=True)
    model.script(Reply([TEXT[:20]], ending="cut"), answer((TEXT, ["nonsense:0"])))
    ask(caller, stream=True), ask(caller, conversation_id=conversation)
    for module, target in ((messages, "add_answer"), (messages, "open_question")):
        for fault in (fail, refuse):
            with patch.context() as inner:
                inner.setattr(module, target, fault)
                ask(caller), ask(caller, stream=True)
    caller.call("chat", "POST", "/api/rag/chat", {"query": {"no text": TEXT}})
    caller.call("chat", "POST", "/api/rag/chat", f'{{"query": "{TEXT}')
    events.invoke("sweeper", events.load("schedule"))


def test_no_word_of_a_document_or_a_question_is_logged(
    caller: Caller, written: LogCapture, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with FakeModelServer() as model:
        use_everything(caller, monkeypatch, model)
    assert {"ERROR", "INFO"} <= {line["level"] for line in written.lines}
    assert MARK.lower() not in written.getvalue().lower()
    out, err = capfd.readouterr()
    assert MARK.lower() not in (out + err).lower()


def test_a_retrieval_logs_one_line_with_the_request_id(caller: Caller, written: LogCapture) -> None:
    caller.add(TEXT.encode())
    asked = ask(caller)
    (line,) = written.named("ai_rag_retrieve")
    assert line["request_id"] == asked.headers["x-request-id"]
    assert line["user"] == caller.user.id
    assert line["conversation"] == asked.json["conversation_id"]
    assert (line["scope"], line["candidate_docs"], line["candidate_chunks"], line["top_k"]) == ("library", 1, 1, 1)
    assert line["max_score"] >= line["min_score"] > 0
    assert line["embed_latency_ms"] > 0
    assert line["search_latency_ms"] > 0


def test_an_answer_logs_one_line_with_its_tokens(caller: Caller, written: LogCapture) -> None:
    asked = ask(caller)
    (line,) = written.named("ai_rag_answer")
    assert {key: line[key] for key in ("user", "conversation", "mode", "status", "request_id")} == {
        "user": caller.user.id,
        "conversation": asked.json["conversation_id"],
        "mode": "guard",
        "status": "guarded",
        "request_id": asked.headers["x-request-id"],
    }
    assert line["prompt_tokens"] is None


def test_an_error_is_logged_with_its_code_stack_and_request_id(
    caller: Caller, written: LogCapture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "open_question", fail)
    answered = ask(caller)
    (line,) = [line for line in written.lines if line["level"] == "ERROR"]
    assert answered.problem == (500, "internal")
    assert line["request_id"] == answered.json["request_id"] == answered.headers["x-request-id"]
    assert "builtins.ValueError\n" in line["exception"]
    assert "in fail" in line["exception"]


def describe(exc: Exception) -> str:
    try:
        raise exc
    except Exception as caught:
        return json_logging.describe_exception(caught).splitlines()[-1]


@pytest.mark.parametrize(
    ("exc", "kind"),
    [
        (errors.NotFoundError("There is no such note."), "functions.core.errors.NotFoundError: There is no such note."),
        (ValueError(TEXT), "builtins.ValueError"),
        (psycopg.errors.UniqueViolation(TEXT), "psycopg.errors.UniqueViolation sqlstate=23505"),
        (ConnectionRefusedError(111, "Connection refused"), "builtins.ConnectionRefusedError errno=111"),
    ],
    ids=["ours", "plain", "database", "system"],
)
def test_a_librarys_exception_is_logged_by_type_and_code_without_its_message(exc: Exception, kind: str) -> None:
    assert describe(exc).startswith(kind)
    assert MARK not in describe(exc)


@pytest.mark.parametrize("sent", ["", "short", "x" * 65, "bad id with spaces"])
def test_a_request_without_a_valid_id_gets_the_gateways_id(
    caller: Caller, sent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "ibid-test-page")
    answered = events.send("page", events.http("GET", "/health", headers={"x-request-id": sent}))
    assert answered.headers["x-request-id"] == "JKJaXmPLvHcESHA="


def test_a_client_may_choose_the_request_id(caller: Caller) -> None:
    answered = events.send("page", events.http("GET", "/health", headers={"x-request-id": "trace-12345678"}))
    assert answered.headers["x-request-id"] == "trace-12345678"


def test_log_lines_of_a_schedule_have_the_id_of_the_invocation(caller: Caller, written: LogCapture) -> None:
    caller.store(caller.announce(), TEXT.encode())
    events.invoke("sweeper", events.load("schedule"))
    (line,) = written.named("swept")
    assert line["request_id"] == events.Context().aws_request_id


def test_an_error_while_streaming_is_logged_by_us_and_not_by_the_server(
    fresh_services: Services, written: LogCapture
) -> None:
    """The server would log the exception with its message."""

    def write() -> Iterator[str]:
        yield "The beginning"
        fail()

    broken = FastAPI()
    broken.add_api_route("/broken", lambda: StreamingResponse(write()))
    framed = TestClient(app.RequestFrame(broken))
    with pytest.raises(app.BrokenOffError) as raised:
        framed.get("/broken")
    assert raised.value.__suppress_context__
    assert MARK not in written.getvalue()
    assert "in fail" in written.named("a response was cut off by an unexpected error")[0]["exception"]
