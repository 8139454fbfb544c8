"""Removes the line breaks of a page from text that people read."""

from __future__ import annotations

import re

_HYPHENATED = re.compile(r"([^\W\d_]+)(?:[-\u2010][^\S\n]*\n\s*|\u00ad\s*)(?=([^\W\d_]+))")


def unwrap(text: str, page_text: str = "") -> str:
    """`text` on one line, its hyphenated words joined, except those that `page_text` also writes with a hyphen."""

    def join(match: re.Match[str]) -> str:
        hyphenated = f"{match[1]}-{match[2]}"
        is_compound = match[2][0].isupper() or hyphenated.lower() in page_text.lower()
        return f"{match[1]}-" if is_compound else match[1]

    return " ".join(_HYPHENATED.sub(join, text).split())
