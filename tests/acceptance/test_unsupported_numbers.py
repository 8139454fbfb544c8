"""Figures of an answer that stand in no cited passage: in the reply, the stream, the saved message and the export."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.fakes.model_server import FakeModelServer, Reply, answer
from tests.support.local_server import LocalServer, Person

FACTS = "Le chiffre d'affaires a progressé de 5 % en 2019, à 1\u202f234,5 millions d'euros."
QUESTION = "De combien le chiffre d'affaires a-t-il progressé en 2019 ?"
GOOD = "Il a progressé de 5 % en 2019, à 1 234,5 millions."
CHANGED = "1. Il a progressé de 7 %.\n2. Il a atteint 1 234,5 millions."


@pytest.fixture(scope="module")
def asker(thinking: LocalServer) -> Iterator[Person]:
    """Somebody with one report, on the server that answers with the model."""
    with thinking.person("asker") as person:
        document_id = person.add_bytes("rapport.txt", FACTS.encode())["id"]
        assert person.follow(document_id)["status"] == "indexed"
        yield person


def cite_passage(text: str) -> Reply:
    """An answer of this text that rests on the only passage there is."""
    return answer((text, [], [FACTS]))


def test_figures_that_stand_in_the_cited_passage_are_not_named(asker: Person, model: FakeModelServer) -> None:
    """CHAT-5"""
    model.script(cite_passage(GOOD))
    given = asker.ask(QUESTION)
    assert [section["unsupported_numbers"] for section in given["sections"]] == [[]]
    assert [source["check"] for source in given["sources"]] == ["exact"]


def test_a_figure_that_stands_nowhere_is_named_wherever_the_answer_is_read(
    asker: Person, model: FakeModelServer
) -> None:
    """CHAT-5, CHAT-2, CHAT-11"""
    model.script(cite_passage(CHANGED))
    text = asker.http.post("/api/rag/chat", json={"query": QUESTION, "stream": True}).text
    done = json.loads(text.rstrip().rsplit("data: ", 1)[1])
    saved = asker.get(f"/conversations/{done['conversation_id']}/messages")["items"][-1]
    assert [section["unsupported_numbers"] for section in done["sections"]] == [["7 %"]]
    assert saved["sections"] == done["sections"]
    assert [source["check"] for source in done["sources"]] == ["fuzzy"]
    export = asker.http.get(f"/api/rag/conversations/{done['conversation_id']}/export", params={"lang": "fr"}).text
    assert "\n\n*Chiffres qui ne figurent dans aucun passage cité : 7 %*\n\n**Sources**" in export


def test_an_answer_without_a_model_is_word_for_word_and_names_none(server: LocalServer, ada: Person) -> None:
    """CHAT-6"""
    ada.follow(ada.add_bytes("rapport.txt", FACTS.encode())["id"])
    assert [section["unsupported_numbers"] for section in ada.ask(QUESTION)["sections"]] == [[]]


def test_a_figure_of_the_question_is_not_named(asker: Person, model: FakeModelServer) -> None:
    """CHAT-5"""
    model.script(cite_passage("Pas de 7 % : il a progressé de 5 % en 2019."))
    given = asker.ask("Le chiffre d'affaires a-t-il progressé de 7 % en 2019 ?")
    assert [section["unsupported_numbers"] for section in given["sections"]] == [[]]


def test_a_figure_of_the_question_that_the_passage_contradicts_is_named(asker: Person, model: FakeModelServer) -> None:
    """CHAT-5: a model that agrees with whatever is asked"""
    model.script(cite_passage("Oui, il a progressé de 7 % en 2019."))
    given = asker.ask("Le chiffre d'affaires a-t-il progressé de 7 % en 2019 ?")
    assert [section["unsupported_numbers"] for section in given["sections"]] == [["7 %"]]


def test_another_scale_is_another_figure(asker: Person, model: FakeModelServer) -> None:
    """CHAT-5"""
    model.script(cite_passage("Il a atteint 1 234,5 milliards d'euros en 2019."))
    assert asker.ask(QUESTION)["sections"][0]["unsupported_numbers"] == ["1 234,5 milliards"]
