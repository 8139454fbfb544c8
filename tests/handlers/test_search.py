"""Metadata filters through the gateway, on documents with an author and a date of publication."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from functions.runtime.services import Services
from tests.handlers.conftest import Caller
from tests.support import documents

QUESTION = "What does the boiler burn in winter?"
FACT = "The boiler burns wood chips in winter."


@pytest.fixture(scope="module")
def reader(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Caller:
    """A user with an article and a text file without metadata."""
    reader = Caller(services)
    article = ["On boilers", FACT, "Published: 17 May 2020", "https://doi.org/10.1234/Boiler.7"]
    path = documents.make_pdf(
        tmp_path_factory.mktemp("search") / "a.pdf", article, title="On boilers", author="Jörg Müller"
    )
    log = reader.add(path.read_bytes(), "article.pdf")["ingestion_log"]
    assert (log["authors_extracted"], log["doi_extracted"], log["published_at_extracted"]) == (
        "Jörg Müller",
        "10.1234/Boiler.7",
        "2020-05-17",
    )
    reader.add(FACT.encode(), "plain.txt")
    return reader


def search(reader: Caller, **params: Any) -> list[str]:
    answer = reader.call("search", "GET", "/api/rag/search", query=urlencode({"q": QUESTION} | params))
    assert answer.status == 200, answer.content
    return sorted(hit["file_name"] for hit in answer.json["hits"])


@pytest.mark.parametrize(
    ("params", "names"),
    [
        ({}, ["article.pdf", "plain.txt"]),
        ({"author": "MULLER"}, ["article.pdf"]),
        ({"author": "Schmidt"}, []),
        ({"doi": "https://doi.org/10.1234/boiler.7"}, ["article.pdf"]),
        ({"doi": "10.1234/boiler"}, []),
        ({"published_from": "2020", "published_to": "2020-05-17"}, ["article.pdf"]),
        ({"publishedFrom": "2020-05-18"}, []),
        ({"fileType": "txt"}, ["plain.txt"]),
        ({"file_type": "txt", "author": "muller"}, []),
        ({"lang": "en"}, ["article.pdf", "plain.txt"]),
        ({"lang": "fr"}, []),
    ],
)
def test_a_search_is_filtered_by_the_metadata_of_documents(
    reader: Caller, params: dict[str, str], names: list[str]
) -> None:
    """RET-10"""
    assert search(reader, **params) == names


def test_a_search_without_a_limit_returns_as_many_passages_as_the_setting_says(admin: Caller) -> None:
    """SET-3"""
    admin.add("".join(f"# Boiler {n}\n\nThis boiler burns wood chips.\n\n" for n in range(24)).encode(), "boilers.md")

    def count_hits(query: str) -> int:
        return len(admin.call("search", "GET", "/api/rag/search", query=query).json["hits"])

    assert count_hits("q=boiler") == 20
    assert admin.call("settings", "PATCH", "/api/rag/settings", {"match_count": 6}).status == 200
    assert (count_hits("q=boiler"), count_hits("q=boiler&limit=3")) == (6, 3)


def test_the_active_filters_are_part_of_the_reported_scope(reader: Caller) -> None:
    """RET-10, CHAT-3"""
    answer = reader.call("search", "GET", "/api/rag/search", query="q=boiler&publishedFrom=2020&author=+M%C3%BCller+")
    assert answer.json["scope"] == {"kind": "library", "filters": {"author": "Müller", "published_from": "2020"}}


@pytest.mark.parametrize("key", ["published_to", "publishedTo"])
def test_a_question_searches_only_what_matches_its_filters(reader: Caller, key: str) -> None:
    """RET-10, CHAT-1"""
    found, nothing = (
        reader.call("chat", "POST", "/api/rag/chat", {"query": QUESTION, "filters": {"author": "müller", key: year}})
        for year in ("2020", "2019")
    )
    assert {source["file_name"] for source in found.json["sources"]} == {"article.pdf"}
    assert (nothing.json["mode"], nothing.json["sources"]) == ("guard", [])
    assert found.json["scope"] == {"kind": "library", "filters": {"author": "müller", "published_to": "2020"}}
    saved = reader.row("select scope from rag.messages where id = %s", found.json["message_id"])
    assert saved["scope"]["filters"] == found.json["scope"]["filters"]


REFUSED = [
    {"writer": "x"},
    {"author": ""},
    {"author": "..."},
    {"author": "x" * 301},
    {"journal": "\x00"},
    {"doi": "x" * 301},
    {"published_from": "last year"},
    {"published_from": "2020-13"},
    {"publishedFrom": "2020-02-30"},
    {"published_from": "0000"},
    {"published_from": "20200517"},
    {"published_from": "2021", "published_to": "2020-12-31"},
    {"fileType": "exe"},
    {"lang": "de"},
]


@pytest.mark.parametrize("params", REFUSED)
def test_an_invalid_filter_is_refused_under_the_name_in_the_request(reader: Caller, params: dict[str, str]) -> None:
    """RET-10"""
    found = reader.call("search", "GET", "/api/rag/search", query=urlencode({"q": QUESTION} | params))
    asked = reader.call("chat", "POST", "/api/rag/chat", {"query": QUESTION, "filters": params})
    assert found.problem == asked.problem == (400, "invalid_input")
    wrong = list(params)[-1]
    assert [fault["key"] for fault in found.json["faults"]] == [wrong]
    assert [fault["key"] for fault in asked.json["faults"]] == [f"filters.{wrong}"]


@pytest.mark.parametrize("filters", [[], "author", 7, {"author": ["x"]}, {"author": {"$ne": ""}}, {"lang": 1}])
def test_malformed_filters_are_refused(reader: Caller, filters: Any) -> None:
    answer = reader.call("chat", "POST", "/api/rag/chat", {"query": QUESTION, "filters": filters})
    assert answer.problem == (400, "invalid_input")


def test_an_empty_filter_is_ignored(reader: Caller) -> None:
    answer = reader.call("chat", "POST", "/api/rag/chat", {"query": QUESTION, "filters": {"author": None}})
    assert (answer.status, answer.json["scope"]) == (200, {"kind": "library"})


HOSTILE = [
    "x" * 300,
    "a " * 149 + "a",
    "\\m.*\\M(?!)[",
    "a & b | !c <-> :*",
    "'; drop table rag.documents; --",
    "%' or 1=1 or '%",
    "{author}%s%(x)s",
    "a\x00b",
    "lone \ud83d surrogate",
    "e\u0301\u0301\u0301\u202e",
    "١٢٣ 東京 Иванов",
    '{"$gt": ""}',
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("key", ["author", "journal", "doi"])
def test_hostile_filter_texts_find_nothing_and_break_nothing(reader: Caller, key: str, text: str) -> None:
    """RET-10"""
    body = json.dumps({"query": QUESTION, "filters": {key: text}})
    answer = reader.call("chat", "POST", "/api/rag/chat", body)
    assert (answer.status, answer.json["mode"]) == (200, "guard")
    encoded = urlencode({"q": QUESTION, key: text}, errors="replace")
    assert reader.call("search", "GET", "/api/rag/search", query=encoded).json["hits"] == []


def test_document_ids_may_be_repeated_and_spelled_in_either_case_style(reader: Caller) -> None:
    everything = reader.call("search", "GET", "/api/rag/search", query="q=boiler").json["hits"]
    one, other = {hit["document_id"] for hit in everything}
    for query in (f"document_id={one}&document_id={other}", f"documentId={one}&documentId={other}"):
        answer = reader.call("search", "GET", "/api/rag/search", query=f"q=boiler&{query}")
        assert {hit["document_id"] for hit in answer.json["hits"]} == {one, other}
    answer = reader.call("search", "GET", "/api/rag/search", query=f"q=boiler&documentId={one}")
    assert answer.json["scope"] == {"kind": "documents", "document_ids": [one]}
