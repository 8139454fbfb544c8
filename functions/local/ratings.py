"""Prints every rated answer as a line of JSON, for an evaluation by whoever operates the database."""

from __future__ import annotations

from functions.adapters.postgres import messages
from functions.local.server.serve import open_services
from functions.runtime.config import Config
from functions.web.schemas.messages import RatedAnswer

PAGE = 100


def run(config: Config) -> int:
    """Runs `ratings`: the answers of all users, the last rated first."""
    with open_services(config) as services:
        cursor: str | None = None
        while True:
            with services.database.as_worker() as connection:
                rows, cursor = messages.list_rated(connection, PAGE, cursor)
            for row in rows:
                print(RatedAnswer.of(row).model_dump_json())
            if cursor is None:
                return 0
