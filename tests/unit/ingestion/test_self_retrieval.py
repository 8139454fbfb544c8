from __future__ import annotations

import functools
from collections.abc import Sequence
from functools import partial

from functions.adapters.laptop.embedder import LocalEmbedder
from functions.adapters.postgres import search
from functions.adapters.postgres.connection import Database
from functions.core import models
from functions.core.ingestion import self_retrieval
from functions.core.ingestion.self_retrieval import Sample, Score, choose_sentences, measure
from functions.core.retrieval import retriever
from functions.core.settings import Settings
from tests.support import library
from tests.support.fakes.search_hits import make_hit

SHORT = "This one has five words."
LONG = "The committee approved the annual budget of the institute in March."
PAGES = [
    "The lighthouse on the northern cape was built by Dutch engineers in 1871. It burns no oil today.",
    "Fermentation of the cabbage takes about three weeks in a cool cellar. Salt keeps it crisp.",
    "Each member of the cooperative holds exactly one vote, whatever their share of the capital.",
]


def make_chunk(text: str, *, page: int = 1, start: int = 0) -> Sample:
    return Sample(page, start, start + len(text), text)


def texts_of(samples: Sequence[Sample]) -> list[str]:
    return [sample.text for sample in samples]


def test_the_longest_sentence_of_each_chunk_is_chosen_with_its_offsets() -> None:
    """LIB-10"""
    chosen = choose_sentences([make_chunk(f"{SHORT} {LONG}", page=3, start=100)], count=1)
    assert chosen == (Sample(3, 100 + len(SHORT) + 1, 101 + len(SHORT) + len(LONG), LONG),)


def test_short_sentences_numbers_and_rows_of_figures_are_skipped() -> None:
    """LIB-10"""
    assert (
        choose_sentences([make_chunk("Only four words here."), make_chunk("12 34 56 78 90 11 12."), make_chunk("")])
        == ()
    )


def test_characters_count_as_words_in_scripts_without_spaces() -> None:
    assert texts_of(choose_sentences([make_chunk("好的。公司在二零一九年确认了收入。")])) == [
        "公司在二零一九年确认了收入。"
    ]


def test_the_sample_is_spread_over_all_chunks_in_order() -> None:
    """LIB-10"""
    chunks = [make_chunk(f"Sentence about the topic number {number}.", page=number) for number in range(100)]
    assert [sample.page for sample in choose_sentences(chunks)] == list(range(0, 100, 10))


def test_a_document_of_few_chunks_also_gives_its_next_longest_sentences() -> None:
    """LIB-10"""
    chunks = [make_chunk(f"{SHORT} {LONG}"), make_chunk("Another five words in here.", page=2)]
    assert texts_of(choose_sentences(chunks, count=2)) == [LONG, "Another five words in here."]
    assert texts_of(choose_sentences(chunks)) == [SHORT, LONG, "Another five words in here."]


def test_a_sentence_that_two_chunks_share_is_chosen_once() -> None:
    assert texts_of(choose_sentences([make_chunk(LONG), make_chunk(LONG.replace(" ", "\n", 1), start=5)])) == [LONG]


def score_of(*hits: models.SearchHit) -> Score | None:
    """The score of one sentence on page 2 at offset 10, if every search returns these hits."""
    return measure("doc", [make_chunk(LONG, page=2, start=10)], lambda _: hits)


def test_a_sentence_is_found_by_a_hit_that_overlaps_it_in_the_same_document() -> None:
    """LIB-10"""
    end = 10 + len(LONG)
    assert score_of(make_hit("…" * 11, page=2)) == Score(1, 1, 1.0)
    assert score_of(make_hit("…", page=2, offset=end - 1)) == Score(1, 1, 1.0)
    assert score_of(make_hit("…" * 10, page=2), make_hit("…", page=2, offset=end)) == Score(1, 0, 0.0)
    assert score_of(make_hit("…" * 50, page=1), make_hit("…" * 50, page=2, document="twin")) == Score(1, 0, 0.0)


def test_only_the_first_ten_hits_count() -> None:
    """LIB-10"""
    others = [make_hit("other", document="other")] * 9
    hit = make_hit(LONG, page=2, offset=10)
    assert score_of(*others, hit) == Score(1, 1, 1.0)
    assert score_of(*others, others[0], hit) == Score(1, 0, 0.0)


def test_the_score_is_the_share_of_the_sentences_found() -> None:
    """LIB-10"""
    sentences = choose_sentences([make_chunk(page, page=number) for number, page in enumerate(PAGES, 1)])
    found = measure("doc", sentences, lambda sentence: [make_hit(PAGES[0], page=1)])
    assert found == Score(sentences=4, found=2, score=0.5)


def test_a_document_without_a_sentence_has_no_score() -> None:
    """LIB-10"""
    assert measure("doc", choose_sentences([make_chunk("Too short.")]), lambda _: []) is None


@functools.cache
def embedder() -> LocalEmbedder:
    return LocalEmbedder()


def search_for(database: Database, server: models.EmbeddingServer, text: str) -> Sequence[models.SearchHit]:
    found = retriever.retrieve(
        text,
        "en",
        models.Scope("library"),
        servers=[server],
        embedder_of=lambda _: embedder(),
        search=partial(search.hybrid_search, database, library.ADA),
        settings=Settings(),
    )
    return found.ranking.hits[: self_retrieval.TOP]


def test_the_real_search_finds_sentences_of_an_indexed_document_only(database: str) -> None:
    """LIB-10"""
    opened = Database(database)
    server = library.add_server(opened, dimensions=384)
    others = [
        f"The lighthouse keeper's note {number} on sauerkraut, votes and {number} kinds of salt."
        for number in range(30)
    ]
    _, document_id = (
        library.index_document(opened, database, texts, server=server, vectors=embedder().embed(texts).tolist())
        for texts in (others, PAGES)
    )
    sentences = choose_sentences([make_chunk(page, page=number) for number, page in enumerate(PAGES, 1)])
    find = partial(search_for, opened, server)
    assert measure(document_id, sentences, find) == Score(4, 4, 1.0)
    assert measure(library.add_document(opened), sentences, find) == Score(4, 0, 0.0)
    opened.close()
