"""`serve` as a process: how it ends, what it survives, what it prints when it cannot start."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.local_server import wait_until
from tests.support.requirements import REPOSITORY

COMMAND = [sys.executable, "-m", "functions.local"]


@dataclass(frozen=True)
class Process:
    """A running `serve`."""

    home: Path
    port: int
    popen: subprocess.Popen[str]

    @property
    def postmaster(self) -> Path:
        return self.home / "postgres/data/postmaster.pid"

    def ready(self) -> Any:
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{self.port}/ready", timeout=5) as response:
            return json.load(response)["status"] == "ok"

    def end(self, number: int) -> int:
        self.popen.send_signal(number)
        self.popen.communicate(timeout=30)
        return self.popen.returncode


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = os.environ | {"IBID_HOME": str(tmp_path / "a home"), "PORT": str(port)}
    popen = subprocess.Popen(
        [*COMMAND, "serve"],
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    running = Process(tmp_path / "a home", port, popen)
    wait_until(running.ready, 60)
    yield running
    if popen.poll() is None:
        running.end(signal.SIGINT)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda n: n.name)
def test_every_way_to_end_it_also_stops_the_database(process: Process, number: signal.Signals) -> None:
    """FIX-5"""
    assert process.postmaster.exists()
    process.end(number)
    assert not process.postmaster.exists()


def test_the_printed_address_signs_one_browser_in_and_the_next_one_is_printed_then(process: Process) -> None:
    """FIX-5, SEC-7"""
    assert process.popen.stdout is not None
    address = f"http://127.0.0.1:{process.port}/"
    statuses = []
    for opening in ("Ibid is ready: ", "Signed in. For another browser: "):
        line = process.popen.stdout.readline()
        assert line.startswith(f"{opening}{address}#key="), line
        key = line.removeprefix(f"{opening}{address}#key=").split()[0]
        statuses += [httpx.post(f"{address}api/local/token", json={"key": key}).status_code for _ in range(2)]
    assert statuses == [200, 401, 200, 401]


def test_a_killed_database_is_restarted(process: Process) -> None:
    killed = process.postmaster.read_text().split()[0]
    os.kill(int(killed), signal.SIGKILL)

    def is_back() -> bool:
        """Whether another server runs; it may start so soon that /ready, which checks once a second, sees no outage."""
        with suppress(FileNotFoundError):
            return process.postmaster.read_text().split()[:1] not in ([], [killed])
        return False

    wait_until(is_back, 30)
    wait_until(process.ready, 30)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("PORT", "abc", "PORT: Input should be a valid integer"),
        ("PORT", "99999", "PORT: Input should be less than or equal to 65535"),
        ("LOG_LEVEL", "loud", "LOG_LEVEL: Input should be"),
        ("DATABASE_URL", "mysql://ada:secret@host/db", "DATABASE_URL: Value error, must begin with postgresql://"),
        ("IBID_HOME", "/dev/null/home", "Not a directory: /dev/null/home"),
    ],
)
def test_the_reason_for_a_failed_start_is_printed_in_one_line(name: str, value: str, message: str) -> None:
    done = subprocess.run(
        [*COMMAND, "serve"],
        cwd=REPOSITORY,
        env=os.environ | {"PORT": "8999"} | {name: value},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr.count("\n"), "secret" in done.stderr) == (1, 1, False)
    assert message in done.stderr
