"""Removes the files of documents whose rows are gone."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from functions.core import errors, ports

_log = logging.getLogger(__name__)


def discard(objects: ports.ObjectStore, paths: Sequence[str]) -> int | None:
    """Removes files and returns their number; None if the storage fails, which leaves them to the sweeper."""
    try:
        return objects.remove(paths)
    except errors.IbidError as exc:
        _log.warning("%d files of deleted documents are left to the sweeper: %s", len(paths), exc.message)
        return None
