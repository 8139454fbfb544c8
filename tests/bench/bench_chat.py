"""Measures how much later the first word arrives than from the model: `python -m tests.bench.bench_chat [--long]`.

A server runs as `make run` starts it, with a library of 5,000 passages. A model server on loopback waits a fixed time
before it writes. In each turn, a client asks the library a question in a new conversation, and then sends the prompt
that the server sent to the model to the model directly; both replies are streamed. The added time is the difference
within a turn. It has three parts: until the question is saved, until the model is asked, and from the model's first
word to the reader. Prints a table and, as the last line, a JSON object.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from functions.adapters import auth
from functions.adapters.postgres.connection import Database
from functions.core import models
from functions.local.database import embedded_postgres, migrate
from functions.runtime.policy import LOCAL_SERVER
from functions.runtime.services import read_or_create_secret
from tests.bench.libraries import COMMON_WORDS, Libraries
from tests.bench.report import at_most, figure, print_figures
from tests.support.fakes.model_server import Body, FakeModelServer, Reply, answer_json
from tests.support.server_process import describe_environment, serve

CHUNKS = 5000
SHORT, LONG = 100, 400
WARM_UP = 15
THINKING_SECONDS = 0.05  # before the role, and again before the first word
MAX_ADDED_MS = 25.0
QUESTION_WORDS = 4

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """The milliseconds of one question to the library, in parts, and of the same prompt to the model alone."""

    saved: float
    asked: float
    written: float
    first_word: float
    alone: float
    alone_written: float

    @property
    def added(self) -> float:
        return self.first_word - self.alone


class Model:
    """The fake model server, and the time of its last request."""

    def __init__(self) -> None:
        self.server = FakeModelServer(respond=self._respond)
        self.asked_at = 0.0

    def _respond(self, body: Body) -> Reply:
        self.asked_at = time.perf_counter()
        prompt = str(body["messages"][-1]["content"])
        segment = prompt.split("[SEG=")[1].split("]")[0] if "[SEG=" in prompt else ""
        text = answer_json(("The passage says what was asked.", [segment]))
        return Reply([text[:40], text[40:]], delay=THINKING_SECONDS)


class Bench:
    """A client of both servers that keeps its connections open."""

    def __init__(self, model: Model, base_url: str, token: str) -> None:
        self._model, self._base_url = model, base_url
        self._headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(timeout=30, trust_env=False, verify=False)

    def measure(self, question: str) -> Turn:
        started = time.perf_counter()
        saved = first_word = 0.0
        last: dict[str, Any] = {}
        for at, event in self._stream(f"{self._base_url}/api/rag/chat", {"query": question, "stream": True}):
            if "meta" in event:
                saved = at
            elif "text" in event and not first_word:
                first_word = at
            last = event
        if last.get("mode") != "model":
            raise SystemExit(f"the model was not asked: {last}")
        asked = self._model.asked_at
        alone, alone_written = self._ask_alone(self._model.server.chats[-1])
        return Turn(
            saved=(saved - started) * 1000,
            asked=(asked - saved) * 1000,
            written=(first_word - asked) * 1000,
            first_word=(first_word - started) * 1000,
            alone=alone * 1000,
            alone_written=alone_written * 1000,
        )

    def close(self) -> None:
        self._http.close()

    def _ask_alone(self, body: Body) -> tuple[float, float]:
        """Returns the seconds to the first word, since the request and since the model received it."""
        started, first_word = time.perf_counter(), 0.0
        for at, event in self._stream(f"{self._model.server.base_url}/chat/completions", body):
            if not first_word and any(choice["delta"].get("content") for choice in event["choices"]):
                first_word = at
        return first_word - started, first_word - self._model.asked_at

    def _stream(self, url: str, body: Body) -> Iterator[tuple[float, Event]]:
        """Yields each event with the time when it arrived."""
        with self._http.stream("POST", url, json=body, headers=self._headers) as response:
            response.raise_for_status()
            for line in response.iter_lines():
                at = time.perf_counter()
                if line.startswith("data: {"):
                    yield at, json.loads(line.removeprefix("data: "))


def draw_questions(database: Database, user: models.User, count: int) -> list[str]:
    """Draws questions made of consecutive words of a passage, so that the guard does not refuse them."""
    chance, common = random.Random(3), set(COMMON_WORDS.split())
    with database.as_user(user) as connection:
        rows = connection.execute("select text from rag.chunks order by id").fetchall()
    questions = []
    for row in chance.sample(rows, count):
        words = [word for word in row["text"].split() if word not in common]
        start = chance.randrange(len(words) - QUESTION_WORDS)
        questions.append(" ".join(["what", "is", "the", *words[start : start + QUESTION_WORDS]]))
    return questions


def use_local_model(database: Database) -> None:
    """Makes the server embed questions with the model of a laptop, although the passages have other vectors."""
    with database.as_worker() as connection:
        connection.execute(
            "update rag.embedding_servers set model = %s, query_prefix = %s",
            (LOCAL_SERVER.model, LOCAL_SERVER.query_prefix),
        )


def run(folder: Path, rounds: int) -> list[Turn]:
    """Measures `rounds` turns after the warm-up, with the settings of a laptop."""
    model, home = Model(), folder / "home"
    with (
        embedded_postgres.start(folder / "postgres") as server,
        closing(Database(server.dsn)) as database,
        model.server,
    ):
        migrate.migrate(server.dsn)
        libraries = Libraries(database)
        libraries.add({"asked": CHUNKS})
        use_local_model(database)
        user = libraries.by_name["asked"].user
        questions = draw_questions(database, user, WARM_UP + rounds)
        token = auth.issue_local_token(read_or_create_secret(home / "secret"), user.id, "reader")
        with (
            serve(describe_environment(server.dsn, home, model.server.base_url)) as running,
            closing(Bench(model, running.base_url, token)) as bench,
        ):
            return [bench.measure(question) for question in questions][WARM_UP:]


def percentile(values: Sequence[float], share: float) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[round(share * 100) - 1]


def list_figures(turns: Sequence[Turn]) -> list[Event]:
    rows = []
    for share in (0.5, 0.95):
        name = f"p{share * 100:.0f}, ms"
        alone = percentile([turn.alone for turn in turns], share)
        rows.append(figure(f"first word, {name}", percentile([turn.first_word for turn in turns], share), alone))
        added = percentile([turn.added for turn in turns], share)
        rows.append(at_most(f"  added to the model alone, {name}", added, MAX_ADDED_MS))
        parts = {
            "until the question is saved": [turn.saved for turn in turns],
            "until the model is asked": [turn.asked for turn in turns],
            "from its first word to the reader": [turn.written - turn.alone_written for turn in turns],
        }
        rows += [figure(f"    {part}, {name}", percentile(found, share), added) for part, found in parts.items()]
    return rows


def main() -> None:
    rounds = LONG if "--long" in sys.argv[1:] else SHORT
    with tempfile.TemporaryDirectory(prefix="ibid-bench-") as name:
        figures = list_figures(run(Path(name).resolve(), rounds))
    load = os.getloadavg()[0]
    print_figures(
        "chat", [*figures, figure("load of the machine, last minute, to its processors", load, _count_processors())]
    )


def _count_processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if __name__ == "__main__":
    main()
