"""Every text that is embedded has the prefix that its model wants before questions or before passages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from functions.adapters.models.openai_embedder import OpenAIEmbedder
from functions.adapters.postgres.connection import Database
from functions.core.retrieval.neutral_sentences import read_neutral_sentences
from functions.core.settings import Settings
from functions.local.evaluation import asking, question_sets
from functions.local.evaluation.library import load_library
from functions.runtime import policy
from functions.runtime.config import Config
from tests.support import database as database_servers
from tests.support.fakes.model_server import Call, FakeModelServer, Reply
from tests.support.fakes.token_server import FakeTokenServer
from tests.support.local_server import LocalServer, Person, run_local_server, wait_until

TEXT = "The ferry to the island leaves at seven. The bakery opens at nine. Dogs travel free of charge."
QUESTION = "When does the ferry leave?"
DIMENSIONS = 64


@pytest.fixture
def model() -> Iterator[FakeModelServer]:
    with FakeModelServer(dimensions=DIMENSIONS) as running:
        yield running


@pytest.fixture
def serve(
    cluster: database_servers.TestCluster, model: FakeModelServer, tmp_path: Path
) -> Iterator[Callable[..., LocalServer]]:
    """Starts a service that embeds with e5 at the model server; the last one is stopped at the end."""
    dsn, started = cluster.clone(), []

    def start(**settings: Any) -> LocalServer:
        config: dict[str, Any] = {
            "embedding_model": "e5-base-v2",
            "embedding_dimensions": DIMENSIONS,
            "openai_base_url": model.base_url,
        }
        started.append(run_local_server(dsn, tmp_path, **config | settings))
        return started[-1].__enter__()

    yield start
    for running in started:
        running.__exit__(None, None, None)
    cluster.drop(dsn)


@pytest.fixture
def eve(serve: Callable[..., LocalServer]) -> Iterator[Person]:
    with serve(chat_model="fake").person("Eve") as person:
        yield person


OWN_SENTENCES = [f"query: {sentence}." for sentence in TEXT.rstrip(".").split(". ")]
NEUTRAL_SENTENCES = {f"query: {text}" for each in read_neutral_sentences() for text in (each.en, each.fr)}


def sent(model: FakeModelServer) -> list[str]:
    """The embedded texts since the last call, but for the neutral sentences of calibration, which are questions."""
    texts = [text for body in model.embeddings for text in body["input"] if text not in NEUTRAL_SENTENCES]
    model.requests.clear()
    return texts


def test_passages_get_one_prefix_and_the_document_s_own_sentences_the_other(
    eve: Person, model: FakeModelServer
) -> None:
    """FIX-7, LIB-10"""
    document = eve.follow(eve.add_bytes("island.txt", TEXT.encode())["id"])
    wait_until(lambda: eve.get(f"/documents/{document['id']}")["health"]["self_retrieval"])
    passage, *sentences = sent(model)
    assert passage.startswith("passage: ")
    assert passage.endswith(TEXT)
    assert sentences == OWN_SENTENCES * 2  # for the scale of similarities and for self-retrieval


def test_notes_are_passages(eve: Person, model: FakeModelServer) -> None:
    """FIX-7, LIB-2"""
    note = eve.post("/notes", title="Ferry", content=TEXT)
    assert eve.get(f"/notes/{note['id']}", wait=25)["status"] == "indexed"
    assert [text[:9] for text in sent(model) if text not in OWN_SENTENCES] == ["passage: "]


def test_searches_chats_and_tools_send_questions(eve: Person, model: FakeModelServer) -> None:
    """FIX-7, CHAT-9"""
    eve.follow(eve.add_bytes("island.txt", TEXT.encode())["id"])
    wait_until(lambda: len(model.embeddings) == 5)  # three are those of calibration, the last is that of self-retrieval
    sent(model)
    eve.get("/search", q=QUESTION)
    model.script(Reply(), Reply(calls=[Call("document_search", {"query": "bakery"})]))
    eve.ask(QUESTION)
    assert sent(model) == [f"query: {QUESTION}", f"query: {QUESTION}", "query: bakery"]


def test_readiness_embeds_one_word_and_not_at_each_call(eve: Person, model: FakeModelServer) -> None:
    """OPS-4"""
    for _ in range(3):
        eve.server.http.get("/ready")
    assert sorted(request["path"] for request in model.requests) == ["/v1/embeddings", "/v1/models"]
    assert sent(model) == ["passage: ready"]


def test_an_empty_variable_switches_a_prefix_off(serve: Callable[..., LocalServer], model: FakeModelServer) -> None:
    """FIX-7"""
    with serve(embedding_query_prefix="").person("Eve") as person:
        person.get("/search", q=QUESTION)
    assert sent(model) == [QUESTION]


def test_late_chunking_reads_each_page_after_the_prefix(serve: Callable[..., LocalServer]) -> None:
    """ING-9, FIX-7"""
    with FakeTokenServer(dimensions=DIMENSIONS) as tokens:
        url = f"{tokens.base_url}/v1"
        server = serve(openai_base_url=url, embedding_token_url=tokens.base_url)
        with server.person("Eve") as person, server.person("Grace", admin=True) as admin:
            admin.http.patch("/api/rag/settings", json={"chunking_strategy": "late"})
            document = person.follow(person.add_bytes("island.txt", TEXT.encode())["id"])
        read = [r["body"]["inputs"] for r in tokens.requests if r["path"] == "/embed_all"]
    assert (document["status"], read) == ("indexed", [[f"passage: {TEXT}"]])


def test_an_evaluation_embeds_as_an_installation_does(
    database: str, model: FakeModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EVAL-1, FIX-7"""
    config = Config(embedding_model="e5-base-v2", embedding_dimensions=DIMENSIONS, openai_base_url=model.base_url)
    monkeypatch.setattr(policy, "LOCAL_SERVER", policy.configured_server(config))
    asked = question_sets.Question("1", QUESTION, "en", frozenset({"island"}))
    questions = question_sets.QuestionSet("ferry", (question_sets.Passage("island", None, TEXT),), (), (asked,))
    embedder, db = OpenAIEmbedder(model="e5", dimensions=DIMENSIONS, base_url=model.base_url), Database(database)
    library = load_library(db, questions, embedder, Settings())
    asking.ask_all(db, library, questions.questions, embedder, Settings(), "dense")
    db.close()
    assert sent(model) == [f"passage: {TEXT}", *OWN_SENTENCES, f"query: {QUESTION}"]
