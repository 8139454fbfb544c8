"""While people ask, the laptop's worker leaves a processor to the answers."""

from __future__ import annotations

import os
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from functions.adapters.laptop import e5
from functions.local.server import priority
from functions.runtime.config import Config

PROCESSORS = 4


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.setattr(os, "cpu_count", lambda: PROCESSORS)
    monkeypatch.setattr(priority, "MODEL_THREADS", PROCESSORS)
    return Config(ibid_home=tmp_path / "home")


def request(config: Config, path: str) -> None:
    async def answer(*_: Any) -> Any: ...

    scope: dict[str, Any] = {"type": "http", "path": path}
    anyio.run(partial(priority.MarkQuestions(answer, config), scope, answer, answer))


def count(config: Config) -> int:
    return priority.WorkerThreads(config).count()


@pytest.mark.parametrize("path", ["/api/rag/search", "/api/rag/chat", "/v1/chat/completions", "/mcp"])
def test_a_question_takes_a_processor_from_the_worker(config: Config, path: str) -> None:
    assert count(config) == PROCESSORS
    request(config, path)
    assert count(config) == PROCESSORS - 1


@pytest.mark.parametrize("path", ["/", "/health", "/api/rag/documents", "/assets/page.js"])
def test_other_requests_take_none(config: Config, path: str) -> None:
    request(config, path)
    assert count(config) == PROCESSORS


def test_the_worker_gets_it_back_when_nobody_asks_any_more(config: Config) -> None:
    request(config, "/api/rag/chat")
    mark, long_ago = config.home / "asked", time.time() - priority.SPARED_SECONDS - 1
    os.utime(mark, (long_ago, long_ago))
    assert count(config) == PROCESSORS


def test_the_worker_of_one_processor_goes_on(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    request(config, "/api/rag/search")
    assert count(config) == 1


def test_a_question_is_answered_where_nothing_can_be_written(config: Config) -> None:
    config.home.write_text("a file where the folder should be")
    request(config, "/api/rag/search")
    assert count(config) == PROCESSORS


def test_no_more_threads_run_at_once_than_the_limit_of_the_moment() -> None:
    limit, running, most = [1], [0], [0]
    turns, lock = e5._Turns(lambda: limit[0]), threading.Lock()

    def work() -> None:
        for _ in range(5):
            with turns:
                with lock:
                    running[0] += 1
                    most[0] = max(most[0], running[0])
                time.sleep(0.002)
                with lock:
                    running[0] -= 1

    found = []
    for limit[0] in (1, 3):
        most[0] = 0
        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found.append(most[0])
    assert found == [1, 3]
