"""Removes the line breaks of a page from text that people read."""

from __future__ import annotations

import re

_HYPHENATED = re.compile(r"([^\W\d_]+)(?:[-\u2010][^\S\n]*\n\s*|\u00ad\s*)(?=([^\W\d_]+))")

_CUT_PATH = re.compile(r"(?<=\S/)[^\S\n]*\n\s*")


def unwrap(text: str, page_text: str = "") -> str:
    """`text` on one line, its cut words and paths joined; a word that `page_text` writes with a hyphen keeps it."""

    def join(match: re.Match[str]) -> str:
        hyphenated = f"{match[1]}-{match[2]}"
        is_compound = match[2][0].isupper() or hyphenated.lower() in page_text.lower()
        return f"{match[1]}-" if is_compound else match[1]

    return " ".join(_CUT_PATH.sub("", _HYPHENATED.sub(join, text)).split())
