"""Makes text storable in Postgres."""

from __future__ import annotations

import re

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Replaces what Postgres cannot store (NUL, lone surrogates) with U+FFFD; the length stays the same."""
    return _UNSTORABLE.sub("\ufffd", text) if _UNSTORABLE.search(text) else text
