"""Runs each measured system in a process of its own, with requests and answers as lines of JSON (see `serving`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from functions.core import ports
from functions.local.database import embedded_postgres
from tests.bench.peers import environments
from tests.bench.peers.environments import System
from tests.support.requirements import REPOSITORY

# Keeps libraries from reporting usage and from looking for models on the network.
OFFLINE = {"LANGSMITH_TRACING": "false", "HAYSTACK_TELEMETRY_ENABLED": "false", "HF_HUB_OFFLINE": "1"}


@dataclass(frozen=True, slots=True)
class Answer:
    """The passages found, best first, and the milliseconds of the system's own call."""

    passages: Sequence[str]
    ms: float


class Process:
    """The process of one system; call `open` before `ask`."""

    def __init__(self, system: System) -> None:
        self.name = system.name
        self._process = subprocess.Popen(
            [environments.find_python(system), "-m", f"tests.bench.peers.{system.module}", *system.arguments],
            cwd=REPOSITORY,
            env={**os.environ, **OFFLINE},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def load(self, dsn: str, folder: Path, language: str) -> None:
        self._send(do="load", dsn=dsn, folder=str(folder), language=language)

    def open(self, dsn: str, folder: Path, language: str, depth: int) -> None:
        self._send(do="open", dsn=dsn, folder=str(folder), language=language, depth=depth)

    def ask(self, question: int, owner: str | None = None) -> Answer:
        return Answer(**self._send(do="ask", question=question, owner=owner))

    def _send(self, **message: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended with status {self._process.wait()}; its messages are above")
        return json.loads(line)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:  # closes its input and waits for its end
            pass


class Databases:
    """Databases on one server, one for each system, which fills it itself."""

    def __init__(self, server: embedded_postgres.Server, prefix: str) -> None:
        self._server = server
        self._prefix = prefix

    def dsn(self, name: str) -> str:
        return self._server.dsn_for(self._database(name))

    def create(self, name: str, template: str = "") -> None:
        source = self._database(template) if template else "template0"
        self._run(self._server.dsn, f"create database {self._database(name)} template {source}")

    def drop(self, names: Sequence[str]) -> None:
        for name in names:
            self._run(self._server.dsn, f"drop database if exists {self._database(name)} with (force)")

    def fill(self, systems: Sequence[System], folder: Path, language: str) -> None:
        """Lets each system fill its database, and runs VACUUM ANALYZE afterwards, as autovacuum would."""
        for system in systems:
            if system.is_loader:
                self.create(system.name)
                start = time.monotonic()
                with Process(system) as process:
                    process.load(self.dsn(system.name), folder, language)
                print(f"{self._prefix}: {system.name} loaded in {time.monotonic() - start:.0f} s", file=sys.stderr)
            elif system.index:
                self.create(system.name, template=system.loaded_as)
                self._run(self.dsn(system.name), system.index)
            if system.is_loader or system.index:
                self._run(self.dsn(system.name), "vacuum analyze")

    def dsn_of(self, system: System) -> str:
        return self.dsn(system.name if system.is_loader or system.index else system.loaded_as)

    def _database(self, name: str) -> str:
        return "".join(letter if letter.isalnum() else "_" for letter in f"{self._prefix}_{name}")

    def _run(self, dsn: str, statement: str) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(statement)


@dataclass(frozen=True, slots=True)
class Bench:
    """The databases, embedder, folder and systems of a measurement."""

    databases: Databases
    embedder: ports.Embedder
    folder: Path
    systems: Sequence[System]


@contextmanager
def open_all(
    systems: Sequence[System], databases: Databases, folder: Path, language: str, depth: int
) -> Iterator[list[Process]]:
    """Starts a process for each system and connects it to its database."""
    with ExitStack() as stack:
        processes = []
        for system in systems:
            process = stack.enter_context(Process(system))
            process.open(databases.dsn_of(system), folder, language, depth)
            processes.append(process)
        yield processes
