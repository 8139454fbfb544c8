"""Who calls the API: users with a library of their own, and programs with one of their keys."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from functions.adapters.postgres import settings as stored_settings
from functions.core import api_keys, models
from tests.support.documents import make_pdf
from tests.support.local_server import LocalServer, Person

# Limits that thousands of requests would reach.
_GENEROUS = {
    "questions_per_day": 100_000,
    "requests_per_minute": 10_000,
    "key_requests_per_minute": 10_000,
    "uploads_per_minute": 1_000,
}

_KNOWN: dict[str, Sequence[Any]] = {
    "model": ["ibid"],
    "file_name": ["report.txt"],
    "mime_type": [None],
    "number": [1],
    "jsonrpc": ["2.0"],
    "method": ["tools/list", "initialize"],
    "messages": [{"role": "user", "content": "What crossed the sea in silence?"}],
    "response_format": [None],
    "tool_choice": [None],
    "n": [None],
    "ibid": [None],
    "kind": ["openai"],
    "api_key_env": [None],
    "dimensions": [None],
}


@dataclass(frozen=True)
class Caller:
    """One way to call the API; `foreign` are words and ids that no answer to it may contain."""

    name: str
    headers: Mapping[str, str]
    foreign: Sequence[str]
    known: Mapping[str, Sequence[Any]] = field(repr=False)
    """Name of a field → values that mean something, such as the ids of what the caller and others own."""


@dataclass(frozen=True)
class Library:
    """What a user owns: every text of it contains `word`, which nobody else has."""

    person: Person
    word: str
    ids: Mapping[str, str]

    @property
    def marks(self) -> list[str]:
        return [self.word, self.person.id, *self.ids.values()]


def fill_library(person: Person, word: str) -> Library:
    """A notebook, a note, an indexed document, an answer and a key."""
    fact = f"The {word} crossed the sea in silence."
    notebook = person.post("/notebooks", title=f"About {word}")["id"]
    note = person.post("/notes", title=f"A note on {word}", content=f"{fact} Nobody saw it.", notebook_id=notebook)[
        "id"
    ]
    with tempfile.TemporaryDirectory() as folder:
        document = person.add(make_pdf(Path(folder) / f"{word}.pdf", fact), notebook_id=notebook)["id"]
    answer = person.ask(f"What did the {word} cross?", document_ids=[document])
    key = person.post("/keys", name=f"Key of {word}", scopes=["read"])["id"]
    ids = {"notebook_id": notebook, "note_id": note, "document_id": document, "key_id": key}
    return Library(
        person, word, ids | {"conversation_id": answer["conversation_id"], "message_id": answer["message_id"]}
    )


@contextmanager
def open_callers(server: LocalServer) -> Iterator[list[Caller]]:
    """Two users, an administrator, nobody, and a key of the second user for each scope."""
    with server.services.database.as_worker() as connection:
        stored_settings.write(connection, _GENEROUS, models.User.named("00000000-0000-4000-8000-000000000000"))
    server.services.forget_policy()
    with ExitStack() as stack:
        words = {"ada": "zeppelinquast", "bob": "bathyskaphoid", "grace": "gyrocopteryx"}
        libraries = {
            name: fill_library(stack.enter_context(server.person(name, admin=name == "grace")), word)
            for name, word in words.items()
        }
        known = _KNOWN | {key: [library.ids[key] for library in libraries.values()] for key in libraries["ada"].ids}
        known["document_ids"] = known["document_id"]
        known["server_id"] = [found.id for found in server.services.policy().servers]

        def call_as(name: str, owner: str, token: str | None = None) -> Caller:
            foreign = [mark for other in libraries if other != owner for mark in libraries[other].marks]
            own = libraries[owner].ids if owner else {}
            mostly_own = {key: [*values, *[own[key]] * len(values)] for key, values in known.items() if key in own}
            return Caller(name, {"Authorization": f"Bearer {token}"} if token else {}, foreign, known | mostly_own)

        people = [call_as(name, name, library.person.token) for name, library in libraries.items()]
        keys = [
            call_as(f"key-{scope}", "bob", libraries["bob"].person.post("/keys", name=scope, scopes=[scope])["key"])
            for scope in api_keys.SCOPES
        ]
        yield [*people, call_as("nobody", ""), *keys]
