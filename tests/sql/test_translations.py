"""Translations of passages: their queue, what they cost, and how a search finds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest

from functions.adapters.postgres import documents, search
from functions.adapters.postgres.connection import Database
from functions.adapters.postgres.ingestion.translations import TranslationStore
from functions.core import errors, models, ports
from functions.core.ingestion.translation import PassageTranslator, TranslationOutcome
from functions.core.retrieval.retriever import QueryVector
from functions.core.settings import Settings
from tests.support.library import ADA, BOB, add_notebook, claim_during, index_document, make_query

FRENCH = {
    "The boiler burns peat": "La chaudière brûle de la tourbe",
    "The cat sleeps on the mat": "Le chat dort sur le paillasson",
    "The bridge is long": "Le pont est long",
}
ENGLISH = list(FRENCH)
VECTORS = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]
SETTINGS = Settings(translate_documents="en_to_fr", price_translation_output_per_million=1e4)


@dataclass
class FakeTranslator:
    """Translates by dictionary; `faults` are raised before it goes on, one for each call."""

    faults: list[errors.IbidError | None] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def translate(self, text: str, source: models.Lang, target: models.Lang) -> tuple[str, models.Usage]:
        self.asked.append(text)
        if self.faults and (fault := self.faults.pop(0)) is not None:
            raise fault
        return FRENCH.get(text, ""), models.Usage(10, 5, "opus")


@dataclass
class FakeEmbedder:
    """Gives every translation the fourth unit vector."""

    dimensions: int = 4
    max_input_tokens: int = 100
    faults: list[errors.IbidError] = field(default_factory=list)

    def embed(self, texts: Sequence[str]) -> Any:
        if self.faults:
            raise self.faults.pop()
        return [[0.0, 0.0, 0.0, 1.0]] * len(texts)

    def count_tokens(self, text: str) -> int:
        return len(text.split())


@dataclass
class Place:
    db: Database
    dsn: str
    server: models.EmbeddingServer
    translator: FakeTranslator = field(default_factory=FakeTranslator)
    embedder: FakeEmbedder = field(default_factory=FakeEmbedder)

    @property
    def store(self) -> TranslationStore:
        return TranslationStore(self.db)

    def add(self, texts: Sequence[str] = ENGLISH, **fields: Any) -> str:
        """Indexes a document and queues its translation."""
        document_id = index_document(
            self.db, self.dsn, texts, server=self.server, vectors=VECTORS[: len(texts)], **fields
        )
        self.store.queue_translations(["en"])
        return document_id

    def run(self, **fields: Any) -> TranslationOutcome | None:
        return self.worker(**fields).translate_next()

    def worker(self, **fields: Any) -> PassageTranslator:
        embedder: ports.Embedder = self.embedder
        given: dict[str, Any] = {"settings": SETTINGS, "embedder_of": lambda _: (self.server, embedder)}
        return PassageTranslator(self.store, self.translator, **given | fields)

    def find(self, text: str, lang: str = "fr", **query: Any) -> list[models.SearchHit]:
        return list(search.hybrid_search(self.db, query.pop("user", ADA), make_query(text, lang=lang, **query)).hits)

    def count(self, table: str) -> int:
        with psycopg.connect(self.dsn) as connection:
            row = connection.execute(f"select count(*) from rag.{table}").fetchone()
        assert row is not None
        return int(row[0])

    def describe(self, document_id: str) -> dict[str, Any]:
        with self.db.as_user(ADA) as connection:
            row = documents.find(connection, document_id) | {"health": {}}
            health = documents.read_health(connection, row)
        assert health is not None
        return dict(health["translation"])

    def sql(self, statement: str) -> None:
        with psycopg.connect(self.dsn) as connection:
            connection.execute(statement)


@pytest.fixture
def place(db: Database, database: str, server: models.EmbeddingServer) -> Place:
    return Place(db, database, server)


def test_a_question_finds_a_passage_by_the_words_of_its_translation(place: Place) -> None:
    """LANG-2"""
    place.add()
    assert place.find("Que brûle la chaudière ?") == []
    place.run()
    [hit] = place.find("Que brûle la chaudière ?")
    assert (hit.text, hit.lang, hit.translation, hit.is_foreign) == (ENGLISH[0], "en", FRENCH[ENGLISH[0]], False)


def test_a_passage_that_is_found_in_both_forms_counts_once(place: Place) -> None:
    """LANG-2, RET-4"""
    place.add(["The boiler burns peat"])
    place.run()
    vectors = [QueryVector(place.server.id, tuple(vector), 1.0) for vector in (VECTORS[0], [0.0, 0.0, 0.0, 1.0])]
    [hit] = place.find("peat tourbe", vectors=vectors)
    assert (hit.fts_rank, hit.vector_rank, hit.similarity) == (1, 1, 1.0)


def test_a_translation_is_found_by_its_meaning(place: Place) -> None:
    """LANG-2"""
    place.add()
    place.run()
    found = place.find("", vectors=[QueryVector(place.server.id, (0.0, 0.0, 0.0, 1.0), 1.0)])
    assert {hit.text: hit.similarity for hit in found} == dict.fromkeys(ENGLISH, 1.0)


def test_a_term_of_both_forms_is_counted_once(place: Place) -> None:
    """LANG-2, RET-2"""
    place.add(["The bridge is long"])  # "long" in French, too
    place.run()
    with place.db.as_worker() as connection:
        row = connection.execute(
            "select rag.chunk_frequencies(array[rag.term_id('long'), rag.term_id('pont')], array(select id from"
            " rag.generations)) as counts"
        ).fetchone()
    assert row is not None
    assert sorted(row["counts"].values()) == [1, 1]


def test_a_question_in_the_language_of_the_passage_shows_no_translation(place: Place) -> None:
    """LANG-2"""
    place.add()
    place.run()
    assert [hit.translation for hit in place.find("boiler", lang="en")] == [None]


def test_only_the_owner_finds_a_translation(place: Place) -> None:
    """LANG-2, SEC-2"""
    place.add()
    place.run()
    assert place.find("chaudière", user=BOB) == []
    with place.db.as_user(BOB) as connection:
        assert connection.execute("select from rag.chunk_translations").fetchall() == []
        assert connection.execute("select from rag.translation_jobs").fetchall() == []


def test_a_scope_holds_for_translations(place: Place) -> None:
    """LANG-2, RET-1"""
    place.add(notebook_id=add_notebook(place.db))
    place.run()
    assert place.find("chaudière", scope=models.Scope("notebook", notebook_id=add_notebook(place.db))) == []


def test_deleting_a_document_removes_its_translations(place: Place) -> None:
    """LANG-2, LIB-8"""
    document_id = place.add()
    place.run()
    with place.db.as_user(ADA) as connection:
        documents.delete_document(connection, document_id)
    tables = ("chunk_translations", "translation_jobs", "chunk_vectors", "chunk_terms", "generation_terms")
    assert {place.count(table) for table in tables} == {0}


def test_a_run_that_ends_in_the_middle_loses_no_batch_and_pays_for_none_twice(place: Place) -> None:
    """LANG-2"""
    document_id = place.add()
    place.translator.faults = [None, None, errors.ModelUnavailableError()]
    outcome = place.run(lease_seconds=0)
    assert outcome is not None
    assert (outcome.status, outcome.code, place.count("chunk_translations")) == ("queued", "model_unavailable", 2)
    place.sql("update rag.translation_jobs set run_after = now()")
    place.run()
    assert sorted(place.translator.asked) == sorted([*ENGLISH, ENGLISH[2]])
    assert place.describe(document_id) == {
        "status": "done",
        "error_code": None,
        "error": None,
        "model": "opus",
        "passages": 3,
        "translated": 3,
        "refused": 0,
        "prompt_tokens": 30,
        "completion_tokens": 15,
        "cost_usd": 0.15,
    }


def test_a_worker_that_was_killed_is_followed_by_the_next(place: Place) -> None:
    """LANG-2"""
    place.add()
    killed = place.store.claim_translation(None, ["en"], 0)
    assert killed is not None
    place.run()
    assert place.count("chunk_translations") == 3
    with pytest.raises(errors.LeaseLostError):
        place.store.save_translations(killed, [], 60, models.Usage(), 0.0)


def test_a_translation_that_is_claimed_while_its_document_is_finished_knows_the_server(place: Place) -> None:
    """LANG-2: else its vectors would be missing"""
    place.add()
    place.sql("create table finished as select generation from rag.documents")
    place.sql("update rag.documents set status = 'processing', generation = null")
    finish = "update rag.documents d set status = 'indexed', generation = f.generation from finished f"
    job = claim_during(finish, place.dsn, "translation_jobs", lambda: place.store.claim_translation(None, ["en"], 60))
    assert job is not None
    assert job.server_id == place.server.id


def test_a_translation_that_was_paid_for_is_kept_when_it_cannot_be_embedded(place: Place) -> None:
    """LANG-2"""
    place.add()
    place.embedder.faults = [errors.ModelUnavailableError()]
    place.run()
    assert (place.count("chunk_translations"), place.count("chunk_vectors")) == (3, 3)
    place.sql("update rag.translation_jobs set run_after = now()")
    place.run()
    assert (place.count("chunk_vectors"), place.translator.asked) == (6, ENGLISH)


@pytest.mark.parametrize(
    ("fault", "status", "seconds"),
    [
        (errors.ModelRateLimitedError(retry_after=90.0), "queued", (89, 110)),
        (errors.ModelUnavailableError(), "queued", (1, 4)),
        (errors.ModelRejectedError(status=401), "failed", None),
    ],
    ids=["rate limited", "unavailable", "wrong key"],
)
def test_a_translator_that_fails_leaves_the_document_ready(
    place: Place, fault: errors.IbidError, status: str, seconds: tuple[float, float] | None
) -> None:
    """LANG-2"""
    document_id = place.add()
    place.translator.faults = [fault]
    place.run()
    with place.db.as_worker() as connection:
        row = connection.execute(
            "select d.status, d.error, extract(epoch from j.run_after - clock_timestamp())::float8 as wait"
            " from rag.documents d join rag.translation_jobs j on j.generation = d.generation"
        ).fetchone()
    assert row is not None
    assert (row["status"], row["error"]) == ("indexed", None)
    described = place.describe(document_id)
    assert (described["status"], described["error_code"], described["error"]) == (status, fault.code, fault.message)
    assert seconds is None or seconds[0] < row["wait"] < seconds[1]
    assert [hit.text for hit in place.find("boiler", lang="en")] == [ENGLISH[0]]


def test_failures_without_progress_end_after_the_most_attempts(place: Place) -> None:
    """LANG-2"""
    place.add()
    place.translator.faults = [errors.ModelUnavailableError()] * 9
    statuses = []
    for _ in range(2):
        outcome = place.run(settings=Settings(translate_documents="both", max_attempts=2))
        statuses.append(outcome and outcome.status)
        place.sql("update rag.translation_jobs set run_after = now()")
    assert statuses == ["queued", "failed"]


def test_the_owner_has_a_failed_translation_tried_again(place: Place) -> None:
    """LANG-2"""
    document_id = place.add([*ENGLISH, "No dictionary has this one"][1:], lang="en")
    place.run()
    assert place.describe(document_id)["refused"] == 1
    with place.db.as_user(BOB) as connection:
        assert documents.request_translation(connection, document_id) is None
    with place.db.as_user(ADA) as connection:
        assert documents.request_translation(connection, document_id) is not None
    place.run()
    assert place.translator.asked[3:] == ["No dictionary has this one"]


def test_what_failed_is_tried_again_after_an_hour(place: Place) -> None:
    """LANG-2"""
    place.add()
    place.translator.faults = [errors.ModelRejectedError(status=401)]
    place.run()
    assert place.store.queue_translations(["en"]) == []
    place.sql("update rag.translation_jobs set finished_at = now() - interval '2 hours'")
    assert len(place.store.queue_translations(["en"])) == 1


def test_a_new_direction_translates_what_was_left(place: Place) -> None:
    """LANG-2"""
    place.add(["Le pont est long"], lang="fr")
    place.run()
    assert place.translator.asked == []
    place.store.queue_translations(["en", "fr"])
    place.run(settings=Settings(translate_documents="both"))
    assert place.translator.asked == ["Le pont est long"]


def test_a_character_that_cannot_be_stored_does_not_stop_a_translation(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LANG-2"""
    monkeypatch.setitem(FRENCH, ENGLISH[1], "Le chat\x00 dort \ud800 sur le paillasson")
    document_id = place.add()
    place.run()
    assert (place.describe(document_id)["status"], place.describe(document_id)["translated"]) == ("done", 3)
    assert [hit.translation for hit in place.find("paillasson")] == ["Le chat\ufffd dort \ufffd sur le paillasson"]


def test_equal_passages_are_translated_once(place: Place) -> None:
    """LANG-2"""
    place.add(ENGLISH[:1])
    place.run()
    place.add(ENGLISH[:1])
    place.run()
    assert (place.translator.asked, place.count("chunk_translations")) == (ENGLISH[:1], 2)


def test_without_time_a_run_leaves_the_rest_to_the_next(place: Place) -> None:
    """LANG-2"""
    place.add()
    outcome = place.run(remaining_seconds=lambda: 0.0)
    assert outcome is not None
    assert (outcome.status, outcome.again, place.translator.asked) == ("queued", True, [])


def test_a_passage_that_nobody_translates_costs_a_search_nothing_else(place: Place) -> None:
    """LANG-3, RET-1"""
    place.add()
    assert place.run(settings=Settings()) is None
    assert place.translator.asked == []
