"""Translations on Lambda: the sweeper finds what is due, and a message of the queue lets a worker do it."""

from __future__ import annotations

import pytest

from functions import sweeper
from functions.adapters import sqs
from functions.core import models
from functions.runtime.services import Services
from tests.handlers import events
from tests.handlers.conftest import QUEUE, Caller
from tests.handlers.test_ingest import DONE, batch

ENGLISH = "The boiler of the school burns wood chips in winter."
FRENCH = "La chaudière de l'école brûle des copeaux en hiver."


class FakeTranslator:
    def translate(self, text: str, source: models.Lang, target: models.Lang) -> tuple[str, models.Usage]:
        return FRENCH, models.Usage(3, 4, "fake")


@pytest.fixture
def sent(services: Services, admin: Caller, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The generations that were sent to the queue, while English documents are translated."""
    sent: list[int] = []

    def send_translation(queue_url: str, generation: int) -> None:
        assert queue_url == QUEUE
        sent.append(generation)

    monkeypatch.setattr(sqs, "send_translation", send_translation)
    monkeypatch.setitem(vars(services), "translator", FakeTranslator())
    body = {"translate_documents": "en_to_fr"}
    assert admin.call("settings", "PATCH", "/api/rag/settings", body).status == 200
    return sent


def test_the_sweeper_sends_a_due_translation_and_a_worker_does_it(
    caller: Caller, services: Services, sent: list[int]
) -> None:
    """LANG-2, OPS-2"""
    document = caller.add(ENGLISH.encode())
    sweeper.sweep(services)
    generation = caller.row("select generation from rag.documents where id = %s", document["id"])["generation"]
    assert generation in sent
    assert events.invoke("ingest", batch(f'{{"translation": {generation}}}')) == DONE
    found = caller.call("documents", "GET", f"/api/rag/documents/{document['id']}").json["health"]["translation"]
    assert (found["status"], found["translated"], found["completion_tokens"]) == ("done", 1, 4)


def test_a_message_of_a_translation_that_is_gone_is_done(sent: list[int]) -> None:
    """LANG-2, ING-10"""
    assert events.invoke("ingest", batch('{"translation": 0}')) == DONE


def test_readiness_says_that_the_translator_is_missing(
    caller: Caller, services: Services, sent: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """LANG-3, OPS-4"""
    from functions.runtime.readiness import Readiness

    monkeypatch.setitem(vars(services), "translator", None)
    monkeypatch.setattr("functions.runtime.readiness.find_function_name", lambda: None)
    assert "Translation: none, because TRANSLATION_MODEL is not set" in Readiness(services)._describe_models()
