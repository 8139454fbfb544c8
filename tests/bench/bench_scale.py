"""Measures how search grows with a library: `python -m tests.bench.bench_scale [--base 30000] [--passages 1000000]`.

A library of `--base` passages and one of `--passages` are in one database, in a folder of their own below /tmp, and are
asked in turns with the same library of `--base` passages alone in a database on a server of its own. Processor times,
of the client's thread and the server's process together, say the same on a busy machine. With `--tenants`, as many
libraries share `--shared` passages more. `--words` leaves out vectors, whose index takes most of the time to build.
Prints a table and, as the last line, a JSON object.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from functions.adapters.postgres import search
from functions.adapters.postgres.connection import Database
from functions.adapters.postgres.embedding import vector_indexes
from functions.core import models
from functions.core.retrieval import retriever
from functions.core.settings import Settings
from functions.local.database import embedded_postgres, migrate
from functions.local.evaluation import command
from tests.bench.bench_search import read_processor_time
from tests.bench.report import at_most, figure, print_figures
from tests.bench.scale_library import DOCUMENT_CHUNKS, ScaleLibraries, ScaleLibrary

# The smaller library is read whole; the larger one has posting lists and a vector index, which 50,000 do not have.
BASE, SHORT, ROUNDS = 10_000, 52_000, 10
TOPIC_CHUNKS = 10_000
RECALL_DEPTH, RECALL_QUESTIONS = 20, 100
WARM_UP = 3
GROWTH_GOAL, TENANT_GOAL = 6.0, 1.3
ARMS = ("hybrid", "words", "vectors")
SERVER_SETTINGS = {
    **command.FAST,
    "shared_buffers": "2GB",
    "max_wal_size": "8GB",
    "maintenance_work_mem": "4GB",
    "max_parallel_workers_per_gather": "0",  # the processor time of a parallel worker would not be seen
}
_SIZES = """
select c.relname as name, pg_total_relation_size(c.oid) / 1e6 as megabytes
from pg_class c
where c.relnamespace = 'rag'::regnamespace and (c.relkind = 'r' or c.relname like 'chunk_vectors_hnsw%')
"""
_SAME = """
with queries as materialized (
    select array_agg(q.query) as queries, s.generations
    from rag.search_scope(null, null, null, '{}') s,
        rag.lexical_queries(array[%(text)s], array[%(lang)s], s.generations, s.chunk_count) q
    group by s.generations
)
select array(select m.chunk_id from queries q, rag.lexical_matches(q.queries, q.generations, 50) m)
    = array(select m.chunk_id from queries q, rag.posting_matches(q.queries, q.generations, 50) m) as is_same
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """A library, those that share its database, and the questions that it is asked: text, language, vector."""

    libraries: ScaleLibraries
    library: ScaleLibrary
    questions: list[tuple[str, str, Any]]


class Bench:
    """Asks libraries the questions of the sets, each with a vector near one of its topics."""

    def __init__(self, libraries: ScaleLibraries, rounds: int, arms: Sequence[str] = ARMS) -> None:
        self.database, self.libraries, self.rounds, self.arms = libraries.database, libraries, rounds, arms

    def ask_of(self, library: ScaleLibrary) -> Asked:
        return Asked(self.libraries, library, list(self.libraries.ask(library, self.rounds + WARM_UP)))

    def measure(self, asked: dict[str, Asked]) -> dict[tuple[str, str], list[float]]:
        """The processor milliseconds of each search of each library; they take turns."""
        spent: dict[tuple[str, str], list[float]] = {(name, arm): [] for name in asked for arm in self.arms}
        pids = {name: read_pid(one.libraries.database) for name, one in asked.items()}
        for place in range(self.rounds + WARM_UP):
            for (name, arm), times in spent.items():
                one = asked[name]
                query = make_query(one.libraries.server, arm, *one.questions[place])
                start = read_processor_time(pids[name])
                found = search.hybrid_search(one.libraries.database, one.library.user, query)
                times.append(1000 * (read_processor_time(pids[name]) - start))
                assert found.hits, f"{arm} of {name} found nothing"
        return {key: times[WARM_UP:] for key, times in spent.items()}

    def measure_recall(self, library: ScaleLibrary) -> float:
        """The mean share of the nearest 20 passages that the vector search finds."""
        vectors = np.concatenate(library.vectors)
        recalls = []
        for text, lang, vector in self.libraries.ask(library, RECALL_QUESTIONS):
            query = make_query(self.libraries.server, "vectors", text, lang, vector)
            hits = search.hybrid_search(self.database, library.user, query).hits
            similarities = np.concatenate([part.astype(np.float32) @ vector for part in np.array_split(vectors, 32)])
            nearest = {library.chunk_ids[place] for place in np.argsort(-similarities)[:RECALL_DEPTH]}
            recalls.append(len(nearest & {hit.chunk_id for hit in hits[:RECALL_DEPTH]}) / RECALL_DEPTH)
        return statistics.mean(recalls)

    def compare_words(self, library: ScaleLibrary) -> float:
        """The share of the questions for which posting lists find what reading every passage finds, in that order."""
        same = []
        for text, lang, _ in self.libraries.ask(library, self.rounds):
            with self.database.as_user(library.user) as connection:
                row = connection.execute(_SAME, {"text": text, "lang": lang}).fetchone()
            same.append(row is not None and row["is_same"])
        return statistics.mean(same)

    def measure_growth(self, grown: ScaleLibrary, chunks: int) -> float:
        """Passages a second that are copied into the tables."""
        started, before = time.monotonic(), len(grown.chunk_ids)
        self.libraries.grow(grown, before + chunks)
        return chunks / (time.monotonic() - started)

    def measure_deletion(self, library: ScaleLibrary, documents: int) -> tuple[float, float]:
        """The seconds it takes to delete documents, and then to vacuum."""
        started = time.monotonic()
        with self.database.as_user(library.user) as connection:
            connection.execute(
                "select rag.delete_document(d.id) from (select id from rag.documents limit %s) d", (documents,)
            )
        deleted = time.monotonic()
        vacuum(self.database)
        return deleted - started, time.monotonic() - deleted

    def read_sizes(self) -> dict[str, float]:
        """Megabytes of each table with its indexes, and of each vector index."""
        with self.database.autocommit() as connection:
            return {row["name"]: float(row["megabytes"]) for row in connection.execute(_SIZES).fetchall()}


def make_query(server: models.EmbeddingServer, arm: str, text: str, lang: str, vector: Any) -> retriever.Query:
    if arm == "vectors":
        settings = Settings(fts_weight=0, blend_weight=0, hybrid_top_k=RECALL_DEPTH)
        text = ""
    else:
        settings = Settings()
    vectors = (retriever.QueryVector(server.id, tuple(vector.tolist()), 1.0),)
    shown = () if arm == "words" else vectors
    return retriever.Query(((text, lang),), shown, models.Scope("library"), settings, settings.blend_alpha)


def read_pid(database: Database) -> int:
    """The server's process of the connection that the next search takes."""
    with database.autocommit() as connection:
        return connection.info.backend_pid


def make_base(libraries: ScaleLibraries, size: int) -> ScaleLibrary:
    """The first library of a database: the same one in each."""
    base = libraries.make(max(1, size // TOPIC_CHUNKS))
    libraries.grow(base, size)
    return base


def vacuum(database: Database) -> None:
    with database.autocommit() as connection:
        connection.execute("vacuum analyze")


def list_figures(
    bench: Bench, others: ScaleLibraries, base_size: int, passages: int, tenants: int, shared: int
) -> list[dict[str, Any]]:
    """`others` are in the database where the library of `base_size` passages is alone."""
    base, alone = make_base(bench.libraries, base_size), make_base(others, base_size)
    libraries = bench.libraries
    large = libraries.make(max(6, passages // TOPIC_CHUNKS))
    rate = bench.measure_growth(large, passages)
    for size in [shared // tenants] * tenants if tenants else []:
        libraries.grow(libraries.make(1), size, keeps_vectors=False)
    vacuum(bench.database)
    vacuum(others.database)
    asked = {"base": bench.ask_of(base), "large": bench.ask_of(large)}
    asked["alone"] = Asked(others, alone, asked["base"].questions)
    before = bench.measure(asked)
    started = time.monotonic()
    segments = search.renew_segments(bench.database)
    listed = time.monotonic()
    if "vectors" in bench.arms:
        vector_indexes.build_vector_indexes(bench.database)
    built = time.monotonic()
    vacuum(bench.database)
    after = bench.measure(asked)
    rows = [_growth(f"{arm} of {passages:,} to {base_size:,} passages", after, arm) for arm in bench.arms]
    rows += [_compare(f"  {arm} of {passages:,}, to reading all", after, before, ("large", arm)) for arm in bench.arms]
    for arm in bench.arms:  # the library alone has no indexes: what changed for both is the machine
        with_indexes, without = (_relate_to_alone(times, arm) for times in (after, before))
        name = f"  {arm} of {base_size:,} to alone, with indexes and without"
        rows.append(at_most(name, with_indexes, without, 1.05))
    with_alone = {("base", arm): after["alone", arm] for arm in bench.arms}
    rows += [
        _compare(f"{arm} of {base_size:,} among others, to alone", after, with_alone, ("base", arm), TENANT_GOAL)
        for arm in bench.arms
    ]
    if "vectors" in bench.arms:
        rows.append(figure("recall@20 of the vector index", bench.measure_recall(large), 1.0, 0.99))
    rows.append(figure("questions whose words find the same", bench.compare_words(large), 1.0, 1.0))
    sizes = bench.read_sizes()
    rows += [figure(f"MB of {name}", size, sum(sizes.values())) for name, size in sizes.items() if size > 1]
    rows.append(figure("passages copied a second, without and with indexes", bench.measure_growth(large, 1000), rate))
    rows.append(figure("passages a second into posting lists", sum(segments) / max(listed - started, 1e-9), rate))
    rows.append(figure("seconds to build vector indexes, to posting lists", built - listed, listed - started))
    deleted, vacuumed = bench.measure_deletion(large, 20)
    rows.append(figure(f"seconds to delete {20 * DOCUMENT_CHUNKS:,} passages, to vacuum", deleted, vacuumed))
    return rows


def _relate_to_alone(times: dict[tuple[str, str], list[float]], arm: str) -> float:
    return statistics.median(times["base", arm]) / statistics.median(times["alone", arm])


def _growth(name: str, times: dict[tuple[str, str], list[float]], arm: str) -> dict[str, Any]:
    row = _compare(name, {("x", arm): times["large", arm]}, {("x", arm): times["base", arm]}, ("x", arm), GROWTH_GOAL)
    return row | {"p95": round(float(np.quantile(times["large", arm], 0.95)), 1)}


def _compare(
    name: str,
    times: dict[tuple[str, str], list[float]],
    others: dict[tuple[str, str], list[float]],
    key: tuple[str, str],
    goal: float | None = None,
) -> dict[str, Any]:
    value, baseline = statistics.median(times[key]), statistics.median(others[key])
    name += ", processor ms, p50"
    return figure(name, value, baseline) if goal is None else at_most(name, value, baseline, goal)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures how search grows with a library.")
    parser.add_argument("--base", type=int, default=BASE, help="passages of the library it is compared with")
    parser.add_argument("--passages", type=int, default=SHORT, help="passages of the large library")
    parser.add_argument("--tenants", type=int, default=0, help="libraries beside it")
    parser.add_argument("--shared", type=int, default=100_000, help="passages that those share")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="questions asked of each library")
    parser.add_argument("--words", action="store_true", help="search by words alone, and build no vector index")
    asked = parser.parse_args()
    arms = ("words",) if asked.words else ARMS
    with open_database() as database, open_database() as other:
        bench = Bench(ScaleLibraries(database), asked.rounds, arms)
        figures = list_figures(bench, ScaleLibraries(other), asked.base, asked.passages, asked.tenants, asked.shared)
        print_figures("scale", figures)


@contextmanager
def open_database() -> Iterator[Database]:
    """An empty database on a server of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="ibid-bench-") as folder,
        embedded_postgres.start(Path(folder).resolve() / "postgres", settings=SERVER_SETTINGS) as server,
        closing(Database(server.dsn)) as database,
    ):
        migrate.migrate(server.dsn)
        yield database


if __name__ == "__main__":
    main()
