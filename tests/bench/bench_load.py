"""Measures a laptop's server under load: `python -m tests.bench.bench_load [--long] [--minutes N]`.

50 people read streamed answers and 10 upload files at the same time, all the time, for 3 minutes (30 in the long
form), from a process of their own. The files go to libraries of their own, so that what is searched stays as large
as it was. Meanwhile this process, which does nothing else, searches twice a second. No request may fail, a search may
take three times as long as before the load at most, and the memory of the server and of its worker must not grow.
Prints a table and, as the last line, a JSON object.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import statistics
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx
import psutil

from functions.adapters import auth
from functions.adapters.postgres import settings as stored_settings
from functions.adapters.postgres.connection import Database
from functions.core import models
from functions.local.database import embedded_postgres, migrate
from functions.runtime.services import read_or_create_secret
from tests.acceptance.support import prose
from tests.bench.report import at_most, figure, print_figures
from tests.support.fakes.model_server import Body, FakeModelServer, Reply, answer_json, pieces
from tests.support.server_process import describe_environment, serve

STREAMS, INGESTIONS = 50, 10
SHORT_MINUTES, LONG_MINUTES = 3.0, 30.0
IDLE_SECONDS, PROBE_SECONDS, SAMPLE_SECONDS = 20.0, 0.5, 2.0
LIBRARY_FILES, FILE_PAGES = 5, 6
MAX_SLOWDOWN = 3.0
MAX_GROWTH = 0.01
"""Of the memory, in a minute."""
PIECES, PIECE_SECONDS = 40, 0.25
ANSWER_SECONDS = PIECES * PIECE_SECONDS
"""The readers begin spread over it: people do not all ask in the same instant, again and again."""
QUESTIONS = [f"How often does the {noun} of {place} turn?" for noun in prose.NOUNS for place in prose.PLACES]
_LIMITS = {
    "questions_per_day": 100_000,
    "requests_per_minute": 10_000,
    "uploads_per_minute": 1_000,
    "max_documents": 100_000,
}


@dataclass(slots=True)
class Tally:
    """What a loader did, and what went wrong."""

    streams: int = 0
    documents: int = 0
    faults: Counter[str] = field(default_factory=Counter)


def write_slowly(body: Body) -> Reply:
    prompt = str(body["messages"][-1]["content"])
    segment = prompt.split("[SEG=")[1].split("]")[0] if "[SEG=" in prompt else ""
    text = answer_json(("The passage says how often it turns, and before which year it did so first.", [segment]))
    return Reply(pieces(text, -(-len(text) // PIECES)), delay=PIECE_SECONDS)


@contextmanager
def run_model() -> Iterator[str]:
    """The address of a model server in a process of its own, because this process measures how long it waits."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe()
    process = context.Process(target=_serve_model, args=(sender,), daemon=True)
    process.start()
    try:
        yield receiver.recv()
    finally:
        receiver.send("stop")
        process.join()


def _serve_model(parent: Connection) -> None:
    with FakeModelServer(respond=write_slowly) as model:
        parent.send(model.base_url)
        while not parent.poll(SAMPLE_SECONDS):
            model.requests.clear()  # the fake keeps each


class Client:
    """One person with a connection of their own."""

    def __init__(self, base_url: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self.http = httpx.Client(base_url=base_url, headers=headers, timeout=60, trust_env=False, verify=False)

    def search(self, question: str) -> float:
        """The seconds that a search takes; raises for any status but 200."""
        began = time.perf_counter()
        self.http.get("/api/rag/search", params={"q": question}).raise_for_status()
        return time.perf_counter() - began

    def read_stream(self, question: str) -> None:
        """Reads an answer to its end; raises ValueError if it is not complete and written by the model."""
        last: dict[str, Any] = {}
        with self.http.stream("POST", "/api/rag/chat", json={"query": question, "stream": True}) as answer:
            answer.raise_for_status()
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    last = json.loads(line[6:])
        if not last.get("done") or last["mode"] not in ("model", "guard"):
            raise ValueError(f"stream: {last.get('error', last)}"[:200])

    def add_file(self, path: Path, ends_at: float = math.inf) -> bool:
        """Uploads a file and waits until it is indexed or `ends_at`; whether it is. ValueError if it failed."""
        content = path.read_bytes()
        body = {"file_name": path.name, "size": len(content), "mime_type": "application/pdf"}
        ticket = self.http.post("/api/rag/documents", json=body).raise_for_status().json()
        upload = ticket["upload"]
        self.http.put(upload["url"], content=content, headers=upload["headers"]).raise_for_status()
        address = f"/api/rag/documents/{ticket['document']['id']}"
        document = self.http.post(f"{address}/finalize").raise_for_status().json()
        while document["status"] not in ("indexed", "failed") and time.monotonic() < ends_at:
            document = self.http.get(address, params={"wait": 10}).raise_for_status().json()
            time.sleep(0.2)
        if document["status"] == "failed":
            raise ValueError(f"document: {document['error_code']}")
        return bool(document["status"] == "indexed")


def load(base_url: str, tokens: Sequence[str], seconds: float, folder: Path, results: Connection) -> None:
    """The load, in a process of its own: sends its Tally when the last answers have been read.

    `tokens` are that of the reader, and one for each who uploads.
    """
    tally, lock, ends_at = Tally(), threading.Lock(), time.monotonic() + seconds

    def repeat(number: int, act: Callable[[Client, int], bool], name: str) -> None:
        client, turn = Client(base_url, tokens[max(0, number - STREAMS + 1)]), 0
        time.sleep(ANSWER_SECONDS * (number % STREAMS) / STREAMS)
        while time.monotonic() < ends_at:
            turn += 1
            try:
                done = act(client, number * 10_000 + turn)
            except (httpx.HTTPError, ValueError) as exc:
                with lock:
                    tally.faults[f"{name}: {type(exc).__name__}: {str(exc)[:120]}"] += 1
            else:
                with lock:
                    setattr(tally, name, getattr(tally, name) + done)

    def stream(client: Client, turn: int) -> bool:
        client.read_stream(QUESTIONS[turn % len(QUESTIONS)])
        return True

    def ingest(client: Client, turn: int) -> bool:
        path = folder / f"book {turn}.pdf"
        prose.make_book(path, FILE_PAGES)
        return client.add_file(path, ends_at)

    threads = [threading.Thread(target=repeat, args=(n, stream, "streams")) for n in range(STREAMS)]
    threads += [threading.Thread(target=repeat, args=(STREAMS + n, ingest, "documents")) for n in range(INGESTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.send(tally)


@dataclass(slots=True)
class Memory:
    """Megabytes of the server and of its worker, with what these have started, over time."""

    server: list[tuple[float, float]] = field(default_factory=list)
    worker: list[tuple[float, float]] = field(default_factory=list)

    def sample(self, pid: int) -> None:
        at = time.monotonic() / 60
        server = psutil.Process(pid)
        children = server.children(recursive=True)
        self.server.append((at, _megabytes([server])))
        self.worker.append((at, _megabytes(children)))


def _megabytes(processes: Sequence[psutil.Process]) -> float:
    total = 0
    for process in processes:
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:  # a reader of files that has just ended
            continue
    return total / 1e6


def find_growth(samples: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The mean, and the slope a minute, of the samples after the first third, in which caches fill."""
    settled = samples[len(samples) // 3 :]
    slope = statistics.linear_regression(*zip(*settled, strict=True)).slope
    return statistics.fmean(value for _, value in settled), slope


def probe(client: Client, until: Callable[[], bool], each: Callable[[], None], faults: Counter[str]) -> list[float]:
    """The seconds of one search after another, one each PROBE_SECONDS."""
    found: list[float] = []
    while not until():
        due = time.monotonic() + PROBE_SECONDS
        try:
            found.append(client.search(QUESTIONS[len(found) % len(QUESTIONS)]))
        except httpx.HTTPError as exc:
            faults[f"search: {exc!r}"[:120]] += 1
        each()
        time.sleep(max(0.0, due - time.monotonic()))
    return found


def percentile(values: Sequence[float], share: float) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[round(share * 100) - 1] * 1000


def run(folder: Path, minutes: float) -> list[dict[str, Any]]:
    home = folder / "home"
    home.mkdir()
    user = models.User.named("00000000-0000-4000-8000-0000000000aa")
    with embedded_postgres.start(folder / "postgres") as postgres, run_model() as model_url:
        migrate.migrate(postgres.dsn)
        database = Database(postgres.dsn)
        with database.as_worker() as connection:
            stored_settings.write(connection, _LIMITS, user)
        database.close()
        people = [user.id, *(str(uuid.uuid4()) for _ in range(INGESTIONS))]
        secret = read_or_create_secret(home / "secret")
        tokens = [auth.issue_local_token(secret, person, "person", lifetime=4 * 3600) for person in people]
        with serve(describe_environment(postgres.dsn, home, model_url)) as server:
            client = Client(server.base_url, tokens[0])
            for number in range(LIBRARY_FILES):
                prose.make_book(folder / f"shelf {number}.pdf", FILE_PAGES)
                client.add_file(folder / f"shelf {number}.pdf")
            faults: Counter[str] = Counter()
            idle_ends = time.monotonic() + IDLE_SECONDS
            idle = probe(client, lambda: time.monotonic() > idle_ends, lambda: None, faults)
            return measure(client, server.pid, tokens, minutes, folder, idle, faults)


def measure(
    client: Client,
    pid: int,
    tokens: Sequence[str],
    minutes: float,
    folder: Path,
    idle: list[float],
    faults: Counter[str],
) -> list[dict[str, Any]]:
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    loader = context.Process(target=load, args=(str(client.http.base_url), tokens, minutes * 60, folder, sender))
    memory, next_sample = Memory(), 0.0

    def sample() -> None:
        nonlocal next_sample
        if time.monotonic() >= next_sample:
            next_sample = time.monotonic() + SAMPLE_SECONDS
            memory.sample(pid)

    loader.start()
    ends_at = time.monotonic() + minutes * 60
    loaded = probe(client, lambda: time.monotonic() > ends_at, sample, faults)
    tally: Tally = receiver.recv()
    loader.join()
    for fault, count in (faults + tally.faults).most_common(20):
        print(f"{count} x {fault}")
    return list_figures(tally, (faults + tally.faults).total(), idle, loaded, memory)


def list_figures(
    tally: Tally, errors: int, idle: Sequence[float], loaded: Sequence[float], memory: Memory
) -> list[dict[str, Any]]:
    rows = [
        figure("answers streamed", tally.streams, STREAMS),
        figure("files indexed", tally.documents, INGESTIONS),
        figure("searches", len(loaded), len(idle)),
        at_most("errors", errors, 1, 0),
        figure("search p50, ms, to that without load", percentile(loaded, 0.5), percentile(idle, 0.5)),
        at_most("search p95, ms, to that without load", percentile(loaded, 0.95), percentile(idle, 0.95), MAX_SLOWDOWN),
    ]
    for name, samples in (("server", memory.server), ("worker", memory.worker)):
        mean, slope = find_growth(samples)
        rows.append(at_most(f"memory of the {name}, growth in MB a minute, to its mean", slope, mean, MAX_GROWTH))
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return [*rows, figure("load of the machine, last minute, to its processors", os.getloadavg()[0], processors)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench-load", description=__doc__.partition("\n")[0])
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--minutes", type=float)
    options = parser.parse_args()
    minutes = options.minutes or (LONG_MINUTES if options.long else SHORT_MINUTES)
    with tempfile.TemporaryDirectory(prefix="ibid-bench-") as name:
        print_figures("load", run(Path(name).resolve(), minutes))


if __name__ == "__main__":
    main()
