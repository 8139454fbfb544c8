"""FIX-7: models whose cards ask for words before questions and passages get them without any setting."""

from __future__ import annotations

import pytest

from functions.adapters.models.prefixes import Prefixes, find_prefixes
from functions.runtime.config import Config
from functions.runtime.policy import LOCAL_SERVER, configured_server

E5 = Prefixes("query: ", "passage: ")
NONE = Prefixes()
SENTENCE = Prefixes("Represent this sentence for searching relevant passages: ")
TASK = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"


@pytest.mark.parametrize(
    ("model", "prefixes"),
    [
        ("intfloat/multilingual-e5-small", E5),
        ("jeffh/intfloat-multilingual-e5-large:f16", E5),
        ("e5-base-v2", E5),
        ("multilingual_e5_base", E5),
        ("intfloat/multilingual-e5-large-instruct", Prefixes(f"{TASK} ")),
        ("intfloat/e5-mistral-7b-instruct", Prefixes(f"{TASK} ")),
        ("Alibaba-NLP/gte-Qwen2-1.5B-instruct", Prefixes(f"{TASK} ")),
        ("qwen3-embedding:0.6b", Prefixes(TASK)),
        ("BAAI/bge-large-en-v1.5", SENTENCE),
        ("bge-large:335m", SENTENCE),
        ("BAAI/bge-small-zh-v1.5", Prefixes("为这个句子生成表示以用于检索相关文章：")),
        ("BAAI/bge-large-zh-noinstruct", NONE),
        ("bge-m3", NONE),
        ("nomic-embed-text:latest", Prefixes("search_query: ", "search_document: ")),
        ("google/embeddinggemma-300m", Prefixes("task: search result | query: ", "title: none | text: ")),
        ("Snowflake/snowflake-arctic-embed-m-v1.5", SENTENCE),
        ("snowflake-arctic-embed:33m", SENTENCE),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", Prefixes("query: ")),
        ("snowflake-arctic-embed2", Prefixes("query: ")),
        ("mixedbread-ai/mxbai-embed-large-v1", SENTENCE),
        ("thenlper/gte-large", NONE),
        ("jina-embeddings-v2-base-en", NONE),
        ("text-embedding-3-small", NONE),
        ("voyage-3.5", NONE),
        ("embed-multilingual-v3.0", NONE),
        ("sentence-transformers/all-MiniLM-L6-v2", NONE),
    ],
)
def test_a_known_model_has_the_prefixes_of_its_card(model: str, prefixes: Prefixes) -> None:
    assert find_prefixes(model) == prefixes


def test_the_local_model_has_the_prefixes_of_its_card() -> None:
    assert find_prefixes(LOCAL_SERVER.model) == (LOCAL_SERVER.query_prefix, LOCAL_SERVER.passage_prefix)


@pytest.mark.parametrize(
    ("variables", "prefixes"),
    [
        ({}, ("query: ", "passage: ")),
        ({"EMBEDDING_QUERY_PREFIX": "auto", "EMBEDDING_PASSAGE_PREFIX": "auto"}, ("query: ", "passage: ")),
        ({"EMBEDDING_QUERY_PREFIX": "question: "}, ("question: ", "passage: ")),
        ({"EMBEDDING_QUERY_PREFIX": "", "EMBEDDING_PASSAGE_PREFIX": ""}, ("", "")),
    ],
    ids=["unset", "auto", "one", "empty"],
)
def test_the_environment_may_set_a_prefix_and_an_empty_one_switches_it_off(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], prefixes: tuple[str, str]
) -> None:
    for name, value in ({"EMBEDDING_MODEL": "e5-base-v2"} | variables).items():
        monkeypatch.setenv(name, value)
    server = configured_server(Config())
    assert (server.query_prefix, server.passage_prefix) == prefixes
