"""The documents that the questions of this folder are about, as a question set."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from tests.eval.manuals.law import LAW
from tests.eval.manuals.packages import MANUALS

QUESTIONS: Final = Path(__file__).parent
FILES: Final = ("queries.jsonl", "near_misses.jsonl")


class Document(Protocol):
    """A PDF with pinned contents; `fetch` raises UnavailableError."""

    @property
    def doc_id(self) -> str: ...
    @property
    def file_name(self) -> str: ...
    def is_copy(self, pdf: bytes) -> bool: ...
    def fetch(self) -> bytes: ...


DOCUMENTS: Final[Sequence[Document]] = (*MANUALS, LAW)


def write_set(folder: Path, documents: Sequence[Document] = DOCUMENTS) -> None:
    """Makes `folder` a question set: the documents, fetched once, their `corpus.jsonl`, and links to the questions.

    Raises UnavailableError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for document in documents:
        target = folder / document.file_name
        if not target.is_file() or not document.is_copy(target.read_bytes()):
            target.write_bytes(document.fetch())
    rows = [{"doc_id": document.doc_id, "path": document.file_name} for document in documents]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(QUESTIONS / name)
