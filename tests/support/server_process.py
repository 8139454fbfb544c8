"""Runs a server and its worker as `make run` does, in processes of their own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.support.requirements import REPOSITORY

START_SECONDS, STOP_SECONDS = 180.0, 120.0  # on a machine that does much else


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A running server; `pid` is also the id of the group of all processes that it has started."""

    base_url: str
    pid: int


@contextmanager
def serve(environment: Mapping[str, str]) -> Iterator[ServerProcess]:
    """A server on a free port with these variables; it runs until the end of the block, unless it is killed."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    settings = {"PORT": str(port), "LOG_LEVEL": "ERROR", **environment}
    command = [sys.executable, "-m", "functions.local", "serve"]
    process = subprocess.Popen(
        command, cwd=REPOSITORY, env=os.environ | settings, stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        base_url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + START_SECONDS
        while not _is_ready(base_url):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("the server did not start")
            time.sleep(0.1)
        yield ServerProcess(base_url, process.pid)
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)


def describe_environment(dsn: str, home: Path, model_url: str) -> dict[str, str]:
    """The variables of a laptop's server on this database, which answers with the model at `model_url`."""
    return {"DATABASE_URL": dsn, "IBID_HOME": str(home), "CHAT_MODEL": "fake", "OPENAI_BASE_URL": model_url}


def _is_ready(base_url: str) -> bool:
    try:
        return httpx.get(f"{base_url}/health", trust_env=False, timeout=30).is_success
    except httpx.TransportError:
        return False
