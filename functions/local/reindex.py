"""Re-indexes the library with the embedding model that the environment configures, and shows the progress."""

from __future__ import annotations

import sys
import threading
import time

from functions.core import errors
from functions.local import terminal
from functions.local.server import worker
from functions.local.server.serve import open_services
from functions.runtime import policy, reindexing
from functions.runtime.config import Config
from functions.runtime.services import Services

REPORT_SECONDS = 10.0


def run(config: Config) -> int:
    """Runs `reindex` until everything is re-indexed; returns 1 when some documents or notes could not be.

    Interrupted, it goes on with the next run, and with any worker: that of a running server does some of the work.
    """
    log_level = {} if "log_level" in config.model_fields_set else {"log_level": "ERROR"}
    with open_services(config.model_copy(update=log_level)) as services:
        state = reindexing.describe(services)
        if not state.is_other and state.move is None:
            print(f"{state.sentence} There is nothing to re-index.")
            return 0
        if state.is_other or (state.move is not None and (state.move.failed or state.move.paused)):
            state = reindexing.adopt(services, terminal.local_user())
            _announce_pause(state)
        state = _follow(services, state)
    print(state.sentence)
    return 1 if state.move is not None else 0


def _announce_pause(state: reindexing.State) -> None:
    if state.move is not None:
        seconds = 2 * policy.POLICY_SECONDS
        print(f"Every process has to know {state.stored.name} first; that takes {seconds:g} s.", file=sys.stderr)


def _follow(services: Services, state: reindexing.State) -> reindexing.State:
    """Works through the queue, on a laptop, until no document or note is left that can be moved."""
    done = threading.Event()
    thread = threading.Thread(target=terminal.process_queue, args=(services, done), daemon=True)
    if services.is_local:
        worker.release_lost_jobs(services)  # of a run that was killed
        thread.start()
    reported = 0.0
    try:
        while state.move is not None and state.move.remaining > state.move.failed and not state.move.paused:
            reindexing.proceed(services)
            if sys.stderr.isatty() or time.monotonic() - reported > REPORT_SECONDS:
                reported = time.monotonic()
                _draw_progress(state)
            if services.is_local and not thread.is_alive():
                raise errors.UnavailableError(
                    "The worker stopped because of the error printed above. Correct it and start again."
                )
            time.sleep(0.5)
            state = reindexing.describe(services)
        reindexing.proceed(services)
    finally:
        done.set()
        if services.is_local:
            thread.join(timeout=30)
        if sys.stderr.isatty():
            print(file=sys.stderr)
    return state


def _draw_progress(state: reindexing.State) -> None:
    assert state.move is not None
    total = state.move.done + state.move.remaining
    bar = "█" * round(state.move.done / total * terminal.BAR_WIDTH)
    if sys.stderr.isatty():
        print(f"\r[{bar:{terminal.BAR_WIDTH}}] {state.move.done}/{total}", end="", file=sys.stderr, flush=True)
    else:
        print(f"{state.move.done} of {total} documents and notes are re-indexed.", file=sys.stderr, flush=True)
