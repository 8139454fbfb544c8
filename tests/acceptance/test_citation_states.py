"""The state of the sources of earlier answers after the sources were reindexed, replaced, trashed or deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from functions.adapters.laptop.object_store import LocalObjectStore
from functions.adapters.postgres import cited_sources, messages
from tests.acceptance.support import writing
from tests.support import documents
from tests.support.local_server import Json, LocalServer, Person, problem_of, wait_until

FACT = "The boiler burns wood chips in winter."
QUESTION = "What does the boiler burn in winter?"


def sources_of(person: Person, asked: Json) -> list[Json]:
    """The sources of the last answer as the conversation shows them now."""
    sources: list[Json] = person.get(f"/conversations/{asked['conversation_id']}/messages")["items"][-1]["sources"]
    return sources


def source_of(person: Person, asked: Json) -> Json:
    (source,) = sources_of(person, asked)
    return source


def state_of(person: Person, asked: Json) -> tuple[Any, ...]:
    source = source_of(person, asked)
    return source["state"], source["superseded_by"], source["place"]


def page_text(person: Person, source: Json) -> str:
    kind = "notes" if source["source"] == "note" else "documents"
    pages = person.get(f"/{kind}/{source['document_id']}/text", page=source["page_start"])["pages"]
    return str(pages[0]["text"])


def upload(person: Person, content: str, name: str = "boiler.txt", **fields: Any) -> tuple[Json, str]:
    """The upload ticket, which can store other bytes at the same path, and the document's id."""
    ticket = person.announce(name, content.encode(), **fields).json()
    assert person.put(ticket, content.encode()).is_success
    document = person.follow(person.post(f"/documents/{ticket['document']['id']}/finalize")["id"])
    assert document["status"] == "indexed", document
    return ticket, document["id"]


def store_again(person: Person, ticket: Json, content: str) -> None:
    """Puts another text in place of the stored one, as an operator may, and indexes the document again."""
    document_id = ticket["document"]["id"]
    before = person.get(f"/documents/{document_id}")["indexed_at"]
    services = person.server.services
    with services.database.as_worker() as connection:
        changed = "update rag.documents set size_bytes = %s, sha256 = null where id = %s returning object_path"
        row = connection.execute(changed, (len(content.encode()), document_id)).fetchone()
    assert row is not None
    assert isinstance(services.objects, LocalObjectStore)
    services.objects.put(row["object_path"], [content.encode()])
    person.post(f"/documents/{document_id}/reindex")
    wait_until(lambda: person.get(f"/documents/{document_id}")["indexed_at"] != before)
    assert person.follow(document_id)["status"] == "indexed"


class CountingConnection:
    """Counts the statements sent over a connection."""

    def __init__(self, connection: Any) -> None:
        self.connection, self.count = connection, 0

    def execute(self, *statement: Any) -> Any:
        self.count += 1
        return self.connection.execute(*statement)


def test_the_states_of_a_page_of_messages_take_one_statement(server: LocalServer, ada: Person) -> None:
    """LIB-8"""
    upload(ada, FACT)
    conversation_id = ada.ask(QUESTION)["conversation_id"]
    for _ in range(3):
        ada.ask(QUESTION, conversation_id=conversation_id)
    with server.services.database.as_user(ada.user) as connection:
        rows, _ = messages.list_messages(connection, conversation_id, 50, None)
        counting: Any = CountingConnection(connection)
        described = cited_sources.describe(counting, rows)
    assert [source["state"] for message in described for source in message["sources"]] == ["current"] * 4
    assert counting.count == 1


# Reindexed


def test_a_source_reindexed_without_a_change_is_unchanged(ada: Person) -> None:
    """LIB-7, LIB-8"""
    _, document_id = upload(ada, FACT)
    asked = ada.ask(QUESTION)
    assert state_of(ada, asked) == ("current", None, "unchanged")
    before = ada.get(f"/documents/{document_id}")["indexed_at"]
    ada.post(f"/documents/{document_id}/reindex")
    wait_until(lambda: ada.get(f"/documents/{document_id}")["indexed_at"] != before)
    assert state_of(ada, asked) == ("current", None, "unchanged")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"Some words before it. {FACT} Some after.", FACT),
        (
            f"Some words before it. {FACT.replace('wood chips', 'wood' + chr(10) + 'chips')}",
            FACT.replace("d c", "d\nc"),
        ),
    ],
    ids=["moved", "other-line-ends"],
)
def test_a_quote_that_moved_is_found_at_its_new_place(ada: Person, text: str, words: str) -> None:
    """LIB-8, CHAT-5"""
    ticket, _ = upload(ada, FACT)
    asked = ada.ask(QUESTION)
    store_again(ada, ticket, text)
    assert state_of(ada, asked) == ("current", None, "moved")
    source = source_of(ada, asked)
    assert page_text(ada, source)[source["start_offset"] : source["end_offset"]] == source["quote"] == words


LONG = "Another line of words that says nothing.\n" * 1_500
"""Three parts of a document without pages."""


@pytest.mark.parametrize("words", [FACT, FACT.replace("wood chips", "wood\nchips")], ids=["same", "other-line-ends"])
def test_a_quote_that_moved_by_many_pages_is_found(ada: Person, words: str) -> None:
    """LIB-8, CHAT-5"""
    ticket, _ = upload(ada, FACT)
    asked = ada.ask(QUESTION)
    store_again(ada, ticket, LONG + words)
    assert state_of(ada, asked) == ("current", None, "moved")
    source = source_of(ada, asked)
    assert source["page_start"] > 2
    assert page_text(ada, source)[source["start_offset"] : source["end_offset"]] == source["quote"] == words


def test_a_short_quote_is_not_matched_far_from_its_old_place(server: LocalServer, ada: Person) -> None:
    """LIB-8"""
    ticket, _ = upload(ada, FACT)
    asked = ada.ask(QUESTION)
    with server.services.database.as_worker() as connection:
        connection.execute(
            "update rag.messages set sources = jsonb_set(sources, '{0,quote}', '\"wood chips\"') where id = %s",
            (asked["message_id"],),
        )
    store_again(ada, ticket, f"{LONG} wood chips")
    assert state_of(ada, asked) == ("current", None, "lost")


def test_a_quote_whose_words_are_gone_is_marked_lost_and_kept(ada: Person) -> None:
    """LIB-8"""
    ticket, _ = upload(ada, FACT)
    asked = ada.ask(QUESTION)
    store_again(ada, ticket, "The boiler burns peat bricks in summer.")
    assert state_of(ada, asked) == ("current", None, "lost")
    (cited,) = asked["sources"]
    assert source_of(ada, asked) == cited | {"state": "current", "superseded_by": None, "place": "lost"}
    exported = ada.http.get(f"/api/rag/conversations/{asked['conversation_id']}/export").text
    assert "(exact; the quoted words are no longer there)" in exported


# Replaced


def test_a_superseded_source_names_its_new_version_and_can_still_be_read(ada: Person, tmp_path: Path) -> None:
    """LIB-5, LIB-8, LIB-9"""
    ada.add(documents.make_pdf(tmp_path / "boiler.pdf", FACT))
    asked = ada.ask(QUESTION)
    newer = ada.add(documents.make_pdf(tmp_path / "boiler.pdf", "The boiler burns peat bricks in winter."))
    assert state_of(ada, asked) == ("superseded", newer["id"], "unchanged")
    source = source_of(ada, asked)
    place = {"start": source["start_offset"], "end": source["end_offset"]}
    assert page_text(ada, source)[place["start"] : place["end"]] == source["quote"] == FACT
    picture = ada.http.get(f"/api/rag/documents/{source['document_id']}/pages/1.png", params=place)
    assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png")


# Deleted


def test_a_deleted_source_stays_readable_from_the_answer(ada: Person) -> None:
    """LIB-8"""
    _, document_id = upload(ada, FACT)
    asked = ada.ask(QUESTION)
    ada.http.delete(f"/api/rag/documents/{document_id}").raise_for_status()
    (cited,) = asked["sources"]
    assert source_of(ada, asked) == cited | {"state": "deleted", "superseded_by": None, "place": None}
    assert (cited["quote"], cited["file_name"], cited["page_start"]) == (FACT, "boiler.txt", 1)
    assert problem_of(ada.http.get(f"/api/rag/documents/{document_id}/text")) == (404, "not_found")


def test_each_source_of_an_answer_has_its_own_state(ada: Person) -> None:
    """LIB-8"""
    kept, gone = (upload(ada, f"{FACT} {name}", f"{name}.txt")[1] for name in ("one", "two"))
    asked = ada.ask(QUESTION)
    ada.http.delete(f"/api/rag/documents/{gone}").raise_for_status()
    states = {source["document_id"]: source["state"] for source in sources_of(ada, asked)}
    assert states == {kept: "current", gone: "deleted"}


def test_a_note_in_the_trash_and_its_attachments_count_as_deleted_until_restored(ada: Person) -> None:
    """LIB-2, LIB-8"""
    note_id = writing.write(ada, "The chimney is forty metres tall.", title="Chimney")["id"]
    upload(ada, FACT, note_id=note_id)
    of_note, of_document = ada.ask("How tall is the chimney?", note_id=note_id), ada.ask(QUESTION, note_id=note_id)
    both = [of_note, of_document]
    assert [{s["source"] for s in asked["sources"]} for asked in both] == [{"note"}, {"document"}]
    assert [state_of(ada, asked) for asked in both] == [("current", None, "unchanged")] * 2
    ada.post(f"/notes/{note_id}/trash")
    assert [state_of(ada, asked) for asked in both] == [("deleted", None, None)] * 2
    ada.post(f"/notes/{note_id}/restore")
    assert [state_of(ada, asked) for asked in both] == [("current", None, "unchanged")] * 2


@pytest.mark.parametrize(
    ("content", "place"),
    [(f"Before. {FACT}", "moved"), (LONG + FACT, "moved"), ("Peat.", "lost"), ("", "lost")],
    ids=["moved", "far", "other", "empty"],
)
def test_a_changed_note_says_whether_its_quote_is_still_there(ada: Person, content: str, place: str) -> None:
    """LIB-8"""
    note_id = writing.write(ada, FACT)["id"]
    asked = ada.ask(QUESTION)
    ada.http.patch(f"/api/rag/notes/{note_id}", json={"content": content}).raise_for_status()
    assert writing.follow(ada, {"id": note_id})["status"] == ("indexed" if content else "empty")
    assert state_of(ada, asked) == ("current", None, place)
    if place == "moved":
        source = source_of(ada, asked)
        assert page_text(ada, source)[source["start_offset"] : source["end_offset"]] == FACT
