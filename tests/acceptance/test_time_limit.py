"""A long document through the queue's handler with invocations of one minute; memory does not grow."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from functions.adapters import sqs
from functions.core import models
from functions.core.ingestion.worker import RESERVE_SECONDS
from tests.acceptance.support import prose, workplace
from tests.acceptance.support.workplace import Workplace, open_workplace
from tests.handlers import events
from tests.support.requirements import REPOSITORY

LONG, SHORT = 1000, 100
SENTENCES = 2
# The working time of an invocation without its reserve for the last batch: a real minute has 40 s, for denser pages.
WORKING_SECONDS = 2.0
PEAK_RATIO = 1.3

MEASURE = """
import json, sys
from pathlib import Path
from pydantic import SecretStr
from functions.core import models
from functions.local import terminal
from functions.runtime.config import Config
from functions.runtime.services import Services

dsn, home, file, user = sys.argv[1:]
services = Services(Config(database_url=SecretStr(dsn), ibid_home=Path(home), log_level="ERROR"))
terminal.add_file(services, models.User.named(user), Path(file))
outcome = services.make_worker().ingest_next()
services.database.close()
# The kernel's own mark of this program: getrusage() would count the program that has started it.
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
print(json.dumps([outcome.status, int(peak.split()[1]) * 1024]))
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Files by their number of pages."""
    folder = tmp_path_factory.mktemp("files")
    return {pages: prose.make_book(folder / f"{pages}.pdf", pages, SENTENCES) for pages in (SHORT, LONG)}


@pytest.fixture
def place(database: str, tmp_path: Path) -> Iterator[Workplace]:
    with open_workplace(database, tmp_path / "home") as opened:
        yield opened


@pytest.fixture
def nudges(place: Workplace, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The queue of this workplace, which the handlers use."""
    queue: list[int] = []
    config = place.services.config.model_copy(update={"ingest_queue_url": "https://sqs.example.org/1/jobs"})
    monkeypatch.setattr(place.services, "config", config)
    events.share_services(monkeypatch, place.services)
    monkeypatch.setattr(sqs, "send_job", lambda url, job_id: queue.append(job_id))
    return queue


def ingest_alone(place: Workplace, file: Path, user: models.User) -> int:
    """Ingests a file in one go in a separate process; returns its peak memory in bytes."""
    command = [sys.executable, "-c", MEASURE, place.dsn, str(place.home), str(file), user.id]
    done = subprocess.run(command, cwd=REPOSITORY, env=os.environ, stdout=subprocess.PIPE, text=True, check=True)
    status, peak = json.loads(done.stdout)
    assert status == "done"
    return int(peak)


def invoke(job_id: int, seconds: float) -> None:
    record = events.load("sqs")["Records"][0] | {"body": json.dumps({"job_id": job_id})}
    assert events.invoke("ingest", {"Records": [record]}, seconds) == {"batchItemFailures": []}


def read_job(place: Workplace) -> dict[str, Any]:
    with place.services.database.as_worker() as connection:
        row = connection.execute(
            "select id, status, attempts, coalesce((checkpoint ->> 'pages_done')::int, 0) as pages_done"
            " from rag.ingest_jobs order by id desc limit 1"
        ).fetchone()
    assert row is not None
    return row


def test_a_thousand_pages_take_several_invocations_and_no_more_memory_than_a_hundred_pages(
    place: Workplace, nudges: list[int], files: dict[int, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """ING-7, ING-10"""
    alone, limited = workplace.make_user(), workplace.make_user()
    peaks = {pages: ingest_alone(place, file, alone) for pages, file in files.items()}
    (tmp_path / "long").mkdir()
    (tmp_path / "long" / files[LONG].name).write_bytes(files[LONG].read_bytes())
    place.add_files(limited, tmp_path / "long")
    history = [read_job(place)]
    while history[-1]["status"] == "queued" and len(history) < LONG:
        invoke(history[-1]["id"], RESERVE_SECONDS + WORKING_SECONDS)
        history.append(read_job(place))
    pages = [job["pages_done"] for job in history]
    with capsys.disabled():
        megabytes = {number: round(peak / 1e6) for number, peak in peaks.items()}
        print(f"\n{len(pages) - 1} invocations, pages done: {pages}; peak MB by pages: {megabytes}")
    assert history[-1]["status"] == "done"
    assert len(pages) > 3
    # The last invocation may have only to finish: time may be up just when the last page is saved.
    assert (pages[-1], all(before < after for before, after in itertools.pairwise(pages[:-1]))) == (LONG, True)
    assert max(job["attempts"] for job in history) <= 1
    assert nudges == [history[0]["id"]] * (len(pages) - 2)
    assert place.contents(limited)[files[LONG].name] == place.contents(alone)[files[LONG].name]
    assert place.find_leftovers() == {}
    assert peaks[LONG] <= PEAK_RATIO * peaks[SHORT]
