"""Folders for files being worked on, named after the process, so that those of killed processes can be told."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

_NAME = re.compile(r"ibid-(\d+)-\w+")


def open_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder of this process; use it in a `with` block, which removes it."""
    return tempfile.TemporaryDirectory(prefix=f"ibid-{os.getpid()}-")


def remove_lost_folders() -> int:
    """Removes what killed processes left, which may be copies of people's documents; returns how many folders."""
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
    return match is not None and not is_alive(int(match.group(1)))
