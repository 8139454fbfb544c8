"""Runs the laptop's worker: it takes jobs from the database, and runs what schedules run on AWS.

It is a process of its own, because PDFium is not thread-safe and a crash of a parser must not stop the server.
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
from functions.core.ingestion import translation
from functions.runtime import translating
from functions.runtime.services import Services

IDLE_SECONDS = 0.3
SWEEP_SECONDS = 60.0
TRANSLATION_SECONDS = translation.RESERVE_SECONDS + 10.0
"""A translation lets an upload have its turn after some ten seconds."""
DAY_SECONDS = 24 * 3600.0
NICENESS = 5  # questions are answered before files are read

_log = logging.getLogger(__name__)


def work(services: Services, *, parent: int | None = None) -> None:
    """Processes jobs until SIGTERM arrives or the parent process ends."""
    stopping = threading.Event()

    def stop(signum: int, frame: FrameType | None) -> None:
        stopping.set()

    os.nice(NICENESS)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the worker too, but the server decides when it stops
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
            if not _work_once(services):
                stopping.wait(IDLE_SECONDS)
        except errors.IbidError as exc:
            _log.warning("the worker tries again in 2 s: %s", exc.message)
            release = _every(SWEEP_SECONDS, lambda: release_lost_jobs(services))  # is due at once
            stopping.wait(2.0)
        except Exception:
            _log.exception("the worker failed and tries again in 2 s")
            stopping.wait(2.0)


def _work_once(services: Services) -> bool:
    """Takes a due job, or else a due translation; False if there is neither."""
    if services.make_worker().ingest_next() is not None:
        return True
    return translating.translate_next(services, None, TRANSLATION_SECONDS) is not None


def release_lost_jobs(services: Services) -> int:
    """Releases the jobs of dead workers on this machine before their leases end; returns how many.

    This worker's own jobs are released too: it has no job when it calls this, so it lost them with the database.
    """
    store, host = JobStore(services.database), services.holder.rpartition(":")[0]
    return store.release_lost_jobs(
        host, [name for name in store.list_holders(host) if _is_alive(name) and name != services.holder]
    )


def _is_alive(holder: str) -> bool:
    return scratch.is_alive(int(holder.rpartition(":")[2]))


def _every(seconds: float, run: Callable[[], object]) -> Callable[[], None]:
    """Wraps `run` so that calls do nothing until `seconds` have passed since it last ran."""
    last: list[float] = []

    def run_if_due() -> None:
        now = time.monotonic()
        if not last or now - last[0] >= seconds:
            last[:] = [now]
            run()

    return run_if_due


class NoteThread:
    """Indexes notes in the server's process, one at a time, because its model is loaded and notes need no parser.

    The worker indexes the notes that this thread does not.
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
            _log.exception("a note could not be indexed here and is left to the worker")


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
        """Stops the worker after its current batch, by force after ten seconds; the next start continues its job."""
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
                _log.warning("the worker ended with status %s and is started again", self._process.returncode)
