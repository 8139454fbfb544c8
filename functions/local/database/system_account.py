"""Finds the system user that runs the embedded server, because Postgres refuses to run as root.

For root it is the user `pgserver`. The folders above the data and the programs are then made accessible to it, where
they are not, with a permission that does not allow listing them (o+x).
"""

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
    """The user that runs the server; `is_other` when it is not the user of this process."""

    uid: int
    gid: int
    is_other: bool

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments with which `subprocess.run` runs a command as this account."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.is_other else {}

    def take_ownership(self, path: Path) -> None:
        """Makes the account the owner of `path`, which this process has just created."""
        if self.is_other:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def allow_entry(self, path: Path) -> None:
        """Lets the account enter the folders above `path`; changes only those that it cannot enter."""
        if not self.is_other:
            return
        for folder in path.parents:
            mode = folder.stat().st_mode
            if not mode & 0o001 and folder.stat().st_uid != self.uid:
                folder.chmod(mode | 0o001)

    def allow_execution(self, folder: Path) -> None:
        """Lets the account run the programs in `folder`, which only their owner may run after a strict umask."""
        if not self.is_other:
            return
        self.allow_entry(folder)
        if (folder / "bin" / "postgres").stat().st_mode & 0o005 == 0o005 and folder.stat().st_mode & 0o005 == 0o005:
            return
        for path in (folder, *folder.rglob("*")):
            mode = path.stat().st_mode
            path.chmod(mode | (0o005 if mode & 0o100 else 0o004))


def find_account() -> SystemAccount:
    """Finds the account: the current user, or for root the user `pgserver`, which is created when it is missing.

    Raises DatabaseUnavailableError when it cannot be created.
    """
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
    subprocess.run(command, capture_output=True, check=False)  # another process may have created it first
    try:
        return pwd.getpwnam(NAME_UNDER_ROOT)
    except KeyError as exc:
        raise errors.DatabaseUnavailableError(
            f"Postgres does not run as root, and creating the user {NAME_UNDER_ROOT!r} failed. Run as an ordinary user."
        ) from exc
