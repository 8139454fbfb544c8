"""What a person or a schedule does, in steps; each flow returns how it ended."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx

from functions import sweeper
from functions.core import errors
from tests.faults.plant import KEPT, KEPT_QUESTION, Plant
from tests.support.local_server import Json, Person, wait_until

SETTLING_SECONDS = 8.0
_numbers = itertools.count(1)


class RefusedError(Exception):
    """A clear error: its text is a status and a code."""


class UnclearError(Exception):
    """An answer that does not say what is wrong."""


def read(answer: httpx.Response) -> Json:
    """The body of a success; raises RefusedError for an error in our form, UnclearError for any other."""
    if answer.is_success:
        return dict(answer.json()) if answer.content else {}
    try:
        body = answer.json()
        code = body["code"]
    except (ValueError, KeyError, TypeError):
        raise UnclearError(f"{answer.status_code} {answer.text[:80]}") from None
    if answer.status_code == 500 and code == "internal":
        raise UnclearError("500 internal")
    raise RefusedError(f"{answer.status_code} {code}")


@dataclass
class Visit:
    """One user of the installation during one flow."""

    plant: Plant
    person: Person
    kept_document: str
    kept_note: str
    document: str = ""
    """The document that the flow is about."""
    note: str = ""

    def call(self, method: str, path: str, body: Any = None, **params: Any) -> Json:
        return read(self.person.http.request(method, f"/api/rag{path}", json=body, params=params))

    def status(self, document_id: str) -> str:
        found = self.call("GET", f"/documents/{document_id}")
        return found["status"] + (f", {found['error_code']}" if found["error_code"] else "")

    def announce(self) -> tuple[Json, bytes]:
        content = f"Report {next(_numbers)} of {self.person.id}. The ferry to Vigo left at nine.".encode()
        body = {"file_name": f"ferry {next(_numbers)}.txt", "size": len(content), "mime_type": "text/plain"}
        return self.call("POST", "/documents", body), content

    def send(self, ticket: Json, content: bytes) -> None:
        """Sends the bytes straight to the storage, whose errors have its own form."""
        try:
            answer = self.person.put(ticket, content)
        except httpx.TransportError as exc:
            raise RefusedError(f"storage: {type(exc).__name__}") from exc
        if not answer.is_success:
            raise RefusedError(f"storage: {answer.json().get('code', answer.status_code)}")

    def settle(self, document_id: str, seconds: float = SETTLING_SECONDS) -> str:
        """The status of a document when it is final, or after `seconds`."""
        with suppress(AssertionError):
            wait_until(lambda: self.status(document_id).startswith(("indexed", "failed")), seconds)
        return self.status(document_id)


def upload(visit: Visit) -> str:
    ticket, content = visit.announce()
    visit.document = ticket["document"]["id"]
    visit.send(ticket, content)
    visit.plant.between_steps()
    if visit.plant.announces_uploads:
        visit.call("POST", f"/documents/{visit.document}/finalize")
    return visit.settle(visit.document)


def ingest(visit: Visit) -> str:
    """The file was stored before the fault."""
    visit.plant.between_steps()
    return visit.settle(visit.document)


def search(visit: Visit) -> str:
    found = visit.call("GET", "/search", q=KEPT_QUESTION)
    assert any(KEPT in hit["text"] for hit in found["hits"]), found
    return "found" + (f", degraded: {', '.join(found['degraded'])}" if found["degraded"] else "")


def ask(visit: Visit) -> str:
    answer = visit.call("POST", "/chat", {"query": KEPT_QUESTION})
    return _describe_answer(answer)


def ask_streamed(visit: Visit) -> str:
    body = {"query": KEPT_QUESTION, "stream": True}
    with visit.person.http.stream("POST", "/api/rag/chat", json=body) as answer:
        answer.read()
    if not answer.is_success:
        read(answer)
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    last = events[-1]
    if "error" in last:
        raise RefusedError(f"event {last['error']['code']}")
    return _describe_answer(last)


def _describe_answer(answer: Json) -> str:
    assert answer["sources"], answer
    text = answer["mode"] if answer["status"] == "complete" else f"{answer['mode']}, {answer['status']}"
    return text + (f", degraded: {', '.join(answer['degraded'])}" if answer["degraded"] else "")


def save_note(visit: Visit) -> str:
    note = visit.call("POST", "/notes", {"title": "Ferry", "content": f"The ferry costs {next(_numbers)} euros."})
    visit.note = note["id"]
    visit.plant.between_steps()
    return str(visit.call("GET", f"/notes/{visit.note}", wait=5)["status"])


def reindex(visit: Visit) -> str:
    visit.call("POST", f"/documents/{visit.kept_document}/reindex")
    visit.plant.between_steps()
    return visit.settle(visit.kept_document)


def delete_and_restore(visit: Visit) -> str:
    visit.call("POST", f"/notes/{visit.kept_note}/trash")
    visit.plant.between_steps()
    visit.call("POST", f"/notes/{visit.kept_note}/restore")
    visit.call("DELETE", f"/documents/{visit.document}")
    return "deleted, restored"


def sweep(visit: Visit) -> str:
    visit.plant.between_steps()
    try:
        sweeper.sweep(visit.plant.server.services)
    except errors.IbidError as exc:
        raise RefusedError(exc.code) from exc
    return "swept"


FLOWS: dict[str, Callable[[Visit], str]] = {
    "upload": upload,
    "ingest": ingest,
    "search": search,
    "ask": ask,
    "ask, streamed": ask_streamed,
    "save a note": save_note,
    "re-index": reindex,
    "delete, restore": delete_and_restore,
    "sweep": sweep,
}
HAS_STEPS = ("upload", "ingest", "save a note", "re-index", "delete, restore", "sweep")
"""Flows in the middle of which an event can arrive."""
