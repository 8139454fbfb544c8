"""The settings that a process has read, and when it reads them again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pydantic import SecretStr

from functions.adapters import tesseract
from functions.adapters.postgres import settings as stored_settings
from functions.adapters.postgres.connection import Connection, Database
from functions.core import models
from functions.runtime import policy
from functions.runtime.config import Config
from functions.runtime.policy import Policy, PolicyReader
from functions.runtime.services import Services

ADMIN = models.User("a3c1f2d4-0000-4000-8000-000000000001", is_admin=True, claims={"app_metadata": {"role": "admin"}})


@pytest.fixture
def opened(database: str) -> Iterator[Database]:
    with closing(Database(database)) as opened:
        yield opened


def change(database: Database, **values: object) -> None:
    with database.as_user(ADMIN) as administrator:
        stored_settings.write(administrator, values, ADMIN)


def test_what_was_read_while_a_setting_changed_is_not_kept(opened: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that had read the old settings would go by them for seconds after the change."""
    reader, read = PolicyReader(Config(), lambda: opened), policy._read_policy

    def read_and_change(connection: Connection) -> Policy:
        before = read(connection)
        monkeypatch.setattr(policy, "_read_policy", read)
        change(opened, hybrid_top_k=7)
        reader.forget()
        return before

    monkeypatch.setattr(policy, "_read_policy", read_and_change)
    assert [reader.read().settings.hybrid_top_k for _ in range(2)] == [24, 7]


def test_a_worker_goes_by_what_changed_while_it_looked_for_tesseract(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would index the next document by the old settings, for which nothing is translated."""
    with closing(Services(Config(database_url=SecretStr(database), ibid_home=tmp_path))) as services:
        services.policy()

        def find_none(languages: str) -> None:
            change(services.database, chunk_tokens=123)
            services.forget_policy()

        monkeypatch.setattr(tesseract, "find_tesseract", find_none)
        assert services.make_worker().settings.chunk_tokens == 123
