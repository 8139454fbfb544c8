"""A server that fails makes one question wait, and not all of them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest

from functions.core import errors
from functions.core.retrieval.circuit_breaker import CircuitBreaker

if TYPE_CHECKING:
    from functions.core.ports import Vectors

SILENT = errors.ModelUnavailableError()


class Server:
    """Raises `fault` while it is set, after `may_answer`; counts its requests. Also the clock of its breaker."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.fault, self.asked, self.now = fault, 0, 0.0
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.breaker = CircuitBreaker(self, time_limit=0.2, aside=30, clock=lambda: self.now)

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked += 1
        self.may_answer.wait(5)
        if self.fault is not None:
            raise self.fault
        return np.ones((len(texts), 1), np.float32)

    def fails(self) -> bool:
        """Whether a question is searched without the server."""
        try:
            self.breaker.embed(["why"])
        except errors.UnavailableError:
            return True
        return False


@pytest.mark.parametrize(
    "fault",
    [SILENT, errors.ModelRateLimitedError(), errors.ModelRejectedError(status=401)],
    ids=["silent", "limited", "key"],
)
def test_after_a_failure_no_question_waits_for_half_a_minute(fault: Exception) -> None:
    """RET-2"""
    server = Server(fault)
    assert [server.fails() for _ in range(5)] == [True] * 5
    server.now = 29.9
    assert (server.fails(), server.asked) == (True, 1)


def test_then_one_question_tries_and_its_success_counts_for_all() -> None:
    server = Server(SILENT)
    server.fails()
    server.now, server.fault = 30.1, None
    assert ([server.fails(), server.fails()], server.asked) == ([False, False], 3)


def test_the_others_do_without_the_server_while_one_tries() -> None:
    server = Server(SILENT)
    server.fails()
    server.now = 30.1
    server.may_answer.clear()
    trying = threading.Thread(target=server.fails)
    trying.start()
    while server.asked < 2:
        pass
    assert (server.fails(), server.asked) == (True, 2)
    server.may_answer.set()
    trying.join()


def test_a_server_that_takes_too_long_is_a_failure() -> None:
    server = Server()
    server.may_answer.clear()
    assert [server.fails(), server.fails()] == [True, True]
    assert server.asked == 1
    server.may_answer.set()


def test_a_refused_text_leaves_the_server_to_other_questions() -> None:
    server = Server(errors.ModelRejectedError(status=400))
    assert [server.fails(), server.fails()] == [True, True]
    assert server.asked == 2


def test_a_server_that_refuses_a_text_after_a_failure_works_again() -> None:
    server = Server(SILENT)
    server.fails()
    server.now, server.fault = 30.1, errors.ModelRejectedError(status=400)
    server.fails()
    server.fault = None
    assert not server.fails()


def test_a_server_that_names_its_time_is_asked_again_then() -> None:
    server = Server(errors.ModelRateLimitedError(retry_after=2))
    server.fails()
    server.now, server.fault = 2.1, None
    assert not server.fails()
