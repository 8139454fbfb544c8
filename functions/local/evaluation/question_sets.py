"""Reads question sets: folders with `corpus.jsonl` (or .gz) and `queries*.jsonl`.

A corpus line is a passage (`passage_id, doc_id, title, text`) or a file (`doc_id, path`). A query line has `query_id`,
`question`, `evidence` (`doc_id` with `page` or `passage_id`), `lang`, and `answer` or `answers` where they are known.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from functions.core import errors

DEFAULT_ROOT = Path(__file__).resolve().parents[4] / "shared" / "eval"
UNANSWERABLE = "unanswerable_"
UNANSWERABLE_INDEX = "unanswerable_index.json"

Unit = str | tuple[str, int]


@dataclass(frozen=True, slots=True)
class Passage:
    """A text that a search finds as a whole; `doc_id` is the document that contains it, empty if the set has none."""

    id: str
    title: str | None
    text: str
    doc_id: str = ""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A document that a search finds page by page."""

    doc_id: str
    path: Path


@dataclass(frozen=True, slots=True)
class Question:
    """A question and what answers it.

    `gold` holds the passage ids or (doc_id, page) pairs that answer it, and is empty when nothing in the set does.
    `documents` are the documents of these units. Each of `answers` is a correct answer in the words of a unit.
    """

    id: str
    text: str
    lang: str
    gold: frozenset[Unit]
    documents: frozenset[str] = frozenset()
    answers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The passages or files to index, and the questions to ask."""

    name: str
    passages: tuple[Passage, ...]
    files: tuple[SourceFile, ...]
    questions: tuple[Question, ...]


def data_root() -> Path:
    """The folder that holds the sets: IBID_EVAL_DATA or its default."""
    return Path(os.environ.get("IBID_EVAL_DATA") or DEFAULT_ROOT)


def list_sets(root: Path) -> list[str]:
    """Lists the names of all sets below `root`."""
    folders = sorted({path.parent for path in root.rglob("corpus.jsonl*")})
    names = [str(folder.relative_to(root)) for folder in folders]
    return names + sorted(path.stem for path in root.glob(f"{UNANSWERABLE}??.jsonl"))


def read_set(name: str, *, root: Path | None = None, limit: int | None = None) -> QuestionSet:
    """Reads the set in the folder `name`, or of that name below `root`.

    `limit` takes that many questions, spread evenly over the set. Raises NotFoundError when there is no such set.
    """
    root = data_root() if root is None else root
    folder = next((path for path in (Path(name), root / name) if path.is_dir()), None)
    if folder is not None:
        found = _read_folder(folder)
    elif name.startswith(UNANSWERABLE) and (root / f"{name}.jsonl").is_file():
        found = _read_unanswerable(root, name)
    else:
        raise errors.NotFoundError(f"There is no question set {name!r} in {root}.")
    return replace(found, questions=sample(found.questions, limit))


def _read_folder(folder: Path) -> QuestionSet:
    corpus = next(iter(sorted(folder.glob("corpus.jsonl*"))), None)
    if corpus is None:
        raise errors.NotFoundError(f"There is no corpus.jsonl in {folder}.")
    rows = list(read_lines(corpus))
    passages = [
        Passage(row["passage_id"], row.get("title"), row["text"], row.get("doc_id") or "")
        for row in rows
        if "text" in row
    ]
    files = [SourceFile(row["doc_id"], folder / row["path"]) for row in rows if "path" in row]
    queries = [row for path in sorted(folder.glob("queries*.jsonl*")) for row in read_lines(path)]
    level = "passage_id" if passages else "page"
    return QuestionSet(folder.name, tuple(passages), tuple(files), tuple(_read_question(row, level) for row in queries))


def _read_unanswerable(root: Path, name: str) -> QuestionSet:
    """Reads the documents of a page set that the index lists, the questions they answer, and others they do not."""
    index = json.loads((root / UNANSWERABLE_INDEX).read_text())[name.removeprefix(UNANSWERABLE)]["pages"]
    whole = _read_folder(root / index["set"])
    indexed = set(index["index_doc_ids"])
    answerable = [q for q in whole.questions if q.gold and all(unit[0] in indexed for unit in q.gold)]
    unanswerable = [_read_question(row, "page") for row in read_lines(root / f"{name}.jsonl")]
    files = [file for file in whole.files if file.doc_id in indexed]
    return QuestionSet(name, (), tuple(files), (*answerable, *unanswerable))


def read_near_misses(folder: Path) -> tuple[Question, ...]:
    """Questions that no page of their document answers, although they sound as if one did; none without the file."""
    path = folder / "near_misses.jsonl"
    rows = list(read_lines(path)) if path.is_file() else []
    return tuple(
        Question(row["query_id"], row["question"], row["lang"], frozenset(), frozenset({row["scope_doc_id"]}))
        for row in rows
    )


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Reads a file with a JSON object in each line, compressed or not."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.strip())


def _read_question(row: dict[str, Any], level: str) -> Question:
    evidence = [item for item in row["evidence"] if item.get(level) is not None]
    gold = [item[level] if level == "passage_id" else (item["doc_id"], int(item["page"])) for item in evidence]
    documents = frozenset(item["doc_id"] for item in evidence if "doc_id" in item)
    answers = row.get("answers") or [row["answer"]] if row.get("answer") else []
    lang = row.get("lang") or "en"
    return Question(row["query_id"], row["question"], lang, frozenset(gold), documents, tuple(answers))


def sample(questions: Sequence[Question], limit: int | None) -> tuple[Question, ...]:
    """Takes `limit` of the questions, spread evenly, or all of them."""
    count = len(questions) if limit is None else min(limit, len(questions))
    return tuple(questions[place * len(questions) // count] for place in range(count))
