"""What goes wrong outside of Ibid, each as a block inside which it does."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import httpx

from tests.acceptance.support.stored_state import trigger_disabled
from tests.faults.plant import Plant, do_nothing
from tests.support.fakes.model_server import Reply
from tests.support.server_process import serve

Fault = Callable[[Plant], AbstractContextManager[object]]

RESTART_SECONDS = 1.5
SLOW_SECONDS = 0.1
STALL_SECONDS = 25.0
LATEST_KILL_SECONDS = 1.0
KILL = "process kill"
_MANY = 500
_moments = random.Random(7)
_WRITTEN = ("documents", "pages", "chunks", "messages", "conversations", "notes", "ingest_jobs", "generations")


@contextmanager
def restart_database(plant: Plant) -> Iterator[None]:
    """The server is killed, and is back after RESTART_SECONDS."""
    plant.kill_database()
    revive = threading.Timer(RESTART_SECONDS, plant.postgres.revive)
    revive.start()
    try:
        yield
    finally:
        revive.join()


@contextmanager
def fill_disk(plant: Plant) -> Iterator[None]:
    """The disk of the database is full: it refuses every row that is written."""
    plant.execute(
        "create or replace function public.disk_is_full() returns trigger language plpgsql as"
        " $$ begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$"
    )
    tables = [*(f"rag.{table}" for table in _WRITTEN), "storage.objects"]
    for table in tables:
        plant.execute(
            f"create trigger aa_disk_is_full before insert or update on {table}"
            " for each row execute function public.disk_is_full()"
        )
    try:
        yield
    finally:
        for table in tables:
            plant.execute(f"drop trigger aa_disk_is_full on {table}")


@contextmanager
def fail_storage(plant: Plant) -> Iterator[None]:
    body = {"statusCode": "500", "error": "Internal", "message": "Internal Server Error", "code": "InternalError"}
    plant.storage.failure = (500, body)
    try:
        yield
    finally:
        plant.storage.failure = None


def answer_each(reply: Reply) -> Fault:
    """Every request to the model server gets this reply."""

    @contextmanager
    def answer(plant: Plant) -> Iterator[None]:
        plant.model.script(*[reply] * _MANY)
        try:
            yield
        finally:
            plant.model.forget_script()

    return answer


@contextmanager
def jump_clock(plant: Plant) -> Iterator[None]:
    """Between two steps of a flow three hours pass at once: links and leases end, and waits are over."""

    def jump() -> None:
        plant.storage.elapsed += 3 * 3600
        plant.execute(
            "update rag.ingest_jobs set run_after = run_after - interval '3 hours',"
            " lease_expires_at = lease_expires_at - interval '3 hours' where status in ('queued', 'running')"
        )

    plant.between_steps = jump
    try:
        yield
    finally:
        plant.between_steps = do_nothing
        plant.storage.elapsed = 0.0


@contextmanager
def duplicate_events(plant: Plant) -> Iterator[None]:
    """Each event arrives three times at once: workers are told of the newest job by several messages."""

    def repeat() -> None:
        worker = plant.server.services.make_worker
        job = _newest_job(plant)
        threads = [threading.Thread(target=lambda: worker().ingest_next(job)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    plant.between_steps = repeat
    try:
        yield
    finally:
        plant.between_steps = do_nothing


@contextmanager
def reorder_events(plant: Plant) -> Iterator[None]:
    """Messages of the past arrive again between two steps: of jobs that have ended, the newest first."""

    def replay() -> None:
        worker = plant.server.services.make_worker()
        for job in range(_newest_job(plant), 0, -1):
            worker.ingest_next(job)

    plant.between_steps = replay
    try:
        yield
    finally:
        plant.between_steps = do_nothing


@contextmanager
def lose_events(plant: Plant) -> Iterator[None]:
    """The trigger of the storage does not run, and the client never says that its upload is complete."""
    plant.announces_uploads = False
    try:
        with trigger_disabled(plant.dsn):
            yield
    finally:
        plant.announces_uploads = True


@contextmanager
def kill_server(plant: Plant) -> Iterator[None]:
    """Another server of the installation does the work, and is killed with its worker at a random moment."""
    assert plant.person is not None
    usual = plant.person.http.base_url
    with plant.server.worker.paused(), serve(plant.environment()) as process:
        plant.person.http.base_url = httpx.URL(process.base_url)
        kill = threading.Timer(_moments.uniform(0.02, LATEST_KILL_SECONDS), os.killpg, (process.pid, signal.SIGKILL))
        kill.start()
        try:
            yield
        finally:
            kill.join()
            plant.person.http.base_url = usual


def _newest_job(plant: Plant) -> int:
    with plant.server.services.database.as_worker() as connection:
        row = connection.execute("select coalesce(max(id), 1) as id from rag.ingest_jobs").fetchone()
    assert row is not None
    return int(row["id"])


FAULTS: dict[str, Fault] = {
    "database restart": restart_database,
    "slow database": lambda plant: plant.database.delaying(SLOW_SECONDS),
    "database refused": lambda plant: plant.database.refusing(),
    "database disk full": fill_disk,
    "storage 5xx": fail_storage,
    "storage time-out": lambda plant: plant.storage_proxy.delaying(STALL_SECONDS),
    "storage refused": lambda plant: plant.storage_proxy.refusing(),
    "model time-out": answer_each(Reply(["late"], delay=12.0)),
    "model 429, Retry-After": answer_each(Reply(status=429, headers={"Retry-After": "2"})),
    "model 429": answer_each(Reply(status=429)),
    "model malformed": answer_each(Reply(raw=b"<html>Bad gateway</html>")),
    "clock jump": jump_clock,
    "duplicated events": duplicate_events,
    "reordered events": reorder_events,
    "lost events": lose_events,
    KILL: kill_server,
}
EVENTS = ("clock jump", "duplicated events", "reordered events", "lost events")
"""These happen between the steps of a flow that has several."""
