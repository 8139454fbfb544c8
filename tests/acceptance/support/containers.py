"""Containers of a function platform in one process: each has its own application and services."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from mangum import Mangum
from pydantic import SecretStr

from functions.adapters import auth
from functions.adapters.laptop import object_rows
from functions.adapters.laptop.object_store import LocalObjectStore
from functions.local.server.serve import create_local_app
from functions.runtime.config import Config
from functions.runtime.services import Services
from tests.handlers import events
from tests.handlers.events import Answer, Json


class Container:
    """The application that answers the requests of one thread."""

    def __init__(self, dsn: str, home: Path) -> None:
        self.services = Services(Config(database_url=SecretStr(dsn), ibid_home=home, log_level="CRITICAL"))
        self.statuses: Counter[int] = Counter()
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        self._handler = Mangum(create_local_app(self.services), lifespan="off")

    def call(self, person: Person, method: str, path: str, body: Any = None, query: str = "") -> Answer:
        asyncio.set_event_loop(self._loop)
        headers = {"authorization": f"Bearer {person.token(self.services)}"}
        event = events.http(method, path, body, query=query, headers=headers)
        raw = self._handler(event, events.Context())  # type: ignore[arg-type]  # Mangum reads no more of it
        body = raw.get("body") or ""
        content = base64.b64decode(body) if raw.get("isBase64Encoded") else body.encode()
        self.statuses[raw["statusCode"]] += 1
        return Answer(raw["statusCode"], raw["headers"], content)

    def store(self, person: Person, document: Json, content: bytes) -> None:
        """Stores the bytes of an upload and writes its row, as the storage does."""
        store = self.services.objects
        assert isinstance(store, LocalObjectStore)
        path = f"{person.id}/{document['id']}/original.{document['file_type']}"
        store.put(path, [content], record=partial(object_rows.record, self.services.database))

    def run_due_jobs(self) -> int:
        """Runs all due jobs; returns how many."""
        done = 0
        while self.services.make_worker().ingest_next() is not None:
            done += 1
        return done

    def close(self) -> None:
        self.services.database.close()
        asyncio.set_event_loop(None)
        self._loop.close()


class Person:
    """A user whose every text contains a word that no other user has."""

    def __init__(self, word: str) -> None:
        self.id = str(uuid4())
        self.word = word

    def token(self, services: Services) -> str:
        return auth.issue_local_token(services.local_secret, self.id, self.word)


def words_in(answer: Answer, people: Sequence[Person]) -> set[str]:
    """The words of the users whose texts or ids an answer contains."""
    text = answer.content.decode()
    return {person.word for person in people if person.word in text or person.id in text}


def read(answer: Answer, *statuses: int) -> Any:
    """The body of an answer, which must have one of these statuses."""
    assert answer.status in (statuses or (200,)), answer.content
    return json.loads(answer.content) if answer.content else None
