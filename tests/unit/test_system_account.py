"""What root opens to the account that runs the server: passing through, and no more."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from functions.local.system_account import SystemAccount

OTHER = SystemAccount(uid=12345, gid=12345, is_other=True)
OURSELVES = SystemAccount(uid=12345, gid=12345, is_other=False)


@pytest.fixture
def folder() -> Iterator[Path]:
    """As `umask 077` leaves it; not pytest's own folder, whose parents would be opened."""
    with tempfile.TemporaryDirectory() as name:
        for path, mode in {"a/lib/inner": 0o700, "a/bin": 0o700}.items():
            (Path(name) / path).mkdir(mode=mode, parents=True)
        for path, mode in {"a/bin/postgres": 0o700, "a/lib/vector.so": 0o600, "secret": 0o600}.items():
            (Path(name) / path).write_text("x")
            (Path(name) / path).chmod(mode)
        (Path(name) / "a").chmod(0o700)
        yield Path(name)


def modes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): oct(path.stat().st_mode & 0o777)[2:] for path in (folder, *folder.rglob("*"))
    }


def test_folders_above_can_be_passed_and_not_listed(folder: Path) -> None:
    before = modes(folder)
    OTHER.open_way(folder / "a" / "data")
    assert {name: mode for name, mode in modes(folder).items() if mode != before[name]} == {".": "701", "a": "701"}


def test_programs_can_be_read_and_run(folder: Path) -> None:
    OTHER.open_programs(folder / "a")
    found = modes(folder)
    assert (found["a/bin/postgres"], found["a/lib/vector.so"], found["a/lib"]) == ("705", "604", found["a/bin"])
    assert found["a/bin"].endswith("5")
    assert (found["."], found["secret"]) == ("701", "600")


def test_nothing_is_opened_for_ourselves(folder: Path) -> None:
    before = modes(folder)
    OURSELVES.open_way(folder / "a" / "data")
    OURSELVES.open_programs(folder / "a")
    assert modes(folder) == before
