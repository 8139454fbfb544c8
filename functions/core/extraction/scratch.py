"""Temporary folders whose names contain a process id, so that the folders of killed processes can be found."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NAME = re.compile(r"ibid-(\d+)-\w+")

_open_folders: set[str] = set()


@contextmanager
def open_folder() -> Iterator[str]:
    """Creates a folder for this process, yields its path, and removes it at the end of the block."""
    with tempfile.TemporaryDirectory(prefix=f"ibid-{os.getpid()}-") as folder:
        _open_folders.add(Path(folder).name)
        try:
            yield folder
        finally:
            _open_folders.discard(Path(folder).name)


def remove_lost_folders() -> int:
    """Removes the folders of killed processes, which may hold copies of users' documents; returns their number.

    In a restarted container, a killed process may have had the same id as this one.
    """
    lost = [path for path in Path(tempfile.gettempdir()).glob("ibid-*") if _is_lost(path.name)]
    for path in lost:
        shutil.rmtree(path, ignore_errors=True)  # folders of other system users cannot be removed
    return len(lost)


def is_alive(process_id: int) -> bool:
    """Whether a process with this id runs on this machine, whoever owns it."""
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _is_lost(name: str) -> bool:
    match = _NAME.fullmatch(name)
    if match is None or name in _open_folders:
        return False
    process_id = int(match.group(1))
    return process_id == os.getpid() or not is_alive(process_id)
