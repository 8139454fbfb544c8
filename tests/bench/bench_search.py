"""How fast and how complete a search is, by size of what it searches: `python -m tests.bench.bench_search [--long]`.

Prints a table and, as its last line, one JSON object. A server is filled with libraries of very different sizes:
50,000 passages, or 100,000 with `--long`. Times are medians at the client, asked in turns. The baseline of a search is
the sum of its two bare arms: the same passages ranked by words and by vectors, ids only, each as a plain statement of
the same user, with the question's terms weighed beforehand. Recall is held against all passages compared in numpy.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from functions.adapters.postgres import search, vector_indexes
from functions.adapters.postgres.connection import Database
from functions.core import models, retrieval
from functions.core.settings import Settings
from functions.local import embedded_postgres, evaluation, migrate
from tests.bench.bench_embedding import figure
from tests.bench.crowd import Crowd

if TYPE_CHECKING:
    from tests.bench.crowd import Vectors

SCOPES = {"200": 200, "1,000": 1000, "5,000": 5000, "30,000": 30_000}
GROWN = "1,000"
SHORT, LONG = 50_000, 100_000
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
    """A question and what the bare arms need to know of it."""

    query: retrieval.Query
    generations: list[int]
    vector: str
    terms: str


class Bench:
    """Asks the libraries of a crowd; one session as a user for the bare arms, the product's own for the search."""

    def __init__(self, crowd: Crowd, database: Database, dsn: str, rounds: int) -> None:
        self.crowd, self.database, self.dsn, self.rounds = crowd, database, dsn, rounds

    def measure_scope(self, name: str) -> dict[str, float]:
        """Median milliseconds of the search and of each arm."""
        seconds: dict[str, list[float]] = {"hybrid": [], "dense": [], "lexical": []}
        with self._session(name) as session:
            questions = list(self._prepare(session, name, self.rounds + WARM_UP))
            for question in questions:
                for arm, ask in self._arms(session, name, question).items():
                    start = time.perf_counter()
                    ask()
                    seconds[arm].append(time.perf_counter() - start)
        return {arm: statistics.median(found[WARM_UP:]) * 1000 for arm, found in seconds.items()}

    def measure_recall(self, name: str, *, off_topic: bool) -> tuple[float, float]:
        """Mean recall among the first 20, and the share of the rows asked for that came."""
        tenant, recalls, filled = self.crowd.tenants[name], [], []
        for text, vector in self.crowd.ask(name, self.rounds, off_topic=off_topic):
            query = self._query(text, vector, VECTORS_ALONE)
            hits = search.hybrid_search(self.database, tenant.user, query).hits
            nearest = (-(tenant.vectors @ vector)).argsort(kind="stable")[:RECALL_DEPTH] + tenant.first_id
            recalls.append(len({hit.chunk_id for hit in hits} & set(nearest.tolist())) / len(nearest))
            filled.append(len(hits) / min(RECALL_DEPTH, tenant.chunk_count))
        return statistics.mean(recalls), statistics.mean(filled)

    def _arms(self, session: psycopg.Connection[Any], name: str, q: Prepared) -> dict[str, Callable[[], object]]:
        user, server = self.crowd.tenants[name].user, self.crowd.server.id
        return {
            "hybrid": lambda: search.hybrid_search(self.database, user, q.query),
            "dense": lambda: session.execute(_DENSE, (q.vector, q.generations, server)).fetchall(),
            "lexical": lambda: session.execute(_LEXICAL, (q.terms, q.generations)).fetchall(),
        }

    def _prepare(self, session: psycopg.Connection[Any], name: str, count: int) -> Iterator[Prepared]:
        row = session.execute("select * from rag.search_scope(null, null, null, '{}')").fetchone()
        assert row is not None
        generations, _, chunk_count = row
        for text, vector in self.crowd.ask(name, count):
            terms = session.execute(
                "select query::text from rag.lexical_queries(%s, 'en', %s, %s) where lang = 'en'",
                (text, generations, chunk_count),
            ).fetchone()
            assert terms is not None
            yield Prepared(self._query(text, vector, Settings()), generations, str(vector.tolist()), terms[0])

    def _query(self, text: str, vector: Vectors, settings: Settings) -> retrieval.Query:
        query_vector = retrieval.QueryVector(self.crowd.server.id, tuple(vector.tolist()), 1.0)
        scope = models.Scope("library")
        return retrieval.Query(text, "en", (query_vector,), scope, settings, settings.blend_alpha)

    @contextmanager
    def _session(self, name: str) -> Iterator[psycopg.Connection[Any]]:
        claims = json.dumps({"sub": self.crowd.tenants[name].user.id, "role": "authenticated"})
        with psycopg.connect(self.dsn, autocommit=True, prepare_threshold=None) as session:
            session.execute("set search_path = pg_catalog, extensions")
            session.execute(
                "select set_config('role', 'authenticated', false), set_config('request.jwt.claims', %s, false)",
                (claims,),
            )
            yield session


def figures_of_scope(bench: Bench, name: str) -> list[dict[str, Any]]:
    found = bench.measure_scope(name)
    arms = found["dense"] + found["lexical"]
    rows = [
        figure(f"search of {name}, p50 ms, to its bare arms", found["hybrid"], arms, OVERHEAD_GOAL,
               found["hybrid"] <= OVERHEAD_GOAL * arms),
        *(figure(f"  {arm} arm alone, ms", found[arm], arms, None, True) for arm in ("dense", "lexical")),
    ]  # fmt: skip
    for off_topic in (False, True):
        recall, fill = bench.measure_recall(name, off_topic=off_topic)
        kind = "off" if off_topic else "on"
        least = 0.99 if bench.crowd.tenants[name].chunk_count <= 10_000 else 0.97
        rows.append(figure(f"  recall@20, {kind} topic", recall, 1.0, least, recall >= least))
        rows.append(figure(f"  rows found of those asked for, {kind} topic", fill, 1.0, 1.0, fill == 1.0))
    return rows


def fill_others(crowd: Crowd, prefix: str, chunks: int) -> None:
    crowd.add({f"{prefix}{n}": OTHERS_CHUNKS for n in range(-(-chunks // OTHERS_CHUNKS))})


def count_chunks(crowd: Crowd) -> int:
    return sum(tenant.chunk_count for tenant in crowd.tenants.values())


def run(folder: Path, *, total: int, rounds: int) -> list[dict[str, Any]]:
    with (
        embedded_postgres.start(folder / "postgres", settings=evaluation.FAST) as server,
        closing(Database(server.dsn)) as database,
    ):
        migrate.migrate(server.dsn, with_functions=True)
        crowd = Crowd(database, server.dsn)
        bench = Bench(crowd, database, server.dsn, rounds)
        crowd.add({GROWN: SCOPES[GROWN]})
        fill_others(crowd, "few", total // 11)
        before, known = bench.measure_scope(GROWN)["hybrid"], count_chunks(crowd)
        crowd.add({name: size for name, size in SCOPES.items() if name != GROWN})
        fill_others(crowd, "many", total - count_chunks(crowd))
        after = bench.measure_scope(GROWN)["hybrid"]
        built = vector_indexes.build_vector_indexes(database)
        rows = [row for name in SCOPES for row in figures_of_scope(bench, name)]
        held = count_chunks(crowd)
        rows.append(figure(f"search of {GROWN} among {held:,} to among {known:,}, p50 ms", after, before, GROWTH_GOAL,
                           after <= GROWTH_GOAL * before))  # fmt: skip
        rows.append(figure("approximate indexes built", len(built), 1, None, True))
        return rows


def main() -> None:
    is_long = "--long" in sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="ibid-bench-") as name:
        figures = run(Path(name).resolve(), total=LONG if is_long else SHORT, rounds=200 if is_long else 60)
    print(f"{'figure':52} {'value':>10} {'baseline':>10} {'ratio':>8} {'goal':>5}  ok")
    for row in figures:
        goal = "" if row["goal"] is None else row["goal"]
        print(f"{row['figure']:52} {row['value']:10} {row['baseline']:10} {row['ratio']:8} {goal:>5}  {row['ok']}")
    print(json.dumps({"name": "search", "figures": figures}))


if __name__ == "__main__":
    main()
