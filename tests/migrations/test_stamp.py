"""Stamping in temporary folders; test_stamped.py checks the repository's own stamps."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from functions.local.database import stamp

CHANGED_AND_REMOVED = [
    "20200101000000_tables.sql is frozen and was changed: restore it, add a new migration",
    "20200102000000_more.sql is frozen and was removed: restore it, add a new migration",
]


@pytest.fixture
def folders(tmp_path: Path) -> stamp.Folders:
    folders = stamp.Folders(tmp_path / "sql", tmp_path / "migrations", tmp_path / "migrations.sha256")
    folders.functions.mkdir()
    folders.migrations.mkdir()
    (folders.migrations / "20200101000000_tables.sql").write_text("create table t ();\n")
    (folders.functions / "10_a.sql").write_text("select 'a';\n")
    (folders.functions / "20_b.sql").write_text("select 'b';\n")
    return folders


def commit(folders: stamp.Folders) -> None:
    """Commits everything in the folders, and makes them a git repository first if they are none."""
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    for command in (["init", "-q"], ["add", "--all"], [*author, "commit", "-q", "--message", "a change"]):
        subprocess.run(["git", *command], cwd=folders.frozen.parent, check=True)


def test_a_stamp_contains_the_files_under_their_hashes(folders: stamp.Folders) -> None:
    target = stamp.write_stamp("First, and best!", folders)
    assert target is not None
    assert target.name[14:] == "_sql_first_and_best.sql"
    digest = "8245b0e3f470a32c524d7fff21d8559e814022d9d205a36927c97c5fc4f4ef23"  # printf "select 'a';\n" | sha256sum
    assert f"-- from sql/10_a.sql sha256:{digest}\nselect 'a';\n" in target.read_text()
    assert stamp.check(folders) == []


def test_stamping_writes_nothing_when_nothing_changed(folders: stamp.Folders) -> None:
    stamp.write_stamp("one", folders)
    assert stamp.write_stamp("two", folders) is None


def test_an_edit_is_reported_until_it_is_stamped(folders: stamp.Folders) -> None:
    stamp.write_stamp("one", folders)
    (folders.functions / "10_a.sql").write_text("select 'A';\n")
    assert stamp.check(folders) == ["sql/10_a.sql is not stamped: run make sql-stamp"]


def test_a_stamp_is_always_a_new_file_with_the_changes_alone(folders: stamp.Folders) -> None:
    first = stamp.write_stamp("one", folders)
    assert first is not None
    before = first.read_text()
    (folders.functions / "10_a.sql").write_text("select 'A';\n")
    second = stamp.write_stamp("two", folders)
    assert second is not None
    assert second.name > first.name
    assert first.read_text() == before
    assert stamp.read_blocks(second.read_text()) == {"10_a.sql": "select 'A';\n"}
    assert stamp.check(folders) == []


def test_a_stamp_comes_after_migrations_of_a_later_date(folders: stamp.Folders) -> None:
    (folders.migrations / "29990101000000_later.sql").write_text("create table u ();\n")
    target = stamp.write_stamp("two", folders)
    assert target is not None
    assert target.name == "29990101000001_sql_two.sql"


def test_an_edited_copy_in_a_stamp_is_reported(folders: stamp.Folders) -> None:
    target = stamp.write_stamp("one", folders)
    assert target is not None
    target.write_text(target.read_text().replace("'b'", "'edited'"))
    assert f"{target.name}: its copy of sql/20_b.sql was edited; edit the source instead" in stamp.check(folders)


def test_stamping_freezes_every_migration(folders: stamp.Folders) -> None:
    target = stamp.write_stamp("one", folders)
    assert target is not None
    assert list(stamp.read_frozen(folders)) == ["20200101000000_tables.sql", target.name]


def test_freezing_leaves_existing_lines_as_they_are(folders: stamp.Folders) -> None:
    stamp.freeze(folders)
    before = folders.frozen.read_text()
    (folders.migrations / "20200101000000_tables.sql").write_text("create table other ();\n")
    (folders.migrations / "20200102000000_more.sql").write_text("select 1;\n")
    assert stamp.freeze(folders) == ["20200102000000_more.sql"]
    assert folders.frozen.read_text().startswith(before)


def test_a_migration_that_is_not_frozen_is_reported(folders: stamp.Folders) -> None:
    stamp.write_stamp("one", folders)
    (folders.migrations / "20200102000000_more.sql").write_text("select 1;\n")
    assert stamp.check(folders) == [
        "20200102000000_more.sql is not frozen: run python -m functions.local stamp --freeze"
    ]


def test_frozen_migrations_stay_as_they_are(folders: stamp.Folders) -> None:
    stamp.write_stamp("one", folders)
    (folders.migrations / "20200102000000_more.sql").write_text("select 1;\n")
    stamp.freeze(folders)
    (folders.migrations / "20200101000000_tables.sql").write_text("create table other ();\n")
    (folders.migrations / "20200102000000_more.sql").unlink()
    assert stamp.check_frozen(folders) == CHANGED_AND_REMOVED


def test_a_frozen_migration_may_not_change_together_with_its_line(folders: stamp.Folders) -> None:
    """Not even in a later commit: every line that the list has had in this branch must still be there."""
    (folders.migrations / "20200102000000_more.sql").write_text("select 1;\n")
    stamp.write_stamp("one", folders)
    commit(folders)
    (folders.migrations / "20200101000000_tables.sql").write_text("create table other ();\n")
    (folders.migrations / "20200102000000_more.sql").unlink()
    folders.frozen.unlink()
    stamp.freeze(folders)
    assert stamp.check(folders) == CHANGED_AND_REMOVED
    commit(folders)
    assert stamp.check(folders) == CHANGED_AND_REMOVED
