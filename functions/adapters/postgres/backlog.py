"""What the ingestion queue holds, for people and alarms to look at."""

from __future__ import annotations

from dataclasses import dataclass

from functions.adapters.postgres.connection import Database


@dataclass(frozen=True, slots=True)
class Backlog:
    """Jobs that could be worked on now and how long the oldest has waited; jobs in work; jobs given up within a day."""

    due: int
    oldest_seconds: float
    running: int
    given_up: int


def read_backlog(database: Database) -> Backlog:
    """Counts from the indexes of open and of given up jobs alone; raises DatabaseUnavailableError."""
    with database.as_worker() as connection:
        row = connection.execute(
            """
            with due as materialized (
                select id, case status when 'queued' then run_after else lease_expires_at end as waits_since
                from rag.due_jobs
            )
            select
                (select count(*) from due) as due,
                (select coalesce(extract(epoch from clock_timestamp() - min(waits_since)), 0)::float8 from due)
                    as oldest_seconds,
                (select count(*) from rag.ingest_jobs where status = 'running' and id not in (select id from due))
                    as running,
                (
                    select count(*) from rag.ingest_jobs
                    where status in ('dead', 'failed') and finished_at > clock_timestamp() - interval '1 day'
                ) as given_up
            """
        ).fetchone()
    assert row is not None
    return Backlog(**row)


def count_jobs(database: Database) -> dict[str, int]:
    """Jobs by status, of every document and note there is; reads the whole queue."""
    with database.as_worker() as connection:
        rows = connection.execute("select status, count(*) as n from rag.ingest_jobs group by status").fetchall()
    return {row["status"]: row["n"] for row in rows}
