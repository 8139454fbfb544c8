"""The system user the embedded server runs as: we ourselves, or an ordinary user when we are root."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from functions.core import errors

NAME_UNDER_ROOT = "pgserver"


@dataclass(frozen=True, slots=True)
class SystemAccount:
    """Who runs the server; `is_other` when that is not the user of this process."""

    uid: int
    gid: int
    is_other: bool

    @property
    def arguments(self) -> dict[str, Any]:
        """What makes `subprocess.run` run as this account."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.is_other else {}

    def give(self, path: Path) -> None:
        """Makes `path`, which we have just created, the account's own."""
        if self.is_other:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def open_way(self, path: Path) -> None:
        """Lets the account pass through the folders above `path`, and changes those only that it cannot pass."""
        if not self.is_other:
            return
        for folder in path.parents:
            mode = folder.stat().st_mode
            if not mode & 0o001 and folder.stat().st_uid != self.uid:
                folder.chmod(mode | 0o001)

    def open_programs(self, folder: Path) -> None:
        """Lets the account run what is in `folder`; installed under a strict umask it is closed to others."""
        if not self.is_other:
            return
        self.open_way(folder)
        if (folder / "bin" / "postgres").stat().st_mode & 0o005 == 0o005 and folder.stat().st_mode & 0o005 == 0o005:
            return
        for path in (folder, *folder.rglob("*")):
            mode = path.stat().st_mode
            path.chmod(mode | (0o005 if mode & 0o100 else 0o004))


def for_servers() -> SystemAccount:
    """Ourselves; as root the user `pgserver`, created when missing. Raises DatabaseUnavailableError if that fails."""
    if os.geteuid() != 0:
        return SystemAccount(os.geteuid(), os.getegid(), is_other=False)
    try:
        entry = pwd.getpwnam(NAME_UNDER_ROOT)
    except KeyError:
        entry = _create()
    return SystemAccount(entry.pw_uid, entry.pw_gid, is_other=True)


def _create() -> pwd.struct_passwd:
    useradd, adduser = shutil.which("useradd"), shutil.which("adduser")
    if useradd:
        command = [useradd, "--system", "--user-group", "--no-create-home", NAME_UNDER_ROOT]
    elif adduser:  # Alpine and other BusyBox systems
        command = [adduser, "-S", "-D", "-H", NAME_UNDER_ROOT]
    else:
        raise errors.DatabaseUnavailableError(
            f"Postgres does not run as root, and no user {NAME_UNDER_ROOT!r} could be created. Run as an ordinary user."
        )
    subprocess.run(command, capture_output=True, check=False)  # a second process may have been quicker
    try:
        return pwd.getpwnam(NAME_UNDER_ROOT)
    except KeyError as exc:
        raise errors.DatabaseUnavailableError(
            f"Postgres does not run as root, and creating the user {NAME_UNDER_ROOT!r} failed. Run as an ordinary user."
        ) from exc
