"""Numbers in an answer that no cited passage contains: in the reply, the stream, the saved message and the export."""

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
    """A user with one report, on the server that answers with the model."""
    with thinking.person("asker") as person:
        document_id = person.add_bytes("rapport.txt", FACTS.encode())["id"]
        assert person.follow(document_id)["status"] == "indexed"
        yield person


def cite_passage(text: str) -> Reply:
    """An answer with this text that cites the only passage in the prompt."""
    return answer((text, [], [FACTS]))


def test_numbers_in_the_cited_passage_are_not_listed(asker: Person, model: FakeModelServer) -> None:
    """CHAT-5"""
    model.script(cite_passage(GOOD))
    given = asker.ask(QUESTION)
    assert [section["unsupported_numbers"] for section in given["sections"]] == [[]]
    assert [source["check"] for source in given["sources"]] == ["exact"]


def test_an_unsupported_number_is_listed_wherever_the_answer_is_shown(asker: Person, model: FakeModelServer) -> None:
    """CHAT-5, CHAT-2, CHAT-11"""
    model.script(cite_passage(CHANGED))
    text = asker.http.post("/api/rag/chat", json={"query": QUESTION, "stream": True}).text
    done = json.loads(text.rstrip().rsplit("data: ", 1)[1])
    saved = asker.get(f"/conversations/{done['conversation_id']}/messages")["items"][-1]
    assert [section["unsupported_numbers"] for section in done["sections"]] == [["7 %"]]
    assert saved["sections"] == done["sections"]
    assert [(source["check"], source["support"]) for source in done["sources"]] == [("exact", "low")]
    export = asker.http.get(f"/api/rag/conversations/{done['conversation_id']}/export", params={"lang": "fr"}).text
    assert "\n\n*Chiffres introuvables dans les passages cités : 7 %*\n\n**Sources**" in export


def test_a_verbatim_answer_lists_no_numbers(server: LocalServer, ada: Person) -> None:
    """CHAT-6"""
    ada.follow(ada.add_bytes("rapport.txt", FACTS.encode())["id"])
    assert [section["unsupported_numbers"] for section in ada.ask(QUESTION)["sections"]] == [[]]


def test_a_number_repeated_from_the_question_is_not_listed(asker: Person, model: FakeModelServer) -> None:
    """CHAT-5"""
    model.script(cite_passage("Pas de 7 % : il a progressé de 5 % en 2019."))
    given = asker.ask("Le chiffre d'affaires a-t-il progressé de 7 % en 2019 ?")
    assert [section["unsupported_numbers"] for section in given["sections"]] == [[]]


def test_a_number_of_the_question_that_the_passage_contradicts_is_listed(asker: Person, model: FakeModelServer) -> None:
    """CHAT-5: a model may agree with whatever the question says."""
    model.script(cite_passage("Oui, il a progressé de 7 % en 2019."))
    given = asker.ask("Le chiffre d'affaires a-t-il progressé de 7 % en 2019 ?")
    assert [section["unsupported_numbers"] for section in given["sections"]] == [["7 %"]]


def test_a_number_of_another_scale_is_listed(asker: Person, model: FakeModelServer) -> None:
    """CHAT-5"""
    model.script(cite_passage("Il a atteint 1 234,5 milliards d'euros en 2019."))
    assert asker.ask(QUESTION)["sections"][0]["unsupported_numbers"] == ["1 234,5 milliards"]
