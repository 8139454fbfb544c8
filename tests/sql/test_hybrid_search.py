from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from functions.adapters.postgres import search, settings
from functions.adapters.postgres.connection import Database
from functions.core import models
from functions.core.retrieval.retriever import QueryVector
from functions.core.settings import Settings
from tests.support import library
from tests.support.library import ADA, BOB, index_document, make_query

HISTORY = ["Luther writes in Wittenberg in 1519", "The students came from France", "A treaty ended the long war"]


def find_texts(db: Database, text: str, **query: Any) -> list[str]:
    return [hit.text for hit in search.hybrid_search(db, ADA, make_query(text, **query)).hits]


def test_a_question_finds_passages_by_any_of_its_words(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """RET-2"""
    index_document(db, database, HISTORY, server=server)
    assert find_texts(db, "Where did the student that Luther knew study?") == [HISTORY[1], HISTORY[0]]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("etudiants foret", "Les étudiants de la forêt"),
        ("étudiants forêt", "Les etudiants de la foret"),
        ("L’ÉTUDIANTE a-t-elle une œuvre ?", "Son oeuvre complète"),
        ("oeuvre", "Une œuvre"),
        ("oeuvres", "Œuvres complètes"),
        ("e\u0301tudiant", "un étudiant"),
        ("ﬁnance", "la finance"),
    ],
    ids=["no accents asked", "no accents written", "oe", "œ", "Œ", "decomposed", "ligature"],
)
def test_accents_and_ligatures_do_not_matter(
    db: Database, database: str, server: models.EmbeddingServer, question: str, text: str
) -> None:
    """RET-2"""
    index_document(db, database, [text, "Rien à voir"], server=server, lang="fr")
    assert find_texts(db, question, lang="fr") == [text]


@pytest.mark.parametrize(
    "question",
    [
        "",
        "   ",
        "& | ! ( ) :* <->",
        "'\"\\",
        "the of and",
        "a" * 100_000,
        "word " * 5000,
        "\x00",
        "lone \ud83d surrogate",
        "';drop--",
    ],
    ids=range(10),
)
def test_no_question_is_a_syntax_error(
    db: Database, database: str, server: models.EmbeddingServer, question: str
) -> None:
    """RET-2"""
    index_document(db, database, HISTORY, server=server)
    assert len(find_texts(db, question)) <= 3


def test_a_question_of_stop_words_alone_is_still_searched(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    index_document(db, database, ["To be or not to be", "Something else"], server=server, lang="simple")
    assert find_texts(db, "to be or not to be") == ["To be or not to be"]


@pytest.mark.parametrize(
    "question", ["Quelle est la cause ?", "Comment et pourquoi la cause ?", "Où sont les causes ?"]
)
def test_french_question_words_find_nothing(
    db: Database, database: str, server: models.EmbeddingServer, question: str
) -> None:
    """RET-2"""
    texts = ["la cause de la guerre", "comment et pourquoi, on ne sait quelle ni où, les uns et les autres"]
    index_document(db, database, texts, server=server, lang="fr")
    hits = search.hybrid_search(db, ADA, make_query(question, lang="fr")).hits
    assert [(hit.text, hit.coverage) for hit in hits] == [(texts[0], 1.0)]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("FY2022", "Sales of fiscal year 2022"),
        ("fiscal 2022", "Sales of FY22"),
        ("FY 22 sales", "In 2022 they fell"),
        ("2023", "The season 2022/23"),
        ("2022-23", "In the year 2023"),
        ("2019/20", "In the year 2020"),
        ("2022", "From 2021-2022 on"),
        ("2022", "On 12/31/2022"),
        ("Q3 '21", "Results of 3Q 2021"),
        ("Q4 2023", "2023Q4 results"),
        ("in '93", "It was 1993"),
    ],
)
def test_a_year_is_found_however_it_is_written(
    db: Database, database: str, server: models.EmbeddingServer, question: str, text: str
) -> None:
    """RET-2"""
    index_document(db, database, [text, "Nothing of the kind, 11-15 times, page 22, l'23 and 2022-11"], server=server)
    assert find_texts(db, question)[0] == text


def test_only_years_are_spelled_as_years(database: str) -> None:
    kept = "22% of Q1 10 people, 5'11 tall, l’11 novembre, 24/7, 2022-11-30, fiscal 22.5 and 10.1038/12-34"
    with psycopg.connect(database) as connection:
        assert connection.execute("select rag.spell_years(%s)", (kept,)).fetchone() == (kept,)


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ('Who wrote "the long war"?', "A treaty ended the long war of the north"),
        ("« La longue guerre » ?", "Ils parlent de la longue\nguerre, encore"),
        ("“lONG, wár”", "A treaty ended the long war of the north"),
        ('"war long"', "At war long ago, they were ended"),
        ('the war "they" have "ended"', "At war long ago, they were ended"),
    ],
)
def test_passages_with_a_quoted_phrase_come_first(
    db: Database, database: str, server: models.EmbeddingServer, question: str, first: str
) -> None:
    """RET-2"""
    texts = [
        "The war was long, the war was cold, the war was lost, and the treaty of war",
        "At war long ago, they were ended",
        "A treaty ended the long war of the north",
        "Ils parlent de la longue\nguerre, encore",
    ]
    index_document(db, database, texts, server=server)
    assert find_texts(db, question)[0] == first


@pytest.mark.parametrize("question", ['"unknown phrase" war', '"', '""', '" "', 'the 5" pipe of war', "«»"])
def test_quotation_marks_without_a_phrase_are_ignored(
    db: Database, database: str, server: models.EmbeddingServer, question: str
) -> None:
    index_document(db, database, ["The war", "The peace"], server=server)
    assert find_texts(db, question) == (["The war"] if "war" in question else [])


def reference_bm25(texts: list[list[str]], query: list[str]) -> list[float]:
    """Lucene's BM25 with an average length of 100 terms, written from the formula."""
    scores = []
    for words in texts:
        score = 0.0
        for word in set(query):
            df = sum(word in other for other in texts)
            tf = Counter(words)[word]
            idf = math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
            score += idf * tf * 1.9 / (tf + 0.9 * (0.4 + 0.6 * len(words) / 100))
        scores.append(score)
    return scores


def test_the_lexical_score_is_bm25(db: Database, database: str, server: models.EmbeddingServer) -> None:
    """RET-2"""
    rng = np.random.default_rng(7)
    words = [f"w{n}x" for n in range(30)]
    texts = [" ".join(rng.choice(words, size=rng.integers(3, 60))) for _ in range(40)]
    index_document(db, database, texts, server=server, lang="simple")
    found = search.hybrid_search(db, ADA, make_query("w3x w7x w11x", lang="simple", settings=Settings(hybrid_top_k=50)))
    expected = dict(zip(texts, reference_bm25([t.split() for t in texts], ["w3x", "w7x", "w11x"]), strict=True))
    assert {h.text: h.fts_score for h in found.hits} == pytest.approx(
        {text: score for text, score in expected.items() if score > 0}, rel=1e-3
    )


def test_how_rare_a_word_is_depends_on_the_scope_of_the_search(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    first = index_document(db, database, ["alpha beta", "alpha gamma"], server=server)
    index_document(db, database, ["beta one", "beta two", "beta three"], server=server)
    scope = models.Scope("documents", document_ids=(first,))
    (beta, alpha) = search.hybrid_search(db, ADA, make_query("alpha beta", scope=scope)).hits
    assert (beta.text, alpha.text) == ("alpha beta", "alpha gamma")
    scores = [beta.fts_score or 0, alpha.fts_score or 0]
    assert scores[0] - scores[1] == pytest.approx(math.log(2) / math.log(1.2) * scores[1], rel=1e-2)


def test_the_words_that_name_a_document_find_it_and_do_not_outweigh_the_rest_inside(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """RET-2"""
    bodies = ["Acme calls Acme the Acme of Acme", "Revenue grew", "Staff left", "Rents rose"]
    for year in (2018, 2019):
        index_document(db, database, [f"Acme {year} Report\n{body}" for body in bodies], server=server)
    assert find_texts(db, "What was Acme's revenue in 2019?")[0] == "Acme 2019 Report\nRevenue grew"


def test_the_vector_ranking_is_exact(db: Database, database: str, server: models.EmbeddingServer) -> None:
    """RET-3"""
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(300, 4))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    index_document(db, database, [f"text {n}" for n in range(300)], server=server, vectors=vectors.tolist())
    query = vectors[42] * 0.7 + vectors[7] * 0.3
    query /= np.linalg.norm(query)
    settings = Settings(blend_weight=0, hybrid_top_k=20)
    found = search.hybrid_search(
        db, ADA, make_query("", [QueryVector(server.id, tuple(query), 1.0)], settings=settings)
    )
    half = vectors.astype(np.float16).astype(np.float32) @ query.astype(np.float16).astype(np.float32)
    assert [hit.chunk_index for hit in found.hits] == np.argsort(-half)[:20].tolist()


def test_a_small_library_is_searched_as_well_beside_large_ones_as_alone(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """RET-3"""
    index_document(db, database, [f"other {n}" for n in range(400)], server=server, user=BOB)
    index_document(db, database, [f"mine {n}" for n in range(12)], server=server)
    query = make_query("", [QueryVector(server.id, (1.0, 0.0, 0.0, 0.0), 1.0)])
    assert len(search.hybrid_search(db, ADA, query).hits) == 12


def test_the_score_is_the_weighted_sum_of_reciprocal_ranks(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """RET-4"""
    index_document(db, database, HISTORY, server=server)
    settings = Settings(fts_weight=2, vector_weight=3, blend_weight=5, rrf_k=10)
    vector = QueryVector(server.id, (0.0, 0.8, 0.6, 0.0), 0.5)
    hits = search.hybrid_search(db, ADA, make_query("Luther in Wittenberg", [vector], settings=settings)).hits
    blend = {h.text: rank for rank, h in enumerate(sorted(hits, key=lambda h: -(h.blend_score or 0)), 1)}
    expected = {
        h.text: (2 / (10 + h.fts_rank) if h.fts_rank else 0)
        + (3 * 0.5 / (10 + h.vector_rank) if h.vector_rank else 0)
        + 5 / (10 + blend[h.text])
        for h in hits
    }
    assert {h.text: h.score for h in hits} == pytest.approx(expected, rel=1e-5)
    assert [h.score for h in hits] == sorted(expected.values(), reverse=True) == pytest.approx([h.score for h in hits])


def test_coverage_is_the_share_of_the_question_that_one_passage_contains(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """RET-8"""
    index_document(db, database, ["alpha beta gamma", "alpha"], server=server)
    both, one = search.hybrid_search(db, ADA, make_query("alpha beta")).hits
    idf_alpha, idf_beta = math.log(1 + 98.5 / 2.5), math.log(1 + 99.5 / 1.5)
    assert (both.coverage, one.coverage) == pytest.approx((1.0, idf_alpha / (idf_alpha + idf_beta)))


def test_documents_of_different_embedding_models_are_found_together(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """RET-6"""
    other = library.add_server(db, "other", dimensions=3)
    index_document(db, database, ["first"], server=server, vectors=[[1, 0, 0, 0]])
    index_document(db, database, ["second"], server=other, vectors=[[0, 1, 0]])
    vectors = [QueryVector(server.id, (1.0, 0.0, 0.0, 0.0), 1.0), QueryVector(other.id, (0.0, 1.0, 0.0), 1.0)]
    hits = search.hybrid_search(db, ADA, make_query("", vectors)).hits
    assert {(h.text, h.vector_rank, h.similarity) for h in hits} == {("first", 1, 1.0), ("second", 1, 1.0)}


@pytest.mark.parametrize("kind", ["documents", "notebook", "note"])
def test_a_search_stays_within_its_scope(
    db: Database, database: str, server: models.EmbeddingServer, kind: str
) -> None:
    """RET-1"""
    notebook, note = library.add_notebook(db), library.add_note(db)
    document = index_document(db, database, ["alpha inside"], server=server, notebook_id=notebook, note_id=note)
    index_document(db, database, ["alpha outside"], server=server)
    scope = {
        "documents": models.Scope("documents", document_ids=(document,)),
        "notebook": models.Scope("notebook", notebook_id=notebook),
        "note": models.Scope("note", note_id=note),
    }[kind]
    assert find_texts(db, "alpha", scope=scope) == ["alpha inside"]


def test_the_attachments_of_a_trashed_note_are_not_found(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """LIB-2"""
    note = library.add_note(db)
    index_document(db, database, ["alpha attached"], server=server, note_id=note)
    with db.as_user(ADA) as connection:
        connection.execute("update rag.notes set trashed_at = now() where id = %s", (note,))
    assert find_texts(db, "alpha") == []


def test_nobody_finds_the_passages_of_another_user(db: Database, database: str, server: models.EmbeddingServer) -> None:
    """SEC-2"""
    document = index_document(db, database, ["alpha secret"], server=server, user=BOB)
    vector = QueryVector(server.id, (1.0, 0.0, 0.0, 0.0), 1.0)
    scope = models.Scope("documents", document_ids=(document,))
    assert search.hybrid_search(db, ADA, make_query("alpha secret", [vector])).hits == ()
    assert search.hybrid_search(db, ADA, make_query("alpha secret", [vector], scope=scope)).hits == ()
    assert len(search.hybrid_search(db, BOB, make_query("alpha secret", [vector])).hits) == 1


def test_the_single_arms_are_the_hybrid_search_with_one_arm(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """RET-1"""
    index_document(db, database, HISTORY, server=server)
    with db.as_user(ADA) as connection:
        words = connection.execute(
            "select text, fts_rank, vector_rank from rag.search_chunks_fts('treaty', 'en')"
        ).fetchall()
        near = connection.execute(
            "select text, similarity, fts_rank from rag.match_chunks('[0,0.6,0.8,0]', %s, match_threshold => 0.7)",
            (server.id,),
        ).fetchall()
    assert words == [{"text": HISTORY[2], "fts_rank": 1, "vector_rank": None}]
    assert [(row["text"], row["fts_rank"]) for row in near] == [(HISTORY[2], None)]


@pytest.mark.parametrize(("limit", "count"), [("", 5), (", match_count => 6", 6)], ids=["setting", "explicit"])
def test_the_single_arms_take_their_defaults_from_the_settings(
    db: Database, database: str, server: models.EmbeddingServer, limit: str, count: int
) -> None:
    """RET-1, SET-3"""
    index_document(db, database, [f"treaty number {number}" for number in range(8)], server=server)
    with db.as_worker() as connection:
        settings.write(connection, {"match_count": 5, "match_threshold": 0.0}, ADA)
    with db.as_user(ADA) as connection:
        words = connection.execute(f"select text from rag.search_chunks_fts('treaty', 'en'{limit})").fetchall()
        near = connection.execute(
            f"select text from rag.match_chunks('[0,0.6,0.8,0]', %s{limit})", (server.id,)
        ).fetchall()
    assert (len(words), len(near)) == (count, count)


def test_a_search_is_one_round_trip(
    db: Database, database: str, server: models.EmbeddingServer, tmp_path: Path
) -> None:
    """One search sends one Sync message: role, claims and search go in one round trip."""
    index_document(db, database, HISTORY, server=server)
    trace = tmp_path / "trace"
    with trace.open("w+b") as file:
        with db.autocommit() as connection:
            connection.pgconn.trace(file.fileno())
        search.hybrid_search(db, ADA, make_query("Luther"))
        with db.autocommit() as connection:
            connection.pgconn.untrace()
    assert len(re.findall(r"^.*\tF\t\d+\tSync", trace.read_text(), re.M)) == 1


def test_a_search_resets_the_role_of_its_connection(
    db: Database, database: str, server: models.EmbeddingServer
) -> None:
    """SEC-4"""
    search.hybrid_search(db, ADA, make_query("Luther"))
    with db.autocommit() as connection:
        row = connection.execute(
            "select current_user as who, coalesce(current_setting('request.jwt.claims', true), '') as claims"
        ).fetchone()
    assert row == {"who": "postgres", "claims": ""}


def test_anonymous_visitors_may_not_search(database: str) -> None:
    """SEC-2"""
    with psycopg.connect(database) as connection:
        connection.execute("set local role anon")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("select * from rag.search_chunks_fts('x')")
