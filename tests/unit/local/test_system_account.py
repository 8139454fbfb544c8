"""Which permissions root gives to the account that runs the server, and no others."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from functions.local.database.system_account import SystemAccount

OTHER = SystemAccount(uid=12345, gid=12345, is_other=True)
CURRENT = SystemAccount(uid=12345, gid=12345, is_other=False)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Folders as `umask 077` creates them; outside pytest's folder, whose parents would be changed."""
    with tempfile.TemporaryDirectory() as name:
        for path in ("a", "a/lib", "a/bin"):
            (Path(name) / path).mkdir(mode=0o700)
        for path, mode in {"a/bin/postgres": 0o700, "a/lib/vector.so": 0o600, "secret": 0o600}.items():
            (Path(name) / path).write_text("x")
            (Path(name) / path).chmod(mode)
        yield Path(name)


def modes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): oct(path.stat().st_mode & 0o777)[2:] for path in (folder, *folder.rglob("*"))
    }


def test_folders_above_can_be_entered_and_not_listed(folder: Path) -> None:
    before = modes(folder)
    OTHER.allow_entry(folder / "a" / "data")
    assert {name: mode for name, mode in modes(folder).items() if mode != before[name]} == {".": "701", "a": "701"}


def test_programs_can_be_read_and_run(folder: Path) -> None:
    OTHER.allow_execution(folder / "a")
    assert modes(folder) == {
        ".": "701",
        "secret": "600",
        "a": "705",
        "a/bin": "705",
        "a/bin/postgres": "705",
        "a/lib": "705",
        "a/lib/vector.so": "604",
    }


def test_no_permission_changes_for_the_current_user(folder: Path) -> None:
    before = modes(folder)
    CURRENT.allow_entry(folder / "a" / "data")
    CURRENT.allow_execution(folder / "a")
    assert modes(folder) == before
