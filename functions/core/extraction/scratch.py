"""Folders for files being worked on, named after the process, so that those of killed processes can be told."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NAME = re.compile(r"ibid-(\d+)-\w+")


_mine: set[str] = set()


@contextmanager
def open_folder() -> Iterator[str]:
    """A folder of this process, removed at the end of the block."""
    with tempfile.TemporaryDirectory(prefix=f"ibid-{os.getpid()}-") as folder:
        _mine.add(Path(folder).name)
        try:
            yield folder
        finally:
            _mine.discard(Path(folder).name)


def remove_lost_folders() -> int:
    """Removes what killed processes left, which may be copies of people's documents; returns how many folders.

    Where process ids begin anew, as in a container, one of them may have had ours.
    """
    lost = [path for path in Path(tempfile.gettempdir()).glob("ibid-*") if _is_lost(path.name)]
    for path in lost:
        shutil.rmtree(path, ignore_errors=True)  # another user's is theirs to remove
    return len(lost)


def is_alive(process_id: int) -> bool:
    """Whether a process of this machine is there, whoever owns it."""
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _is_lost(name: str) -> bool:
    match = _NAME.fullmatch(name)
    if match is None or name in _mine:
        return False
    process_id = int(match.group(1))
    return process_id == os.getpid() or not is_alive(process_id)
