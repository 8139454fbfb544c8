"""RPC-1: the search that Supabase's own client calls, through PostgREST's way of calling functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import postgrest
import pytest

import supabase
from functions.adapters.postgres.connection import Database
from functions.core import models
from tests.support import library
from tests.support.fakes.postgrest_server import FakePostgrest
from tests.support.library import ADA, BOB, index_document


@pytest.fixture
def rest(database: str) -> Iterator[FakePostgrest]:
    with FakePostgrest(database, schemas=("public", "ibid")) as running:
        yield running


def search(rest: FakePostgrest, user: models.User | None = ADA, **arguments: Any) -> Any:
    """The rows that `supabase.rpc` returns."""
    with httpx.Client() as http:
        options = supabase.ClientOptions(httpx_client=http)
        client = supabase.create_client(rest.base_url, rest.make_token(user), options)
        return client.schema("ibid").rpc("search", arguments).execute().data


def refuse(rest: FakePostgrest, user: models.User | None = ADA, **arguments: Any) -> tuple[str | None, str | None]:
    """The code and message of the error that `supabase.rpc` raises."""
    with pytest.raises(postgrest.APIError) as refused:
        search(rest, user, **arguments)
    return refused.value.code, refused.value.message


def test_words_and_a_plain_list_of_numbers_find_typed_rows(
    db: Database, database: str, server: models.EmbeddingServer, rest: FakePostgrest
) -> None:
    document_id = index_document(db, database, ["alpha one", "beta two"], server=server)
    found = search(rest, query_text="beta", query_embedding=[0, 3, 0, 0], match_count=1)
    assert [row | {"score": 0} for row in found] == [
        {
            "source": "document",
            "source_id": document_id,
            "chunk_index": 1,
            "file_name": f"{document_id}.pdf",
            "title": None,
            "section_title": None,
            "page_start": 2,
            "page_end": 2,
            "start_offset": 0,
            "end_offset": 8,
            "lang": "en",
            "content": "beta two",
            "score": 0,
            "similarity": 1.0,
            "translation": None,
        }
    ]


def test_either_words_or_an_embedding_are_enough(
    db: Database, database: str, server: models.EmbeddingServer, rest: FakePostgrest
) -> None:
    index_document(db, database, ["alpha", "beta"], server=server)
    by_words, by_meaning = search(rest, query_text="beta"), search(rest, query_embedding=[0, 1, 0, 0], match_count=1)
    assert [[(row["content"], row["similarity"]) for row in rows] for rows in (by_words, by_meaning)] == [
        [("beta", None)],
        [("beta", 1.0)],
    ]


def test_words_are_searched_in_both_languages_unless_one_is_named(
    db: Database, database: str, server: models.EmbeddingServer, rest: FakePostgrest
) -> None:
    index_document(db, database, ["les chevaux courent"], server=server, lang="fr")
    assert [row["lang"] for row in search(rest, query_text="cheval")] == ["fr"]


def test_a_passage_is_found_by_its_translation_which_stands_beside_it(
    db: Database, database: str, server: models.EmbeddingServer, rest: FakePostgrest
) -> None:
    """RPC-1, LANG-2"""
    index_document(db, database, ["the boiler burns peat"], server=server)
    library.translate_everything(db, "la chaudière brûle de la tourbe")
    langs: list[dict[str, Any]] = [{}, {"query_lang": "fr"}]
    found = [search(rest, query_text="chaudière", **lang) for lang in langs]
    expected = [("the boiler burns peat", "en", "la chaudière brûle de la tourbe")]
    assert [[(row["content"], row["lang"], row["translation"]) for row in rows] for rows in found] == [expected] * 2
    assert [row["translation"] for row in search(rest, query_text="boiler", query_lang="en")] == [None]
    assert search(rest, BOB, query_text="chaudière") == []


def test_a_user_finds_nothing_of_others_and_nobody_finds_nothing(
    db: Database, database: str, server: models.EmbeddingServer, rest: FakePostgrest
) -> None:
    """SEC-2"""
    index_document(db, database, ["alpha"], server=server, user=BOB)
    assert (search(rest, query_text="alpha"), len(search(rest, BOB, query_text="alpha"))) == ([], 1)
    assert refuse(rest, None, query_text="alpha") == ("42501", "permission denied for schema ibid")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "query_text or query_embedding is needed"),
        ({"query_text": " \n"}, "query_text or query_embedding is needed"),
        ({"query_text": "a", "match_count": 101}, "match_count must be 1 to 100, not 101"),
        ({"query_text": "a", "query_lang": "de"}, "query_lang must be en or fr, not de"),
        ({"query_embedding": [1, 2]}, 'query_embedding has 2 dimensions, but those of the server "test" have 4'),
        ({"query_embedding": [0, 0, 0, 0]}, "query_embedding has no direction: all its numbers are 0"),
        (
            {"query_embedding": [1, 0, 0, 0], "server_id": ADA.id},
            f"There is no active embedding server {ADA.id}",
        ),
    ],
)
@pytest.mark.usefixtures("server")
def test_a_wrong_argument_is_named(rest: FakePostgrest, arguments: dict[str, Any], message: str) -> None:
    assert refuse(rest, **arguments) == ("22023", message)


def test_an_argument_that_it_does_not_have_is_refused(rest: FakePostgrest) -> None:
    code, _ = refuse(rest, question="a")
    assert code == "PGRST202"


def test_a_named_server_and_document_narrow_the_search(
    db: Database, database: str, server: models.EmbeddingServer, rest: FakePostgrest
) -> None:
    other = library.add_server(db, "other", 2)
    wanted, *_ = [index_document(db, database, ["alpha"], server=other) for _ in range(2)]
    index_document(db, database, ["alpha"], server=server)
    found = search(rest, query_embedding=[1, 0], server_id=other.id, document_ids=[wanted])
    assert [(row["source_id"], row["similarity"]) for row in found] == [(wanted, 1.0)]
