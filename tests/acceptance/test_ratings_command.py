"""`python -m functions.local ratings` prints what readers think of the answers, for an evaluation."""

from __future__ import annotations

import json

import pytest

from functions.local import ratings
from functions.local.__main__ import main
from tests.support.local_server import LocalServer, Person

TEXT = "The boiler burns wood chips in winter."
QUESTION = "What does the boiler burn in winter?"


def rate(person: Person, rating: str, reason: str) -> str:
    """The id of an answer that this person has asked for and rated."""
    person.follow(person.add_bytes("boiler.txt", TEXT.encode())["id"])
    asked = person.ask(QUESTION)
    path = f"/api/rag/conversations/{asked['conversation_id']}/messages/{asked['message_id']}/rating"
    person.http.put(path, json={"rating": rating, "reason": reason}).raise_for_status()
    return str(asked["message_id"])


@pytest.fixture
def environment(server: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    config = server.services.config
    assert config.database_url is not None
    monkeypatch.setenv("DATABASE_URL", config.database_url.get_secret_value())
    monkeypatch.setenv("IBID_HOME", str(config.home))


@pytest.mark.usefixtures("environment")
def test_the_rated_answers_of_all_users_are_printed_the_last_rated_first(
    ada: Person, bob: Person, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """EVAL-5, FIX-6"""
    monkeypatch.setattr(ratings, "PAGE", 1)
    rated = [(rate(bob, "up", ""), "up", ""), (rate(ada, "down", "It was coal."), "down", "It was coal.")]
    assert main(["ratings"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    ids = {answer_id for answer_id, *_ in rated}
    found = [line for line in lines if line["id"] in ids]
    assert [(line["id"], line["rating"], line["reason"]) for line in found] == rated[::-1]
    assert {(line["question"], line["sources"][0]["quote"]) for line in found} == {(QUESTION, TEXT)}
