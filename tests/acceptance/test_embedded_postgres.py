"""The embedded database under the conditions of real machines: odd paths, killed processes, other users."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import psycopg
import pytest

from functions.core import errors
from functions.local.database import embedded_postgres, system_account
from tests.support import requirements

FAST = {"fsync": "off"}  # only fsync is off: commits must survive the kill of a process
HOLD_SERVER = """
import sys
from pathlib import Path
from functions.local.database import embedded_postgres
with embedded_postgres.start(Path(sys.argv[1]), settings=embedded_postgres.FAST_SETTINGS) as server:
    print(server.pid, server.dsn, flush=True)
    sys.stdin.read()
"""
OTHER_UID = 65533


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not pytest's folder: root's is closed to the server's user, and the server would open it to others."""
    with tempfile.TemporaryDirectory(prefix="ibid test ") as name:
        yield Path(name).resolve()


@pytest.fixture
def hold(folder: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Starts other processes that use the server until their standard input is closed."""
    with ExitStack() as stack:

        def start() -> subprocess.Popen[str]:
            command = [sys.executable, "-W", "error", "-c", HOLD_SERVER, str(folder)]
            process = stack.enter_context(
                subprocess.Popen(
                    command, cwd=requirements.REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            )
            stack.callback(process.kill)
            return process

        yield start


def read_announcement(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The pid and DSN that a holding process prints when its server runs."""
    assert process.stdout is not None
    pid, dsn = process.stdout.readline().split()
    return int(pid), dsn


def ask(dsn: str, question: str = "select 1") -> object:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(question)
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None


def socket_of(dsn: str) -> Path:
    return Path(str(psycopg.conninfo.conninfo_to_dict(dsn)["host"])) / ".s.PGSQL.5432"


def is_gone(pid: int, patience: float = 10) -> bool:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


def kill_server(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    assert is_gone(pid)


@pytest.mark.parametrize("major", [18, 16])
def test_it_runs_the_requested_version_with_pgvector(folder: Path, major: int) -> None:
    with embedded_postgres.start(folder, major=major, settings=FAST) as server:
        assert str(ask(server.dsn, "show server_version")).startswith(f"{major}.")
        ask(server.dsn, "create extension vector")
        assert ask(server.dsn, "select '[3,4]'::vector <-> '[0,0]'") == 5.0


def test_it_has_settings_for_a_laptop(folder: Path) -> None:
    with embedded_postgres.start(folder) as server:
        names = ("fsync", "jit", "listen_addresses", "max_connections", "server_encoding")
        assert {name: ask(server.dsn, f"show {name}") for name in names} == {
            "fsync": "on",
            "jit": "off",
            "listen_addresses": "",
            "max_connections": "100",
            "server_encoding": "UTF8",
        }
        assert ask(server.dsn, "select lower('ÉTÉ')") == "été"


@pytest.mark.parametrize(
    "name", ["two words", 'it\'s $HOME "quoted" `x`; &', "été", "x" * 200], ids=["space", "shell", "accents", "long"]
)
def test_it_accepts_any_path(folder: Path, name: str) -> None:
    with embedded_postgres.start(folder / name, settings=FAST) as server:
        assert ask(server.dsn) == 1


def test_it_ignores_postgres_variables_of_the_shell(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PGPORT": "5999", "PGDATA": "/nowhere", "PGDATABASE": "nothing", "PGUSER": "nobody"}.items():
        monkeypatch.setenv(name, value)
    with embedded_postgres.start(folder, settings=FAST) as server:
        assert ask(server.dsn) == 1


def test_it_keeps_its_data(folder: Path) -> None:
    with embedded_postgres.start(folder, settings=FAST) as server:
        ask(server.dsn, "create table kept as select 7 as n")
        first = server.pid
    assert first is not None
    assert is_gone(first)
    with embedded_postgres.start(folder, settings=FAST) as server:
        assert ask(server.dsn, "select n from kept") == 7


def test_it_stops_with_its_last_user(folder: Path) -> None:
    one = embedded_postgres.start(folder, settings=FAST)
    two = embedded_postgres.start(folder, settings=FAST)
    one.stop()
    one.stop()
    assert ask(two.dsn) == 1
    two.stop()
    assert two.pid is None


def test_it_survives_a_killed_owner_and_stops_with_the_next(
    folder: Path, hold: Callable[[], subprocess.Popen[str]]
) -> None:
    owner = hold()
    pid, dsn = read_announcement(owner)
    ask(dsn, "create table kept as select 7 as n")
    owner.kill()
    owner.wait()
    with embedded_postgres.start(folder, settings=FAST) as server:
        assert (server.pid, ask(server.dsn, "select n from kept")) == (pid, 7)
    assert is_gone(pid), "a dead process must not keep the server alive"


def test_it_runs_on_while_another_process_uses_it(folder: Path, hold: Callable[[], subprocess.Popen[str]]) -> None:
    user = hold()
    pid, dsn = read_announcement(user)
    killed = hold()
    assert read_announcement(killed)[0] == pid
    killed.kill()
    killed.wait()
    embedded_postgres.start(folder, settings=FAST).stop()
    assert ask(dsn) == 1
    user.communicate("")
    assert is_gone(pid)


def test_a_forked_child_does_not_stop_it(folder: Path) -> None:
    with embedded_postgres.start(folder, settings=FAST) as server:
        child = os.fork()
        if child == 0:
            server.stop()
            os._exit(0)
        os.waitpid(child, 0)
        assert ask(server.dsn) == 1


def test_it_recovers_after_a_kill_of_the_server(folder: Path) -> None:
    first = embedded_postgres.start(folder, settings=FAST)
    ask(first.dsn, "create table kept as select 7 as n")
    assert first.pid is not None
    kill_server(first.pid)
    with embedded_postgres.start(folder, settings=FAST) as server:
        assert ask(server.dsn, "select n from kept") == 7
    first.stop()


def test_a_later_process_with_the_same_pid_is_not_mistaken_for_the_server(folder: Path) -> None:
    first = embedded_postgres.start(folder, settings=FAST)
    assert first.pid is not None
    kill_server(first.pid)
    with ExitStack() as stack:
        # As the server's own user: Postgres itself already ignores the processes of others.
        other = stack.enter_context(subprocess.Popen(["sleep", "60"], **system_account.find_account().arguments))
        stack.callback(other.kill)
        for file in (folder / "data" / "postmaster.pid", socket_of(first.dsn).with_suffix(".5432.lock")):
            file.write_text("\n".join([str(other.pid), *file.read_text().splitlines()[1:]]) + "\n")
        with embedded_postgres.start(folder, settings=FAST) as server:
            assert server.pid not in (None, other.pid)
            assert ask(server.dsn) == 1
        assert other.poll() is None, "a stranger's process was stopped"
    first.stop()


@pytest.mark.parametrize("rest", ["", "123"], ids=["empty", "half"])
def test_it_starts_with_a_half_written_pid_file(folder: Path, rest: str) -> None:
    embedded_postgres.start(folder, settings=FAST).stop()
    (folder / "data" / "postmaster.pid").write_text(rest)
    with embedded_postgres.start(folder, settings=FAST) as server:
        assert ask(server.dsn) == 1


def test_an_interrupted_creation_is_restarted(folder: Path) -> None:
    (folder / "data.new" / "base").mkdir(parents=True)
    (folder / "data.new" / "PG_VERSION").write_text("18\n")
    with embedded_postgres.start(folder, settings=FAST) as server:
        assert ask(server.dsn) == 1


def test_it_restarts_when_its_socket_was_removed(folder: Path) -> None:
    first = embedded_postgres.start(folder, settings=FAST)
    shutil.rmtree(socket_of(first.dsn).parent)
    with embedded_postgres.start(folder, settings=FAST) as server:
        assert ask(server.dsn) == 1
        first.stop()


def test_processes_that_start_at_the_same_time_share_one_server(hold: Callable[[], subprocess.Popen[str]]) -> None:
    holders = [hold() for _ in range(4)]
    pids = {read_announcement(holder)[0] for holder in holders}
    assert len(pids) == 1
    for holder in holders:
        holder.communicate("")
    assert [holder.returncode for holder in holders] == [0] * 4
    assert is_gone(pids.pop())


def test_it_refuses_the_data_of_another_version(folder: Path) -> None:
    embedded_postgres.start(folder, major=16, settings=FAST).stop()
    with pytest.raises(errors.DatabaseUnavailableError, match="created by Postgres 16; Postgres 18 cannot open it"):
        embedded_postgres.start(folder)


def test_it_reports_why_it_did_not_start(folder: Path) -> None:
    with pytest.raises(errors.DatabaseUnavailableError, match='invalid value for parameter "shared_buffers"'):
        embedded_postgres.start(folder, settings={**FAST, "shared_buffers": "a lot"})


def test_its_socket_is_private(folder: Path) -> None:
    with embedded_postgres.start(folder, settings=FAST) as server:
        facts = socket_of(server.dsn).parent.stat()
        assert (facts.st_uid, facts.st_mode & 0o777) == (system_account.find_account().uid, 0o700)
        assert (folder / "data").stat().st_mode & 0o777 == 0o700


def need_python_for_others() -> list[str]:
    """A command that runs this Python with these packages, also as another user."""
    requirements.need_root("become another user")
    packages = str(Path(psycopg.__file__).parent.parent)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        command = ["env", f"PYTHONPATH={packages}", python, "-W", "error"]
        try:
            code = "import psutil, psycopg, functions.local.database.embedded_postgres"
            run_as(OTHER_UID, [*command, "-c", code]).check_returncode()
        except (OSError, subprocess.CalledProcessError):
            continue
        return command
    return requirements.missing("a Python and packages that other users may read")


def run_as(uid: int, command: list[str], home: Path = Path("/")) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=requirements.REPOSITORY,
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
        user=uid,
        group=uid,
        extra_groups=[],
        capture_output=True,
        text=True,
    )


def test_other_users_cannot_connect(folder: Path) -> None:
    python = need_python_for_others()
    with embedded_postgres.start(folder, settings=FAST) as server:
        done = run_as(OTHER_UID, [*python, "-c", f"import psycopg; psycopg.connect({server.dsn!r})"])
    assert "Permission denied" in done.stderr


@pytest.mark.parametrize("major", [18, 16])
def test_it_runs_for_an_ordinary_user(folder: Path, major: int) -> None:
    """On a machine where root has used it before: files that root left must not get in the way."""
    python = need_python_for_others()
    embedded_postgres.start(folder / "root", settings=FAST, major=major).stop()
    nobody = pwd.getpwnam("nobody").pw_uid
    home = folder / "home"
    home.mkdir()
    os.chown(home, nobody, nobody)
    folder.chmod(0o755)
    code = (
        "from pathlib import Path; import psycopg; from functions.local.database import embedded_postgres\n"
        f"with embedded_postgres.start(Path.home() / 'my data', major={major}) as server:\n"
        "    with psycopg.connect(server.dsn) as connection:\n"
        "        print(connection.execute('select 42').fetchone())"
    )
    done = run_as(nobody, [*python, "-c", code], home)
    assert (done.stdout, done.stderr) == ("(42,)\n", "")


def test_it_reports_data_that_belongs_to_another_user(folder: Path) -> None:
    python = need_python_for_others()
    embedded_postgres.start(folder, settings=FAST).stop()
    folder.chmod(0o755)
    code = (
        "import sys, pathlib; from functions.local.database import embedded_postgres\n"
        "embedded_postgres.start(pathlib.Path(sys.argv[1]))"
    )
    assert "belongs to another system user" in run_as(OTHER_UID, [*python, "-c", code, str(folder)]).stderr
