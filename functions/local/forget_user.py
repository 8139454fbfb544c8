"""Deletes all data of one user from an installation, and prints how many rows and files were deleted."""

from __future__ import annotations

import json
import sys
from collections import Counter
from uuid import UUID

from functions.adapters import auth
from functions.adapters.postgres import users
from functions.core import errors
from functions.local.server.serve import open_services
from functions.runtime.config import Config
from functions.runtime.services import Services

BATCH_SIZE = 100


def run(config: Config, user: str, is_confirmed: bool) -> int:
    """Runs `forget-user USER_ID`; prints the numbers of removed rows and files as JSON, and returns the exit code."""
    with open_services(config) as services:
        user_id = find_user_id(services, user)
        if not is_confirmed and not _confirm(user_id):
            print("Nothing was deleted.", file=sys.stderr)
            return 1
        print(json.dumps({"user_id": user_id, "removed": forget_user(services, user_id)}))
    return 0


def find_user_id(services: Services, user: str) -> str:
    """The id of a user, given as an id or, on a laptop, as a name; raises InvalidInputError."""
    try:
        return str(UUID(user))
    except ValueError:
        if services.is_local and user.strip():
            return auth.local_user_id(user)
        raise errors.InvalidInputError("This is not the id of a user. Give the id that Supabase Auth shows.") from None


def forget_user(services: Services, user_id: str, batch_size: int = BATCH_SIZE) -> dict[str, int]:
    """Deletes the user's rows and files in batches; returns how many of each kind were removed.

    Rows are deleted before files, because the sweeper removes files without a row if this process crashes in between.
    It can be run again.
    """
    removed: Counter[str] = Counter()
    is_done = False
    while not is_done:
        receipt = users.forget_user(services.database, user_id, batch_size)
        is_done = receipt.pop("is_done")
        paths = receipt.pop("object_paths")
        if paths:
            removed["objects"] += services.objects.remove(paths)
        removed.update(receipt)
    return dict(sorted(removed.items()))


def _confirm(user_id: str) -> bool:
    if not sys.stdin.isatty():
        raise errors.InvalidInputError(
            "Deletion is permanent, and without a terminal nobody can confirm it. Add --yes to confirm."
        )
    return input(f"Permanently delete all data of {user_id}? Type the id to confirm: ").strip() == user_id
