"""Estimates the cloud cost of 1,000 questions and 1,000 pages: `python -m tests.bench.bench_costs [--long]`.

A process runs the warm handlers of `documents`, `ingest` and `chat` on events as AWS sends them, with a database and a
model server on loopback. It measures processor time, waiting time, tokens and log bytes. The rest of the calculation
are PRICES and ASSUMED, which are not measured. Prints tables and, as the last line, a JSON object; values are US cents,
and the baseline of each is the sum.

A function is billed from the start of a call to its end. That time consists of the measured waiting time, the processor
time divided by the share of a processor that its memory buys (1,769 MB buy one, assumed to be as fast as one here), and
the time that a model takes to write. Cold starts and monthly fees (Supabase, alarms, $0.30 a metric) are left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from functions.adapters import auth
from functions.adapters.laptop import object_rows
from functions.adapters.laptop.embedder import LocalEmbedder
from functions.adapters.laptop.object_store import LocalObjectStore
from functions.core import models
from functions.local.database import embedded_postgres, migrate
from functions.runtime.services import Services, shared_services
from tests.acceptance.support import prose
from tests.bench.bench_chat import draw_questions
from tests.bench.bench_ingest import make_pdf
from tests.bench.report import figure, print_figures
from tests.handlers import events
from tests.support import service
from tests.support.fakes.model_server import FakeModelServer
from tests.support.requirements import REPOSITORY

# US dollars: list prices of 2026 without taxes, free tiers and discounts (AWS: us-east-1; other regions differ). They
# are quoted by several price comparisons, and were not checked on the providers' own pages named here.
PRICES: Final = {
    "function, GB-second (arm64)": 0.0000133334,  # https://aws.amazon.com/lambda/pricing/
    "function, call": 0.20e-6,
    "gateway, request (HTTP API)": 1.00e-6,  # https://aws.amazon.com/api-gateway/pricing/
    "queue, request": 0.40e-6,  # https://aws.amazon.com/sqs/pricing/
    "log, GB": 0.50,  # https://aws.amazon.com/cloudwatch/pricing/
    "gpt-4.1-mini, token read": 0.40e-6,  # https://openai.com/api/pricing/, quoted on 2026-06-21
    "gpt-4.1-mini, token written": 1.60e-6,
    "text-embedding-3-small, token": 0.02e-6,
}
ASSUMED: Final = {
    "tokens of an answer": 300,
    "seconds until a model writes": 0.6,
    "tokens a model writes a second": 80,
    "seconds an embedding takes": 0.15,
    "requests to the queue for a document": 3,  # sent, received, deleted
}

PAGES, LONG_PAGES = 40, 400
QUESTIONS, WARM_UP = 30, 5
FULL_PROCESSOR_MB = 1769
USER = "reader"
BOOKS = 6
PAGES_BEGIN, PAGES_END = "the pages begin", "the pages end"
OPENING = "what is the "  # every drawn question begins with it


@dataclass(frozen=True, slots=True)
class Run:
    """The seconds of one call of a handler: elapsed time and processor time."""

    clock: float
    processor: float


@dataclass(slots=True)
class Measured:
    """The report of the process that runs the handlers."""

    ingest: list[Run]
    chat: list[Run]
    log_bytes_ingest: int
    log_bytes_chat: int
    pages: int
    stored_bytes: int


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens that the model server received.

    `read` and `asked` are the tokens of a prompt and of an embedded question, on average. `embedded` are those of all
    pages, in `requests` requests. The tokenizer of the local embedding model counts them; others differ slightly.
    """

    read: int
    asked: int
    embedded: int
    requests: int


def time_call(call: Callable[[], Any]) -> tuple[Any, Run]:
    clock, processor = time.perf_counter(), time.process_time()
    result = call()
    return result, Run(time.perf_counter() - clock, time.process_time() - processor)


class Installation:
    """The handlers in this process, called by one user."""

    def __init__(self, log: Path) -> None:
        os.environ["AWS_LAMBDA_FUNCTION_NAME"] = "ibid-bench"
        # Deployed functions have no local files, but these handlers use them.
        Services.is_local = True  # type: ignore[method-assign, assignment]  # a property cannot be set on an object
        self._services, self._log = shared_services(), log
        self.user = models.User(auth.local_user_id(USER), False, {})
        token = auth.issue_local_token(self._services.local_secret, self.user.id, USER)
        self._headers = {"authorization": f"Bearer {token}"}

    def add(self, path: Path) -> list[Run]:
        """Uploads a file and indexes it; returns the calls of the worker."""
        services, store = self._services, self._services.objects
        assert isinstance(store, LocalObjectStore)
        body = {"file_name": path.name, "size": path.stat().st_size}
        document = self._send("documents", "/api/rag/documents", body)["document"]
        record = partial(object_rows.record, services.database)
        store.put(f"{self.user.id}/{document['id']}/original.pdf", [path.read_bytes()], record=record)
        runs = []
        while (job_id := self._find_job(document["id"])) is not None:
            record = events.load("sqs")["Records"][0] | {"body": json.dumps({"job_id": job_id})}
            answer, run = time_call(partial(events.invoke, "ingest", {"Records": [record]}))
            if answer["batchItemFailures"]:
                raise SystemExit("the worker failed")
            runs.append(run)
        return runs

    def ask(self, questions: Iterator[str], count: int) -> list[Run]:
        """Asks until the model has answered `count` questions; the guard refuses some of them."""
        runs: list[Run] = []
        while len(runs) < count:
            body = {"query": next(questions)}
            answer, run = time_call(partial(self._send, "chat", "/api/rag/chat", body))
            if answer["mode"] == "model":
                runs.append(run)
        return runs

    def mark(self, text: str) -> None:
        """Sends a text to the embedding server that separates the requests before and after it."""
        services = self._services
        services.embedder_of(services.policy().servers[0]).embed([text])

    def count_log_bytes(self) -> int:
        sys.stdout.flush()
        sys.stderr.flush()
        return self._log.stat().st_size

    def count_pages(self) -> int:
        """Counts the pages of the newest document."""
        with self._services.database.as_user(self.user) as connection:
            row = connection.execute("select page_count from rag.documents order by created_at desc").fetchone()
        assert row is not None
        return int(row["page_count"])

    def count_bytes(self) -> int:
        """Measures the size of the library in the database, with its indexes."""
        with self._services.database.autocommit() as connection:
            row = connection.execute(
                "select sum(pg_total_relation_size(oid))::bigint as n from pg_class"
                " where relnamespace = 'rag'::regnamespace and relkind = 'r'"
            ).fetchone()
        assert row is not None
        return int(row["n"])

    def draw_questions(self) -> Iterator[str]:
        """Draws more questions than are needed, from words of the passages."""
        return iter(draw_questions(self._services.database, self.user, 4 * (QUESTIONS + WARM_UP)))

    def _send(self, module: str, path: str, body: Any) -> Any:
        answer = events.send(module, events.http("POST", path, body, headers=self._headers))
        if answer.status >= 300:
            raise SystemExit(f"{module}: {answer.status} {answer.content!r}")
        return answer.json

    def _find_job(self, document_id: str) -> int | None:
        with self._services.database.as_worker() as connection:
            row = connection.execute(
                "select id from rag.ingest_jobs where document_id = %s and status in ('queued', 'running')",
                (document_id,),
            ).fetchone()
        return None if row is None else row["id"]


def measure(pages: int, folder: Path, log: Path) -> Measured:
    """Measures the handlers; runs in a process of its own, so that all its processor time is theirs."""
    installation = Installation(log)
    for number in range(BOOKS):  # warms up, and lets an answer use several documents
        installation.add(prose.make_book(folder / f"book {number}.pdf", 3))
    installation.mark(PAGES_BEGIN)
    bytes_before, log_before = installation.count_bytes(), installation.count_log_bytes()
    ingest = installation.add(make_pdf(folder / "pages.pdf", pages))
    bytes_after, log_after = installation.count_bytes(), installation.count_log_bytes()
    pages = installation.count_pages()
    installation.mark(PAGES_END)
    questions = installation.draw_questions()
    installation.ask(questions, WARM_UP)
    log_asked = installation.count_log_bytes()
    chat = installation.ask(questions, QUESTIONS)
    return Measured(
        ingest,
        chat,
        log_after - log_before,
        installation.count_log_bytes() - log_asked,
        pages,
        bytes_after - bytes_before,
    )


def run(folder: Path, pages: int) -> tuple[Measured, Tokens]:
    """Runs the handlers in a process of their own; returns its report and the tokens that it sent to the models."""
    log = folder / "log"
    with embedded_postgres.start(folder / "postgres") as server, FakeModelServer(dimensions=1536) as model:
        migrate.migrate(server.dsn)
        environment = {
            "DATABASE_URL": server.dsn,
            "IBID_HOME": str(folder / "home"),
            "CHAT_MODEL": "fake",
            "EMBEDDING_MODEL": "fake",
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "none",
        }
        command = [sys.executable, "-m", "tests.bench.bench_costs", "--measure", str(pages), str(folder)]
        with log.open("wb") as output:
            done = subprocess.run(
                command, cwd=REPOSITORY, env=os.environ | environment, stdout=output, stderr=output, check=False
            )
        if done.returncode:
            raise SystemExit(log.read_text(errors="replace")[-2000:])
    raw = json.loads((folder / "result.json").read_text())
    runs = {name: [Run(**one) for one in raw[name]] for name in ("ingest", "chat")}
    return Measured(**raw | runs), count_tokens(model)


def count_tokens(model: FakeModelServer) -> Tokens:
    count = LocalEmbedder().count_tokens
    chats = ["\n".join(str(message["content"]) for message in body["messages"]) for body in model.chats]
    inputs = [body["input"] if isinstance(body["input"], list) else [body["input"]] for body in model.embeddings]
    questions = [texts[0] for texts in inputs if texts[0].startswith(OPENING)]
    passages = inputs[inputs.index([PAGES_BEGIN]) + 1 : inputs.index([PAGES_END])]
    return Tokens(
        read=sum(map(count, chats)) // len(chats),
        asked=sum(map(count, questions)) // len(questions),
        embedded=sum(count(text) for texts in passages for text in texts),
        requests=len(passages),
    )


def compute_bill(runs: Sequence[Run], memory: int, more_seconds: float) -> float:
    """The price in dollars of these calls of a function with `memory` MB that wait `more_seconds` longer in total."""
    slowdown = max(1.0, FULL_PROCESSOR_MB / memory)
    seconds = sum(run.clock - run.processor + run.processor * slowdown for run in runs) + more_seconds
    return seconds * memory / 1024 * PRICES["function, GB-second (arm64)"] + len(runs) * PRICES["function, call"]


def read_memory_size(function: str) -> int:
    return int(service.functions()[function].get("memorySize", service.read()["provider"]["memorySize"]))


def price_questions(measured: Measured, tokens: Tokens) -> dict[str, float]:
    """The price in dollars of 1,000 questions, by part."""
    count = len(measured.chat)
    writing = ASSUMED["tokens of an answer"] / ASSUMED["tokens a model writes a second"]
    waiting = ASSUMED["seconds until a model writes"] + writing + ASSUMED["seconds an embedding takes"]
    return {
        "tokens the model reads": 1000 * tokens.read * PRICES["gpt-4.1-mini, token read"],
        "tokens the model writes": 1000 * ASSUMED["tokens of an answer"] * PRICES["gpt-4.1-mini, token written"],
        "embedding": 1000 * tokens.asked * PRICES["text-embedding-3-small, token"],
        "function": 1000 / count * compute_bill(measured.chat, read_memory_size("chat"), count * waiting),
        "gateway": 1000 * PRICES["gateway, request (HTTP API)"],
        "log": 1000 / count * measured.log_bytes_chat / 1e9 * PRICES["log, GB"],
    }


def price_pages(measured: Measured, tokens: Tokens) -> dict[str, float]:
    """The price in dollars of 1,000 pages, by part, in documents as long as the measured one."""
    pages = measured.pages
    waiting = tokens.requests * ASSUMED["seconds an embedding takes"]
    queue = ASSUMED["requests to the queue for a document"] * PRICES["queue, request"]
    return {
        "embedding": 1000 / pages * tokens.embedded * PRICES["text-embedding-3-small, token"],
        "function": 1000 / pages * compute_bill(measured.ingest, read_memory_size("ingest"), waiting),
        "queue and gateway": 1000 / pages * (queue + 3 * PRICES["gateway, request (HTTP API)"]),
        "log": 1000 / pages * measured.log_bytes_ingest / 1e9 * PRICES["log, GB"],
    }


def list_parts(name: str, parts: dict[str, float]) -> list[dict[str, Any]]:
    total = sum(parts.values())
    rows = {f"{name}, cents": total} | {f"  {part}": dollars for part, dollars in parts.items()}
    return [figure(text, dollars * 100, total * 100) for text, dollars in rows.items()]


def main() -> None:
    if sys.argv[1:2] == ["--measure"]:
        pages, folder = int(sys.argv[2]), Path(sys.argv[3])
        (folder / "result.json").write_text(json.dumps(asdict(measure(pages, folder, folder / "log"))))
        return
    pages = LONG_PAGES if "--long" in sys.argv[1:] else PAGES
    with tempfile.TemporaryDirectory(prefix="ibid-bench-") as name:
        measured, tokens = run(Path(name).resolve(), pages)
    clock = 1000 * sum(one.clock for one in measured.chat) / len(measured.chat)
    processor = 1000 * sum(one.processor for one in measured.chat) / len(measured.chat)
    by_page = {
        "a page, processor ms": 1000 * sum(one.processor for one in measured.ingest),
        "a page, tokens embedded": tokens.embedded,
        "a page, kB in the database": measured.stored_bytes / 1000,
    }
    print("Not measured:", json.dumps({"prices in dollars": PRICES, "assumed": ASSUMED}))
    print_figures(
        "costs",
        [
            *list_parts("1,000 questions", price_questions(measured, tokens)),
            *list_parts("1,000 pages", price_pages(measured, tokens)),
            figure("a question without its model, ms, of which processor", clock, processor),
            figure("tokens read a question", tokens.read, tokens.read),
            *(figure(name, value / measured.pages, value / measured.pages) for name, value in by_page.items()),
        ],
    )


if __name__ == "__main__":
    main()
