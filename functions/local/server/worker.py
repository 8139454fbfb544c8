"""The laptop's worker: takes jobs from the database as they come, sweeps every minute, purges and indexes once a day.

A process of its own, because PDFium is not thread-safe and a crash of a parser must not take the server down. On AWS
the queue and three schedules do the same.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType

from functions import retention, sweeper, vector_indexes
from functions.adapters.postgres.jobs import JobStore
from functions.core import errors
from functions.core.extraction import scratch
from functions.runtime.services import Services

IDLE_SECONDS = 0.3
SWEEP_SECONDS = 60.0
DAY_SECONDS = 24 * 3600.0
MODEL_THREADS = min(8, os.cpu_count() or 1)
NICENESS = 5  # a question asked meanwhile comes first

_log = logging.getLogger(__name__)


def work(services: Services, *, parent: int | None = None) -> None:
    """Works until it is told to stop, or its parent process has gone."""
    stopping = threading.Event()

    def stop(signum: int, frame: FrameType | None) -> None:
        stopping.set()

    os.nice(NICENESS)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the server says when to stop
    clear = _every(SWEEP_SECONDS, scratch.remove_lost_folders)
    release = _every(SWEEP_SECONDS, lambda: release_lost_jobs(services))
    sweep = _every(SWEEP_SECONDS, lambda: sweeper.sweep(services))
    purge = _every(DAY_SECONDS, lambda: retention.purge(services))
    build_indexes = _every(DAY_SECONDS, lambda: vector_indexes.build(services))
    while not stopping.is_set() and (parent is None or os.getppid() == parent):
        try:
            clear()
            release()
            sweep()
            purge()
            build_indexes()
            if services.make_worker().ingest_next() is None:
                stopping.wait(IDLE_SECONDS)
        except errors.IbidError as exc:
            _log.warning("worker waits: %s", exc.message)
            release = _every(SWEEP_SECONDS, lambda: release_lost_jobs(services))  # again, as soon as it can
            stopping.wait(2.0)
        except Exception:
            _log.exception("worker failed")
            stopping.wait(2.0)


def release_lost_jobs(services: Services) -> int:
    """Gives back what workers of this machine held when they died, so that nobody waits for their leases to end.

    A process that asks is at no job itself: what it still holds, it lost when the database went away.
    """
    store, host = JobStore(services.database), services.holder.rpartition(":")[0]
    return store.release_lost_jobs(
        host, [name for name in store.list_holders(host) if _is_alive(name) and name != services.holder]
    )


def _is_alive(holder: str) -> bool:
    return scratch.is_alive(int(holder.rpartition(":")[2]))


def _every(seconds: float, run: Callable[[], object]) -> Callable[[], None]:
    """Runs `run` when called for the first time, and then no more often than every `seconds`."""
    last: list[float] = []

    def run_if_due() -> None:
        now = time.monotonic()
        if not last or now - last[0] >= seconds:
            last[:] = [now]
            run()

    return run_if_due


class NoteThread:
    """Indexes notes in the server's own process, one at a time: its model is warm, and they bring no parser with them.

    What it does not get to is found in the queue by the worker.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="notes")

    def index(self, job_id: int) -> None:
        self._pool.submit(self._index, job_id)

    def _index(self, job_id: int) -> None:
        try:
            self._services.make_worker().ingest_next(job_id)
        except Exception:
            _log.exception("a note was left to the worker")


class WorkerProcess:
    """Keeps one worker running beside the server."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep_running, name="worker-keeper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Lets the worker finish its batch; what it does not finish in time is taken up after the next start."""
        self._stopping.set()
        self._thread.join(timeout=10)
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def _keep_running(self) -> None:
        while not self._stopping.is_set():
            command = [sys.executable, "-m", "functions.local", "work", "--parent", str(os.getpid())]
            self._process = subprocess.Popen(command, env=os.environ | self._environment)
            while self._process.poll() is None and not self._stopping.wait(0.2):
                pass
            if self._process.poll() is None:
                self._process.terminate()
                try:
                    self._process.wait(timeout=8)
                except subprocess.TimeoutExpired:
                    self._process.kill()
            elif not self._stopping.wait(1.0):
                _log.warning("the worker ended with %s and is started again", self._process.returncode)
