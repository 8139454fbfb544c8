"""The first minutes of a newcomer: a fresh clone, `make run`, a file, a question; as root and as an ordinary user."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import documents
from tests.support.requirements import REPOSITORY, need_permission_to_install, need_program, need_root

FIRST_START_SECONDS = 180
SECOND_START_SECONDS = 10
OURS = ("VIRTUAL_ENV", "MAKEFLAGS", "MAKEOVERRIDES", "ARGS")
"""What `make test` gives to the programs that it starts: its arguments are none of `make run`."""


@dataclass(frozen=True)
class Clone:
    """A clone of the repository on a path with a space, and the environment of its user."""

    folder: Path
    user: pwd.struct_passwd | None
    environment: dict[str, str]

    def start(self, command: list[str], *, alone: bool = False) -> subprocess.Popen[str]:
        """Runs a command as the user; with `alone`, in its own network namespace, where not even loopback is up."""
        prefix = ["unshare", "-n", "--"] if alone else []
        if self.user:
            prefix += ["setpriv", f"--reuid={self.user.pw_uid}", f"--regid={self.user.pw_gid}", "--clear-groups"]
        return subprocess.Popen(
            [*prefix, *command],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, command: list[str], *, alone: bool = False) -> tuple[int, str]:
        process = self.start(command, alone=alone)
        output, _ = process.communicate(timeout=FIRST_START_SECONDS)
        return process.returncode, output


USERS = ["as the tester", "as an ordinary user"]


@pytest.fixture(scope="module", params=USERS)
def clone(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    need_permission_to_install()
    need_program("make")
    folder = Path("/tmp") / f"ibid clone {os.getpid()} {USERS.index(request.param)}"
    subprocess.run(["git", "clone", "-q", str(REPOSITORY), str(folder)], check=True)
    home = folder / "home of the user"
    home.mkdir()
    user = None
    if request.param == "as an ordinary user" and os.geteuid() == 0:
        user = pwd.getpwnam("nobody")
        need_program("setpriv")
        subprocess.run(["chown", "-R", f"{user.pw_uid}:{user.pw_gid}", str(folder)], check=True)
    environment = {k: v for k, v in os.environ.items() if k not in OURS} | {
        "HOME": str(home),
        "PORT": str(free_port()),
    }
    yield Clone(folder, user, environment)
    shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(clone: Clone, within: float) -> Iterator[float]:
    """Runs `make run`; yields the seconds until its page answered."""
    started = time.monotonic()
    process = clone.start(["make", "run"])
    try:
        while not answers(clone):
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() - started < within, f"not serving after {within} s"
            time.sleep(0.1)
        yield time.monotonic() - started
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=30)


def answers(clone: Clone) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{clone.environment['PORT']}/ready", timeout=2) as response:
            return json.load(response)["status"] == "ok"
    except OSError:
        return False


def test_a_fresh_clone_serves_and_its_second_start_is_quick(clone: Clone) -> None:
    """FIX-5"""
    with serving(clone, FIRST_START_SECONDS) as first:
        code, output = clone.run(["make", "run"])
        assert code != 0
        assert f"Port {clone.environment['PORT']} on 127.0.0.1 is in use" in output
    with serving(clone, SECOND_START_SECONDS) as second:
        print(f"first start {first:.1f} s, second start {second:.1f} s")


def test_without_a_network_a_file_is_ingested_and_a_question_answered(clone: Clone) -> None:
    """FIX-5, FIX-6"""
    need_root("take the network away")
    documents.make_pdf(
        clone.folder / "lease.pdf", ["The lease of the mill ends on 4 March 2031. The rent is due monthly."]
    )
    subprocess.run(["chmod", "a+r", str(clone.folder / "lease.pdf")], check=True)
    python = str(clone.folder / ".venv/bin/python")
    code, output = clone.run([python, "-m", "functions.local", "ingest", "lease.pdf"], alone=True)
    assert (code, "lease.pdf: indexed, 1 pages" in output) == (0, True), output
    code, output = clone.run(
        [python, "-m", "functions.local", "ask", "When does the lease of the mill end?"], alone=True
    )
    assert (code, "lease.pdf, page 1 (exact, high support)" in output, "4 March 2031" in output) == (0, True, True), (
        output
    )
