"""Measures speed and recall of the search by the size of its scope: `python -m tests.bench.bench_search [--long]`.

A server holds libraries of very different sizes, with 50,000 passages together, or 120,000 with `--long`. Times are
medians at the client; the searches take turns. Processor times, of the client's thread and the server's process
together, say the same on a busy machine, where Linux counts them. The baseline of a search is the sum of its two bare
arms. Each arm is a plain statement of the same user that ranks the same passages by full text or by vectors and returns
only ids; the weights of the question's terms are computed beforehand. The reference for recall compares all passages in
numpy. Prints a table and, as the last line, a JSON object.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from functions.adapters.postgres import search
from functions.adapters.postgres.connection import Database
from functions.adapters.postgres.embedding import vector_indexes
from functions.core import models
from functions.core.retrieval import retriever
from functions.core.settings import Settings
from functions.local.database import embedded_postgres, migrate
from functions.local.evaluation import command
from tests.bench.libraries import Libraries, Vectors
from tests.bench.report import at_most, figure, print_figures

SCOPES = {"200": 200, "1,000": 1000, "5,000": 5000, "30,000": 30_000}
INDEXED = {"60,000": 60_000}  # large enough for an approximate index
GROWN = "1,000"
SHORT, LONG = 50_000, 120_000
OTHERS_CHUNKS = 1500
WARM_UP = 15
OVERHEAD_GOAL, GROWTH_GOAL = 1.5, 1.3
RECALL_DEPTH = 20
VECTORS_ALONE = Settings(fts_weight=0, blend_weight=0, hybrid_top_k=RECALL_DEPTH)

_DENSE = """
select v.chunk_id, v.embedding <#> %s::text::extensions.halfvec as distance
from rag.chunk_vectors v where v.generation = any (%s) and v.server_id = %s order by 2, 1 limit 50
"""
_LEXICAL = """
select t.chunk_id, t.terms <#> %s::text::extensions.sparsevec as distance
from rag.chunk_terms t where t.generation = any (%s) order by 2, 1 limit 50
"""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A question, and the parameters of the bare arms."""

    query: retriever.Query
    generations: list[int]
    vector: str
    terms: str


class Bench:
    """Asks libraries: the bare arms in a session of the user, the search through the product's own connection."""

    def __init__(self, libraries: Libraries, database: Database, dsn: str, rounds: int) -> None:
        self.libraries, self.database, self.dsn, self.rounds = libraries, database, dsn, rounds

    def measure_scope(self, name: str) -> dict[str, float]:
        """Measures the median milliseconds of the search and of each arm."""
        seconds: dict[str, list[float]] = {"hybrid": [], "dense": [], "lexical": []}
        with self._session(name) as session:
            questions = list(self._prepare(session, name, self.rounds + WARM_UP))
            for question in questions:
                for arm, ask in self._arms(session, name, question).items():
                    start = time.perf_counter()
                    ask()
                    seconds[arm].append(time.perf_counter() - start)
        return {arm: statistics.median(found[WARM_UP:]) * 1000 for arm, found in seconds.items()}

    def measure_processor_time(self, name: str) -> dict[str, float]:
        """Measures the median processor milliseconds of the search and of each arm, in client and server together."""
        spent: dict[str, list[float]] = {"hybrid": [], "dense": [], "lexical": []}
        with self.database.autocommit() as connection:
            search_pid = connection.info.backend_pid  # of the connection that the searches take again
        with self._session(name) as session:
            backends = dict.fromkeys(spent, session.info.backend_pid) | {"hybrid": search_pid}
            for question in list(self._prepare(session, name, self.rounds + WARM_UP)):
                for arm, ask in self._arms(session, name, question).items():
                    start = read_processor_time(backends[arm])
                    ask()
                    spent[arm].append(read_processor_time(backends[arm]) - start)
        return {arm: statistics.median(found[WARM_UP:]) * 1000 for arm, found in spent.items()}

    def measure_recall(self, name: str, *, off_topic: bool) -> tuple[float, float]:
        """Measures the mean recall of the first 20 hits, and the share of the requested rows that were found."""
        library, recalls, filled = self.libraries.by_name[name], [], []
        for text, vector in self.libraries.ask(name, self.rounds, off_topic=off_topic):
            query = self._query(text, vector, VECTORS_ALONE)
            hits = search.hybrid_search(self.database, library.user, query).hits
            nearest = (-(library.vectors @ vector)).argsort(kind="stable")[:RECALL_DEPTH] + library.first_id
            recalls.append(len({hit.chunk_id for hit in hits} & set(nearest.tolist())) / len(nearest))
            filled.append(len(hits) / min(RECALL_DEPTH, library.chunk_count))
        return statistics.mean(recalls), statistics.mean(filled)

    def _arms(self, session: psycopg.Connection[Any], name: str, q: Prepared) -> dict[str, Callable[[], object]]:
        user, server = self.libraries.by_name[name].user, self.libraries.server.id
        return {
            "hybrid": lambda: search.hybrid_search(self.database, user, q.query),
            "dense": lambda: session.execute(_DENSE, (q.vector, q.generations, server)).fetchall(),
            "lexical": lambda: session.execute(_LEXICAL, (q.terms, q.generations)).fetchall(),
        }

    def _prepare(self, session: psycopg.Connection[Any], name: str, count: int) -> Iterator[Prepared]:
        row = session.execute("select * from rag.search_scope(null, null, null, '{}')").fetchone()
        assert row is not None
        generations, _, chunk_count = row
        for text, vector in self.libraries.ask(name, count):
            terms = session.execute(
                "select query::text from rag.lexical_queries(array[%s], array['en'], %s, %s) where lang = 'en'",
                (text, generations, chunk_count),
            ).fetchone()
            assert terms is not None
            yield Prepared(self._query(text, vector, Settings()), generations, str(vector.tolist()), terms[0])

    def _query(self, text: str, vector: Vectors, settings: Settings) -> retriever.Query:
        query_vector = retriever.QueryVector(self.libraries.server.id, tuple(vector.tolist()), 1.0)
        scope = models.Scope("library")
        return retriever.Query(((text, "en"),), (query_vector,), scope, settings, settings.blend_alpha)

    @contextmanager
    def _session(self, name: str) -> Iterator[psycopg.Connection[Any]]:
        claims = json.dumps({"sub": self.libraries.by_name[name].user.id, "role": "authenticated"})
        with psycopg.connect(self.dsn, autocommit=True, prepare_threshold=None) as session:
            session.execute("set search_path = pg_catalog, extensions")
            session.execute(
                "select set_config('role', 'authenticated', false), set_config('request.jwt.claims', %s, false)",
                (claims,),
            )
            yield session


def read_processor_time(pid: int) -> float:
    """The processor seconds of this thread and of a server process, to the nanosecond."""
    return time.thread_time() + int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def list_scope_figures(bench: Bench, name: str) -> list[dict[str, Any]]:
    found = bench.measure_scope(name)
    arms = found["dense"] + found["lexical"]
    rows = [
        at_most(f"search of {name}, p50 ms, to its bare arms", found["hybrid"], arms, OVERHEAD_GOAL),
        *(figure(f"  {arm} arm alone, ms", found[arm], arms) for arm in ("dense", "lexical")),
    ]
    if Path("/proc/self/schedstat").exists():
        spent = bench.measure_processor_time(name)
        rows.append(figure("  processor time, p50 ms, to its arms", spent["hybrid"], spent["dense"] + spent["lexical"]))
    for off_topic in (False, True):
        recall, fill = bench.measure_recall(name, off_topic=off_topic)
        kind = "off" if off_topic else "on"
        least = 0.99 if bench.libraries.by_name[name].chunk_count <= 10_000 else 0.97
        rows.append(figure(f"  recall@20, {kind} topic", recall, 1.0, least))
        rows.append(figure(f"  rows found of those asked for, {kind} topic", fill, 1.0, 1.0))
    return rows


def fill_others(libraries: Libraries, prefix: str, chunks: int) -> None:
    libraries.add({f"{prefix}{n}": OTHERS_CHUNKS for n in range(-(-chunks // OTHERS_CHUNKS))})


def count_chunks(libraries: Libraries) -> int:
    return sum(library.chunk_count for library in libraries.by_name.values())


def run(folder: Path, scopes: Mapping[str, int], *, total: int, rounds: int) -> list[dict[str, Any]]:
    with (
        embedded_postgres.start(folder / "postgres", settings=command.FAST) as server,
        closing(Database(server.dsn)) as database,
    ):
        migrate.migrate(server.dsn)
        libraries = Libraries(database)
        bench = Bench(libraries, database, server.dsn, rounds)
        libraries.add({GROWN: scopes[GROWN]})
        fill_others(libraries, "few", total // 11)
        before, known = bench.measure_scope(GROWN)["hybrid"], count_chunks(libraries)
        libraries.add({name: size for name, size in scopes.items() if name != GROWN})
        fill_others(libraries, "many", total - count_chunks(libraries))
        after = bench.measure_scope(GROWN)["hybrid"]
        built = vector_indexes.build_vector_indexes(database)
        rows = [row for name in scopes for row in list_scope_figures(bench, name)]
        held = count_chunks(libraries)
        name = f"search of {GROWN} among {held:,} to among {known:,}, p50 ms"
        rows.append(at_most(name, after, before, GROWTH_GOAL))
        rows.append(figure("approximate indexes built", len(built), 1))
        return rows


def main() -> None:
    is_long = "--long" in sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="ibid-bench-") as name:
        folder = Path(name).resolve()
        if is_long:
            figures = run(folder, SCOPES | INDEXED, total=LONG, rounds=200)
        else:
            figures = run(folder, SCOPES, total=SHORT, rounds=60)
    print_figures("search", figures)


if __name__ == "__main__":
    main()
