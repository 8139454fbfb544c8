"""Text that Postgres can store."""

from __future__ import annotations

import re

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Replaces each character Postgres cannot store (NUL, lone surrogates) by U+FFFD; the length never changes."""
    return _UNSTORABLE.sub("\ufffd", text) if _UNSTORABLE.search(text) else text
