"""Filters by author, journal, DOI or date decide which documents are searched."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from functions.adapters.postgres import search
from functions.adapters.postgres.connection import Database
from functions.core import models
from tests.support import library
from tests.support.library import ADA, BOB, add_note, index_document, make_query

Log = dict[str, str | None]


@pytest.fixture
def add(db: Database, database: str, server: models.EmbeddingServer) -> Any:
    """Adds a document whose text is its name, with the given extracted metadata."""

    def add(name: str, user: models.User = ADA, **extracted: str | None) -> str:
        document_id = index_document(db, database, [f"alpha {name}"], server=server, user=user)
        log = {f"{key}_extracted": value for key, value in extracted.items()}
        with psycopg.connect(database) as connection:
            connection.execute(
                "update rag.documents set ingestion_log = ingestion_log || %s where id = %s",
                (json.dumps(log), document_id),
            )
        return document_id

    return add


def found(db: Database, user: models.User = ADA, **filters: Any) -> list[str]:
    query = make_query("alpha", scope=models.Scope("library", filters=filters))
    return sorted(hit.text.removeprefix("alpha ") for hit in search.hybrid_search(db, user, query).hits)


@pytest.mark.parametrize(
    ("author", "names"),
    [
        ("müller", ["one"]),
        ("MULLER", ["one"]),
        ("Jörg Mu\u0308ller", ["one"]),
        ("müller, j", []),
        ("dupre elise", ["two"]),
        ("Élise O'Brien", ["two"]),
        ("brien", ["two"]),
        ("Elise Müller", []),
        ("mull", []),
        ("Œdipe", ["three"]),
        ("oedipe", ["three"]),
        ("ИВАНОВ", ["three"]),
        ("nobody", []),
        ("...", []),
        ("", []),
        (".*", []),
        ("müller' or '1'='1", []),
        ("\\y(", []),
        ("%", []),
        ("a & b | !c <-> :*", []),
        ("x" * 100_000, []),
        ("brien " * 5_000, ["two"]),
    ],
)
def test_an_author_is_found_by_words_whatever_their_case_and_accents(
    db: Database, add: Any, author: str, names: list[str]
) -> None:
    """RET-10"""
    add("one", authors="Müller, Jörg; Anna Schmidt")
    add("two", authors="Élise Dupré and Mary O'Brien")
    add("three", authors="Œdipe Иванов")
    add("four", authors=None)
    assert found(db, author=author) == names


def test_a_journal_is_found_by_its_words(db: Database, add: Any) -> None:
    """RET-10"""
    add("one", journal="Revue d'économie du développement", authors="Nature")
    add("two", journal="Nature Communications", authors="Revue")
    assert [found(db, journal=words) for words in ("ECONOMIE revue", "nature", "nat")] == [["one"], ["two"], []]


@pytest.mark.parametrize(
    "doi",
    [
        "10.1234/AbC.(5)_x",
        "10.1234/abc.(5)_X",
        "https://doi.org/10.1234/AbC.(5)_x",
        "HTTP://DX.DOI.ORG/10.1234/abc.(5)_x",
        "doi.org/10.1234/abc.(5)_x",
        "doi:10.1234/abc.(5)_x",
        " DOI: 10.1234/abc.(5)_x ",
    ],
)
def test_a_doi_matches_exactly_except_for_its_case_and_prefix(db: Database, add: Any, doi: str) -> None:
    """RET-10"""
    add("one", doi="10.1234/aBc.(5)_x")
    add("two", doi="10.1234/abc.(5)_xy")
    add("three")
    assert found(db, doi=doi) == ["one"]


@pytest.mark.parametrize(
    ("first", "last", "names"),
    [
        ("2020", "2020", ["day", "month", "year"]),
        ("2020-05", "2020-05", ["day", "month", "year"]),
        ("2020-05-17", "2020-05-17", ["day", "month", "year"]),
        ("2020-05-18", None, ["later", "month", "year"]),
        (None, "2020-05-16", ["earlier", "month", "year"]),
        ("2020-06", None, ["later", "year"]),
        (None, "2020-04-30", ["earlier", "year"]),
        ("2021", None, ["later"]),
        (None, "2019", ["earlier"]),
        ("2019-12-31", "2021-01-01", ["day", "earlier", "later", "month", "year"]),
        ("2022", "2023", []),
    ],
)
def test_a_year_or_a_month_includes_all_of_its_days(
    db: Database, add: Any, first: str | None, last: str | None, names: list[str]
) -> None:
    """RET-10"""
    dates = {"year": "2020", "month": "2020-05", "day": "2020-05-17", "earlier": "2019-12-31", "later": "2021-01-01"}
    for name, date in (dates | {"unknown": None}).items():
        add(name, published_at=date)
    assert found(db, published_from=first, published_to=last) == names


def test_filters_are_joined_by_and(db: Database, add: Any) -> None:
    """RET-10"""
    add("one", authors="Ada", journal="Nature", published_at="2020")
    add("two", authors="Ada", journal="Science", published_at="2020")
    add("three", authors="Ada", journal="Nature", published_at="2021")
    assert found(db, author="ada", journal="nature", published_to="2020", file_type="pdf", lang="en") == ["one"]
    assert found(db, author="ada", file_type="docx") == found(db, author="ada", lang="fr") == []


def test_filters_apply_within_the_scope_and_the_users_own_rows(db: Database, add: Any) -> None:
    """RET-10, SEC-2"""
    mine = add("mine", authors="Ada")
    add("another", authors="Ada")
    foreign = add("foreign", user=BOB, authors="Ada")
    scope = models.Scope("documents", document_ids=(mine, foreign), filters={"author": "ada"})
    assert [h.text for h in search.hybrid_search(db, ADA, make_query("alpha", scope=scope)).hits] == ["alpha mine"]
    assert found(db, author="ada") == ["another", "mine"]


def test_notes_match_filters_by_source_and_language_only(
    db: Database, add: Any, server: models.EmbeddingServer
) -> None:
    """RET-10, RET-7"""
    add("document", authors="Ada")
    add_note(db, title="alpha note")
    with db.as_user(ADA) as connection:
        connection.execute("update rag.notes set content = 'alpha note'")
    library.finish_next_job(db, library.make_batch(["alpha note"], server))
    assert found(db) == found(db, lang="en") == found(db, lang="en", author=None) == ["document", "note"]
    assert (found(db, source="document"), found(db, source="note", lang="en")) == (["document"], ["note"])
    assert found(db, author="ada") == found(db, lang="en", file_type="pdf") == ["document"]
    assert found(db, lang="fr") == found(db, doi="10.1/x") == found(db, published_from="1900") == []


@pytest.mark.parametrize("filters", ["{}", None])
def test_without_filters_every_source_is_searched(db: Database, add: Any, filters: str | None) -> None:
    add("one")
    with db.as_user(ADA) as connection:
        row = connection.execute("select * from rag.search_scope(null, null, null, %s)", (filters,)).fetchone()
    assert row is not None
    assert (row["source_count"], row["chunk_count"]) == (1, 1)
