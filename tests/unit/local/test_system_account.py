"""The permissions that root gives the server's account: to pass through folders, and no more."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from functions.local.database.system_account import SystemAccount

OTHER = SystemAccount(uid=12345, gid=12345, is_other=True)
OURSELVES = SystemAccount(uid=12345, gid=12345, is_other=False)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with the modes of `umask 077`; not pytest's own, whose parents would be opened."""
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


def test_parent_folders_can_be_passed_through_and_not_listed(folder: Path) -> None:
    before = modes(folder)
    OTHER.open_way(folder / "a" / "data")
    assert {name: mode for name, mode in modes(folder).items() if mode != before[name]} == {".": "701", "a": "701"}


def test_programs_can_be_read_and_run(folder: Path) -> None:
    OTHER.open_programs(folder / "a")
    assert modes(folder) == {
        ".": "701",
        "secret": "600",
        "a": "705",
        "a/bin": "705",
        "a/bin/postgres": "705",
        "a/lib": "705",
        "a/lib/vector.so": "604",
    }


def test_nothing_is_opened_when_the_account_is_our_own(folder: Path) -> None:
    before = modes(folder)
    OURSELVES.open_way(folder / "a" / "data")
    OURSELVES.open_programs(folder / "a")
    assert modes(folder) == before
