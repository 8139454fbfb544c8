"""The addresses of the page's files, which change with their contents."""

from __future__ import annotations

import re


def linked(html: str) -> list[str]:
    """The paths of the files that the page loads at its start."""
    return re.findall(r'(?:rel="stylesheet" href|<script type="module" src)="(/static/[^"]+)"', html)


def script_of(html: str) -> str:
    """The path of the page's script."""
    (path,) = [path for path in linked(html) if path.endswith(".js")]
    return path
