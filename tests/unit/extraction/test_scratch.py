from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from functions.core.extraction import scratch


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_is_removed_after_its_block(temporary: Path) -> None:
    with scratch.open_folder() as folder:
        (Path(folder) / "original.pdf").write_bytes(b"%PDF-")
    assert list(temporary.iterdir()) == []


def test_only_the_folders_of_killed_processes_are_removed(temporary: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (temporary / f"ibid-{ended.pid}-abc" / "inside").mkdir(parents=True)
    (temporary / "ibid-notes").mkdir()
    with scratch.open_folder() as mine:
        assert scratch.remove_lost_folders() == 1
        assert sorted(path.name for path in temporary.iterdir()) == sorted([Path(mine).name, "ibid-notes"])
