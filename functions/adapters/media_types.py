"""The type an object store announces for a stored file, by the ending we ourselves gave its path."""

from __future__ import annotations

UNKNOWN = "application/octet-stream"
BY_ENDING = {
    "pdf": "application/pdf",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "txt": "text/plain",
    "md": "text/markdown",
}


def of(path: str) -> str:
    return BY_ENDING.get(path.rpartition(".")[2], UNKNOWN)
