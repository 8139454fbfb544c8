"""Answers recorded questions again from the recorded replies, without a model: `python -m tests.eval.replay FILE`.

`make eval ARGS="SET --answers --record FILE"` writes such a file with a real model. A model server sends the replies
again, to the recorded passages, so that a change to how replies are read and cited shows in the printed table.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from functions.adapters.models.openai_chat import OpenAIChatModel
from functions.adapters.models.openai_connection import RetryPolicy
from functions.core import models
from functions.local.evaluation import answering, asking, question_sets
from functions.local.evaluation.report import print_answers
from tests.support.fakes.model_server import FakeModelServer, Reply, pieces

SECONDS: Final = 300.0
"""Long enough for a busy machine: a reply that comes after its question was given up would answer the next one."""


def read_found(row: dict[str, Any]) -> asking.Found:
    """The recorded question and its passages."""
    units = [_read_unit(passage.pop("unit")) for passage in row["passages"]]
    hits = tuple(models.SearchHit(**passage) for passage in row["passages"])
    gold = frozenset(map(_read_unit, row["gold"]))
    question = question_sets.Question(row["query_id"], row["question"], row["lang"], gold, answers=(*row["answers"],))
    by_id = {hit.segment_id: unit for hit, unit in zip(hits, units, strict=True)}
    return asking.Found(question, row["lang"], hits, by_id, row["is_refused"])


def _read_unit(value: Any) -> question_sets.Unit:
    return value if isinstance(value, str) else (value[0], value[1])


def replay(path: Path) -> Iterator[answering.Written]:
    """Answers each question of a record with each prompt; a model that failed fails again."""
    with FakeModelServer(refuses=("stream_options",)) as server:  # so that tokens are estimated, not counted in words
        model = OpenAIChatModel(model="recorded", base_url=server.base_url, retry_policy=RetryPolicy(attempts=1))
        examinee = answering.Examinee(model, SECONDS, 1)
        for row in question_sets.read_lines(path):
            found = read_found(row)
            for profile in answering.PROFILES:
                reply = row["replies"][profile]
                if not found.is_refused:
                    server.script(Reply(pieces(reply["text"])) if reply["code"] is None else Reply(status=500))
                yield answering.answer(examinee, found, profile)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="a record")
    path = parser.parse_args().file
    print_answers(path.stem, list(replay(path)))


if __name__ == "__main__":
    main()
