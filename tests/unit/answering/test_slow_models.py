"""A model that fails or is too slow before its first word is replaced by passages; after it, nothing is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from functions.adapters.models.openai_chat import OpenAIChatModel
from functions.adapters.models.openai_connection import RetryPolicy
from functions.core import errors, models
from functions.core.answering import answers
from functions.core.answering.model_writer import TextDelta, TimeLimits
from functions.core.citations.sections import SECTION_BREAK
from tests.support.fakes.model_server import FakeModelServer, Reply, answer_json, pieces
from tests.support.fakes.search_hits import make_hit

BOILER = make_hit("The boiler burns wood chips in winter. It was built in 1931.")
QUESTION = "What does the boiler burn in winter?"
WRITTEN = answer_json(("The boiler burns wood chips in winter, and nothing else.", ["doc:0"]))
INSTEAD = "; these are the passages of your documents that fit the question best."


@pytest.fixture
def server() -> Iterator[FakeModelServer]:
    with FakeModelServer() as running:
        yield running


def ask(
    base_url: str, limits: TimeLimits, lang: str = "en", **fields: Any
) -> tuple[str, models.Answer | None, errors.IbidError | None]:
    """The streamed text, the answer, and the error that ended it."""
    model = OpenAIChatModel(model="fake", base_url=base_url, retry_policy=RetryPolicy(attempts=1))
    streamed, ready = "", None
    items = answers.answer_question(
        QUESTION, [BOILER], lang=lang, history=[], chat_model=model, limits=limits, **fields
    )
    try:
        for item in items:
            streamed += item.text if isinstance(item, TextDelta) else ""
            ready = item.answer if isinstance(item, answers.AnswerReady) else None
    except errors.IbidError as exc:
        return streamed, ready, exc
    return streamed, ready, None


SLOW = {
    "silent": Reply(["late"], delay=600.0),
    "comments": Reply(["late"], comments=1000, delay=0.02),
    "blanks": Reply([" "] * 1000, delay=0.02),
    "json-that-never-starts": Reply(['{"sections": [', *[" "] * 1000], delay=0.02),
    "endless-thinking": Reply(["<think>", *["hm "] * 1000], delay=0.02),
    "slow-failure": Reply(status=503, delay=600.0),
}


@pytest.mark.parametrize("profile", ["full", "compact"])
@pytest.mark.parametrize("reply", SLOW.values(), ids=SLOW)
def test_a_first_word_that_comes_too_late_is_not_waited_for(
    server: FakeModelServer, reply: Reply, profile: models.PromptProfile
) -> None:
    """CHAT-2, CHAT-6"""
    server.script(reply)
    started = time.monotonic()
    streamed, ready, error = ask(server.base_url, TimeLimits(first_word_seconds=0.3), profile=profile)
    assert time.monotonic() - started < 3
    assert (error, ready and ready.degraded, ready and ready.status) == (None, "model_too_slow", "complete")
    note = f"The language model did not answer in time{INSTEAD}"
    assert ready is not None
    assert ready.answer == f"{note}{SECTION_BREAK}The boiler burns wood chips in winter. [1]"
    assert streamed == SECTION_BREAK.join(section.text for section in ready.sections)


@pytest.mark.parametrize(
    ("reply", "code", "note"),
    [
        (Reply(status=500), "model_unavailable", "The language model could not answer"),
        (Reply(raw=b"<html>"), "model_unavailable", "The language model could not answer"),
        (Reply(["{"], ending="cut"), "model_unavailable", "The language model could not answer"),
        (Reply(ending="error"), "model_unavailable", "The language model could not answer"),
        (Reply(status=429), "model_rate_limited", "The language model accepts no more questions for the moment"),
        (Reply(status=404), "model_rejected", "The language model refused the question"),
    ],
    ids=["fault", "html", "cut", "error", "limit", "unknown"],
)
def test_a_failure_before_the_first_word_is_told_above_the_passages(
    server: FakeModelServer, reply: Reply, code: str, note: str
) -> None:
    """CHAT-2, CHAT-6"""
    server.script(reply)
    _, ready, error = ask(server.base_url, TimeLimits())
    assert (error, ready and ready.mode, ready and ready.degraded) == (None, "extractive", code)
    assert ready is not None
    assert [section.text for section in ready.sections] == [note + INSTEAD, "The boiler burns wood chips in winter."]


def test_a_server_that_refuses_connections_is_replaced_by_passages() -> None:
    """CHAT-2, CHAT-6"""
    _, ready, error = ask("http://127.0.0.1:9/v1", TimeLimits())
    assert (error, ready and ready.degraded) == (None, "model_unavailable")


def test_the_reason_is_in_the_language_of_the_question(server: FakeModelServer) -> None:
    """LANG-4"""
    server.script(Reply(status=500))
    _, ready, _ = ask(server.base_url, TimeLimits(), lang="fr")
    assert ready is not None
    assert ready.sections[0].text.startswith("Le modèle de langage n’a pas pu répondre ; voici les passages")


def test_the_passages_are_chosen_for_the_complete_question(server: FakeModelServer) -> None:
    """CHAT-6, CHAT-7"""
    server.script(Reply(status=500))
    _, ready, _ = ask(server.base_url, TimeLimits(), search_query="In which year was the boiler built?")
    assert ready is not None
    assert "It was built in 1931." in ready.sections[1].text


def test_after_the_first_word_the_end_of_time_interrupts_and_keeps_the_text(server: FakeModelServer) -> None:
    """CHAT-2"""
    server.script(Reply([WRITTEN[:60], *pieces(WRITTEN[60:], 1)], delay=0.2))
    streamed, ready, error = ask(server.base_url, TimeLimits(10.0, time.monotonic() + 1.0))
    assert isinstance(error, errors.ModelTooSlowError)
    assert ready is not None
    assert (ready.status, ready.mode, ready.sections[0].text) == ("interrupted", "model", streamed)
    assert streamed.startswith("The boiler burns")


def test_a_slow_first_word_within_the_limit_is_waited_for(server: FakeModelServer) -> None:
    """CHAT-2"""
    server.script(Reply([WRITTEN], delay=0.3))
    _, ready, error = ask(server.base_url, TimeLimits(first_word_seconds=5.0))
    assert (error, ready and ready.mode, ready and ready.degraded) == (None, "model", None)
