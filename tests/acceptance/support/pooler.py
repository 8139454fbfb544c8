"""PgBouncer as a transaction pooler in front of a test database; Supabase's pooler behaves the same in that mode."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import psycopg

from functions.local.database import system_account
from tests.support import requirements


class Pooler:
    """A running PgBouncer; `dsn` connects through it. `command` sends PAUSE, KILL and others to its console."""

    def __init__(self, dsn: str, folder: Path, *, pool_size: int = 5, **settings: str) -> None:
        program = requirements.need_program("pgbouncer", "/usr/sbin/pgbouncer")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.dsn = f"postgresql://anybody@127.0.0.1:{self.port}/ibid"
        self._account = system_account.find_account()
        self._folder = folder / "pgbouncer"
        self._folder.mkdir()
        config = self._folder / "pgbouncer.ini"
        config.write_text(_configure(dsn, self.port, pool_size, settings))
        for path in (self._folder, config):
            self._account.take_ownership(path)
        self._account.allow_entry(config)
        self._command = [program, "-q", str(config)]
        self._log: IO[bytes] = (folder / "pgbouncer.log").open("ab")
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdout=self._log, stderr=self._log, cwd="/", **self._account.arguments
        )
        deadline = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert self._process.poll() is None, Path(self._log.name).read_text()
                assert time.monotonic() < deadline
                time.sleep(0.02)

    def stop(self) -> None:
        """Stops at once without waiting for clients, like a pooler that is replaced."""
        self._process.terminate()
        self._process.wait(10)

    def close(self) -> None:
        self.stop()
        self._log.close()

    def command(self, text: str) -> None:
        with psycopg.connect(self.dsn.replace("/ibid", "/pgbouncer"), autocommit=True) as console:
            result = console.pgconn.exec_(text.encode())
            assert result.status == psycopg.pq.ExecStatus.COMMAND_OK, result.error_message


def _configure(dsn: str, port: int, pool_size: int, settings: dict[str, str]) -> str:
    target = psycopg.conninfo.conninfo_to_dict(dsn)
    place = " ".join(f"{name}={target[name]}" for name in ("host", "port", "dbname", "user"))
    chosen = {
        "listen_addr": "127.0.0.1",
        "listen_port": str(port),
        "unix_socket_dir": "",
        "auth_type": "any",
        "admin_users": "anybody",
        "pool_mode": "transaction",
        "default_pool_size": str(pool_size),
        "max_client_conn": "200",
        **settings,
    }
    lines = "\n".join(f"{name} = {value}" for name, value in chosen.items())
    return f"[databases]\nibid = {place}\n\n[pgbouncer]\n{lines}\n"


@contextmanager
def run_pooler(dsn: str, folder: Path, *, pool_size: int = 5, **settings: str) -> Iterator[Pooler]:
    pooler = Pooler(dsn, folder, pool_size=pool_size, **settings)
    try:
        yield pooler
    finally:
        pooler.close()
