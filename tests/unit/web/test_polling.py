"""How often a long poll reads what it waits for."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import anyio.to_thread
import pytest

from functions.web import polling


class Clock:
    """A clock that only sleeping moves, and the moments at which something was read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.reads: list[float] = []
        monkeypatch.setattr(polling, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(polling, "anyio", SimpleNamespace(sleep=self.sleep, to_thread=anyio.to_thread))

    async def sleep(self, seconds: float) -> None:
        self.now += seconds

    def read(self) -> float:
        self.reads.append(self.now)
        return self.now

    def wait(self, ready_at: float, seconds: float = 25) -> float:
        """When the news of `ready_at` are seen, or the poll ends."""
        return asyncio.run(polling.read_until(self.read, lambda at: at >= ready_at, seconds))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.mark.parametrize(("ready_at", "latest"), [(0.0, 0.0), (0.5, 0.8), (1.5, 1.9), (6.0, 7.3), (20.0, 22.0)])
def test_news_are_late_by_a_fifth_of_the_time_waited_or_a_moment(clock: Clock, ready_at: float, latest: float) -> None:
    """LIB-6"""
    assert ready_at <= clock.wait(ready_at) <= latest


def test_a_long_wait_reads_less_and_less_often_and_ends_in_time(clock: Clock) -> None:
    """LIB-6"""
    assert clock.wait(100.0) == pytest.approx(25)
    assert len(clock.reads) < 25
