"""Opaque page cursors: where the last row of a page stood in its order."""

from __future__ import annotations

import base64
import json

from functions.core import errors


def encode(*values: object) -> str:
    return base64.urlsafe_b64encode(json.dumps([str(v) for v in values]).encode()).decode().rstrip("=")


def decode(cursor: str, length: int) -> list[str]:
    """Raises InvalidInputError for anything `encode` did not make."""
    try:
        values = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if (
            isinstance(values, list)
            and len(values) == length
            and all(isinstance(v, str) and v.isascii() for v in values)
        ):
            return values
    except ValueError:
        pass
    raise errors.InvalidInputError("The cursor is not valid: use next_cursor of the page before, unchanged.")
