"""The repository's own migrations: named in order, stamped, and never changed after they were committed."""

from __future__ import annotations

import re

from functions.local.database import migrate, stamp


def test_every_source_is_stamped_and_every_migration_frozen() -> None:
    assert stamp.check() == []


def test_names_are_timestamps_in_order() -> None:
    names = sorted(path.name for path in migrate.MIGRATIONS.iterdir())
    assert [name for name in names if not re.fullmatch(r"\d{14}_[a-z0-9_]+\.sql", name)] == []
    versions = [migration.version for migration in migrate.list_migrations()]
    assert versions == sorted(set(versions))


def test_sources_are_named_after_their_function_or_view() -> None:
    """One function or view in each file, so that a change of one is a change of one file."""
    created = re.compile(r"^create or replace (?:function|view) (?:rag|ibid)\.(\w+)", re.M)
    found = {path.name: created.findall(path.read_text()) for path in sorted(migrate.FUNCTIONS.glob("*.sql"))}
    assert found
    assert {name: made for name, made in found.items() if made != [name[3:-4]]} == {}


def test_migrations_create_no_function_or_view_of_their_own() -> None:
    """Only sql/ defines them, so that each has one present text."""
    hand_written = [migration for migration in migrate.list_migrations() if not stamp.is_stamped(migration)]
    found = [
        m.path.name for m in hand_written if re.search(r"^create (or replace )?(function|view)", m.text, re.M | re.I)
    ]
    assert found == []


def test_policies_name_their_table() -> None:
    """`grep 'on rag.documents'` finds every policy of a table: no loop creates them."""
    for migration in migrate.list_migrations():
        policies = re.findall(r"create policy.*", migration.text, re.I)
        assert [line for line in policies if not re.match(r'create policy "[^"]+" on rag\.[a-z_]+ ', line)] == []
