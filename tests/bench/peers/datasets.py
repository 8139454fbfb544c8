"""The data and questions that every system gets, as files; every environment can read them with numpy alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Unit:
    """A row to index: its text, its owner, and the passage that a hit on it counts for."""

    passage: str
    text: str
    owner: str


@dataclass(frozen=True, slots=True)
class Dataset:
    """Units and questions, and their unit vectors, float32 (n, 384), in the same order."""

    units: tuple[Unit, ...]
    vectors: Any
    questions: tuple[str, ...]
    question_vectors: Any


def write(folder: Path, dataset: Dataset) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    _write_lines(folder / "units.jsonl", [asdict(unit) for unit in dataset.units])
    _write_lines(folder / "questions.jsonl", list(dataset.questions))
    np.save(folder / "vectors.npy", np.asarray(dataset.vectors, np.float32))
    np.save(folder / "question_vectors.npy", np.asarray(dataset.question_vectors, np.float32))
    return folder


def read(folder: Path) -> Dataset:
    return Dataset(
        tuple(Unit(**row) for row in _read_lines(folder / "units.jsonl")),
        np.load(folder / "vectors.npy"),
        tuple(_read_lines(folder / "questions.jsonl")),
        np.load(folder / "question_vectors.npy"),
    )


def _write_lines(path: Path, rows: Sequence[Any]) -> None:
    # JSON escapes every line separator, so a row is one line.
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
