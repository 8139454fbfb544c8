"""Runs a function in a thread while the caller does something else."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")


def begin(function: Callable[[], Result]) -> Future[Result]:
    """Starts `function` in a thread of its own, with the caller's context; `result()` returns or raises its outcome.

    A thread for each call, because a pool that is full of slow calls would make the quick ones wait.
    """
    future: Future[Result] = Future()
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(_run, function, future), name="background", daemon=True).start()
    return future


def _run(function: Callable[[], Result], future: Future[Result]) -> None:
    try:
        future.set_result(function())
    except BaseException as exc:
        future.set_exception(exc)
