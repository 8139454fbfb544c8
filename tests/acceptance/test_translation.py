"""Questions in one language over documents in the other, which are translated with their indexing, or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import database as database_servers
from tests.support.documents import make_pdf
from tests.support.fakes.model_server import Body, FakeModelServer, Reply, quote_first_passage
from tests.support.local_server import Json, LocalServer, Person, run_local_server, wait_until

TRANSLATIONS = {
    "The boiler of the school burns wood chips in winter.": "La chaudière de l'école brûle des copeaux en hiver.",
    "The pupils must wear slippers in the library.": "Les élèves doivent porter des pantoufles à la bibliothèque.",
    "The bridge was painted green by the sailors.": "Le pont a été peint en vert par les marins.",
}
PAGES = list(TRANSLATIONS)
QUESTION = "Que doivent porter les élèves à la bibliothèque ?"
GOLD = (2, PAGES[1])


def respond(body: Body) -> Reply:
    """Translates passages, and answers questions as the fake server does by itself."""
    rules, *_, asked = (str(message["content"]) for message in body["messages"])
    if not rules.startswith("You translate passages"):
        return quote_first_passage(body)
    return Reply(["\n".join(french for english, french in TRANSLATIONS.items() if english in asked)])


@contextmanager
def serve(dsn: str, home: Path, **config: Any) -> Iterator[tuple[LocalServer, Person]]:
    with run_local_server(dsn, home, **config) as server, server.person("Ada", admin=True) as ada:
        yield server, ada


@pytest.fixture
def dsn(cluster: database_servers.TestCluster) -> Iterator[str]:
    dsn = cluster.clone()
    yield dsn
    cluster.drop(dsn)


@pytest.fixture
def translated(dsn: str, tmp_path: Path) -> Iterator[Json]:
    """A library whose words and vectors find nothing across languages, and what its server was asked for."""
    with (
        FakeModelServer(dimensions=64, respond=respond) as model,
        serve(
            dsn,
            tmp_path,
            openai_base_url=model.base_url,
            embedding_model="words",
            embedding_dimensions=64,
            translation_model="translator",
        ) as (server, ada),
    ):
        settings = {"translate_documents": "en_to_fr", "price_translation_input_per_million": 1000}
        assert ada.http.patch("/api/rag/settings", json=settings).is_success
        document = add_pages(ada, tmp_path)
        wait_until(lambda: translation_of(ada, document)["status"] == "done")
        yield {"server": server, "ada": ada, "model": model, "document": document}


def add_pages(person: Person, folder: Path) -> Json:
    document = person.add(make_pdf(folder / "rules.pdf", *PAGES))
    assert document["status"] == "indexed", document
    return document


def translation_of(person: Person, document: Json) -> Json:
    """What the document says of its translation; nothing until one is due."""
    health = person.get(f"/documents/{document['id']}")["health"]
    return dict(health.get("translation") or {"status": None})


def find(person: Person, question: str) -> Json:
    return dict(person.get("/search", q=question)["hits"][0])


def test_a_french_question_finds_an_english_page_by_its_translation(translated: Json) -> None:
    """LANG-2, LANG-4"""
    hit = find(translated["ada"], QUESTION)
    assert ((hit["page_start"], hit["text"].strip()), hit["lang"]) == (GOLD, "en")
    assert hit["translation"] == TRANSLATIONS[PAGES[1]]


def test_a_citation_quotes_the_original_and_shows_its_translation(translated: Json) -> None:
    """LANG-2, CHAT-5"""
    answer = translated["ada"].ask(QUESTION)
    [source] = [source for source in answer["sources"] if source["page_start"] == 2]
    assert source["quote"] in PAGES[1]
    assert source["translation"] == TRANSLATIONS[PAGES[1]]
    messages = translated["ada"].get(f"/conversations/{answer['conversation_id']}/messages")["items"]
    assert TRANSLATIONS[PAGES[1]] in [source["translation"] for source in messages[-1]["sources"]]


def test_the_health_report_says_what_was_translated_and_what_it_cost(translated: Json) -> None:
    """LANG-2, LIB-10"""
    found = translation_of(translated["ada"], translated["document"])
    assert {key: found[key] for key in ("status", "passages", "translated", "model", "error")} == {
        "status": "done",
        "passages": 3,
        "translated": 3,
        "model": "translator",
        "error": None,
    }
    assert found["cost_usd"] == pytest.approx(found["prompt_tokens"] / 1000)


def test_indexing_again_keeps_the_translations_and_pays_for_none(translated: Json) -> None:
    """LANG-2, LIB-7"""
    ada, document = translated["ada"], translated["document"]
    paid = len(translated["model"].chats)
    ada.post(f"/documents/{document['id']}/reindex")
    assert ada.follow(document["id"])["status"] == "indexed"
    assert find(ada, QUESTION)["translation"] == TRANSLATIONS[PAGES[1]]
    wait_until(lambda: translation_of(ada, document)["status"] == "done")
    assert len(translated["model"].chats) == paid


def test_a_translation_is_asked_for_again(translated: Json) -> None:
    """LANG-2"""
    ada, document = translated["ada"], translated["document"]
    assert ada.post(f"/documents/{document['id']}/translate")["health"]["translation"]["status"] == "queued"
    wait_until(lambda: translation_of(ada, document)["status"] == "done")


def test_nothing_is_translated_unless_it_was_switched_on(dsn: str, tmp_path: Path) -> None:
    """LANG-3"""
    with serve(dsn, tmp_path, embedding_model="multilingual-e5-small") as (_, ada):
        document = add_pages(ada, tmp_path)
        assert "translation" not in ada.get(f"/documents/{document['id']}")["health"]
        answer = ada.http.post(f"/api/rag/documents/{document['id']}/translate")
        assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


def test_a_french_question_finds_an_english_page_without_a_translation(dsn: str, tmp_path: Path) -> None:
    """LANG-4: by its meaning alone, with the embedding model of a laptop."""
    with serve(dsn, tmp_path, embedding_model="multilingual-e5-small") as (_, ada):
        add_pages(ada, tmp_path)
        hit = find(ada, QUESTION)
        assert ((hit["page_start"], hit["text"].strip()), hit["translation"]) == (GOLD, None)
        assert ada.ask(QUESTION)["sources"][0]["page_start"] == 2


@pytest.mark.parametrize("question", ["l'élève", "L’ELEVE", "eleve", "élèves", "les eleves"])
def test_accents_and_elisions_find_the_same_passages(translated: Json, question: str) -> None:
    """RET-2, LANG-2"""
    ada = translated["ada"]
    note = ada.post("/notes", title="École", content="L'élève qu'on attend n'est pas venu.")
    assert ada.get(f"/notes/{note['id']}", wait=20)["status"] == "indexed"
    hits = ada.get("/search", q=question, debug=True)["hits"]
    assert {hit["page_start"] for hit in hits if hit["arms"]["fts_rank"] and hit["source"] == "document"} == {2}
    assert [hit["source_id"] for hit in hits if hit["source"] == "note" and hit["arms"]["fts_rank"]] == [note["id"]]
