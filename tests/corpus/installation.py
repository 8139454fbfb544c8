"""Runs Ibid in processes of its own, as `make run` does, and measures the memory of its worker."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psutil

from tests.conftest import OUTSIDE, OUTSIDE_NAMES
from tests.support.requirements import REPOSITORY

SAMPLE_SECONDS = 0.2  # OCR of a page takes a second or more; sampling slows the worker down
START_SECONDS = 120.0


@contextmanager
def run_installation(home: Path) -> Iterator[tuple[httpx.Client, WorkerWatch]]:
    """Serves until the end of the block; the client is signed in as the local user."""
    port = _find_port()
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(OUTSIDE) and name.upper() not in OUTSIDE_NAMES
    }
    environment = inherited | {"IBID_HOME": str(home), "PORT": str(port), "LOG_LEVEL": "WARNING"}
    with (
        (home.parent / "server.log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-m", "functions.local", "serve"], cwd=REPOSITORY, env=environment, stdout=log, stderr=log
        ) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client,
    ):
        try:
            _wait_until_ready(client, process)
            token = subprocess.check_output(
                [sys.executable, "-m", "functions.local", "token", "--admin"],
                cwd=REPOSITORY,
                env=environment,
                text=True,
            ).strip()
            client.headers["authorization"] = f"Bearer {token}"
            with WorkerWatch(process.pid) as watch:
                yield client, watch
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()


def _find_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(client: httpx.Client, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(httpx.HTTPError):
            if client.get("/ready").is_success:
                return
        time.sleep(0.1)
    raise RuntimeError("the server did not start")


class WorkerWatch:
    """Samples the memory of a server's worker.

    `peak_bytes` is the largest memory of the worker and its programs (Tesseract) together in any sample, or the
    kernel's peak of the worker alone if that is larger. `starts` counts worker processes; more than one means a crash.
    """

    def __init__(self, server_pid: int) -> None:
        self.peak_bytes = 0
        self._recent_peak = 0
        self._server = psutil.Process(server_pid)
        self._workers: set[int] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="worker-watch", daemon=True)

    @property
    def starts(self) -> int:
        return len(self._workers)

    def take_peak(self) -> int:
        """Returns the largest sample, in bytes, since the last call."""
        recent, self._recent_peak = self._recent_peak, 0
        return recent

    def __enter__(self) -> WorkerWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _watch(self) -> None:
        worker: psutil.Process | None = None
        while not self._stopping.wait(SAMPLE_SECONDS):
            with suppress(psutil.Error, OSError):
                if worker is None or not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE:
                    worker = next((p for p in self._server.children() if "work" in p.cmdline()), None)
                if worker is not None:
                    self._workers.add(worker.pid)
                    size = measure_memory(worker)
                    self._recent_peak = max(self._recent_peak, size)
                    self.peak_bytes = max(self.peak_bytes, size, read_memory(worker.pid, "VmHWM"))


def measure_memory(process: psutil.Process) -> int:
    """Measures the memory of a process and of the programs that it has started, in bytes.

    A child that has not started its program yet shares its parent's memory (vfork(2)) and is not counted again. On a
    busy machine that can last as long as the child waits for a processor.
    """
    size, own = read_memory(process.pid, "VmRSS"), process.cmdline()
    for child in process.children(recursive=True):
        with suppress(psutil.Error, OSError):
            if child.cmdline() != own:
                size += read_memory(child.pid, "VmRSS")
    return size


def read_memory(pid: int, name: str) -> int:
    """Reads a figure of the kernel in bytes: VmRSS is the memory now, VmHWM its peak. 0 when the process has ended."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0
