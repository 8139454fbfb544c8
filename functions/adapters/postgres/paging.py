"""Paging by cursor: the opaque cursor holds the sort keys of the last row of a page."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from functions.core import errors

Row = dict[str, Any]
First = TypeVar("First")
Second = TypeVar("Second")


def read_time_cursor(cursor: str | None) -> tuple[datetime | None, UUID | None]:
    """The time and id of the last row; (None, None) without a cursor. Raises InvalidInputError."""
    return _read(cursor, datetime.fromisoformat, UUID) if cursor else (None, None)


def read_message_cursor(cursor: str | None) -> tuple[int | None, int | None]:
    """The positions of the question and of the message; (None, None) without a cursor. Raises InvalidInputError."""
    return _read(cursor, _read_position, _read_position) if cursor else (None, None)


def read_change_cursor(cursor: str | None) -> tuple[datetime | None, int | None]:
    """The time and number of the last row; (None, None) without a cursor. Raises InvalidInputError."""
    return _read(cursor, datetime.fromisoformat, _read_position) if cursor else (None, None)


def cut_page(rows: list[Row], limit: int, *keys: str) -> tuple[list[Row], str | None]:
    """The first `limit` rows of `limit` + 1 that were read, and the cursor of the next page if there is one."""
    page = rows[:limit]
    return page, _write(*(page[-1][key] for key in keys)) if len(rows) > limit else None


def _write(*values: object) -> str:
    return base64.urlsafe_b64encode(json.dumps([str(value) for value in values]).encode()).decode().rstrip("=")


def _read(
    cursor: str, read_first: Callable[[str], First], read_second: Callable[[str], Second]
) -> tuple[First, Second]:
    try:
        first, second = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if not (isinstance(first, str) and isinstance(second, str)):
            raise TypeError
        return read_first(first), read_second(second)
    except (ValueError, TypeError) as exc:
        message = "The cursor is not valid. Send next_cursor of the previous page unchanged."
        raise errors.InvalidInputError(message) from exc


def _read_position(text: str) -> int:
    position = int(text)
    if not 0 <= position < 1 << 63:  # the range of a Postgres bigint
        raise ValueError
    return position
