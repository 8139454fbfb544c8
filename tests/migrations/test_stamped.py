"""The repository's own migrations: named in order, stamped, and unchanged since their release."""

from __future__ import annotations

import re

from functions.local.database import migrate, stamp


def test_every_function_is_stamped_as_it_stands() -> None:
    assert stamp.check() == []


def test_released_migrations_are_frozen() -> None:
    assert stamp.check_frozen() == []


def test_names_are_timestamps_in_order() -> None:
    names = sorted(path.name for path in migrate.MIGRATIONS.iterdir())
    assert [name for name in names if not re.fullmatch(r"\d{14}_[a-z0-9_]+\.sql", name)] == []
    versions = [migration.version for migration in migrate.list_migrations()]
    assert versions == sorted(set(versions))


def test_function_files_are_named_after_their_function() -> None:
    """One function a file, so that a change is a change of one file."""
    found = {
        path.name: re.findall(r"^create or replace function rag\.(\w+)", path.read_text(), re.M)
        for path in sorted(migrate.FUNCTIONS.glob("*.sql"))
    }
    assert found
    assert {name: functions for name, functions in found.items() if functions != [name[3:-4]]} == {}
