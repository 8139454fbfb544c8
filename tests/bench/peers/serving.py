"""Answers the requests of `processes`: lines of JSON on standard input, in the environment of the measured system.

Only the system's own call is timed: `open` has connected it, and warm-up questions were asked before.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Protocol

from tests.bench.peers import datasets


class Store(Protocol):
    """A search system as the benchmark sees it."""

    def load(self, dsn: str, dataset: datasets.Dataset, language: str) -> None:
        """Fills an empty database; `language` is a text search configuration, "english" or "french"."""

    def open(self, dsn: str, dataset: datasets.Dataset, language: str, depth: int) -> None:
        """Connects to a filled database; `depth` is the number of results per question."""

    def ask(self, text: str, vector: Any, owner: str | None) -> list[str]:
        """Returns the passages found, best first, of one owner or of all."""


def serve(store: Store) -> None:
    """Answers until the input ends; what the libraries print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    dataset: datasets.Dataset | None = None
    for line in sys.stdin:
        message = json.loads(line)
        command, answer = message.pop("do"), {}
        if command == "ask":
            assert dataset is not None
            number = message["question"]
            text, vector = dataset.questions[number], dataset.question_vectors[number]
            start = time.perf_counter()
            passages = store.ask(text, vector, message["owner"])
            answer = {"ms": 1000 * (time.perf_counter() - start), "passages": passages}
        else:
            dataset = datasets.read(Path(message.pop("folder")))
            getattr(store, command)(message.pop("dsn"), dataset, **message)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
