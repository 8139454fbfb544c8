"""Stamping on folders of its own; the repository's own stamps are checked in test_stamped.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from functions.local.database import stamp


@pytest.fixture
def folders(tmp_path: Path) -> stamp.Folders:
    found = stamp.Folders(tmp_path / "sql", tmp_path / "migrations", tmp_path / "migrations.sha256")
    found.functions.mkdir()
    found.migrations.mkdir()
    (found.migrations / "20200101000000_tables.sql").write_text("create table t ();\n")
    (found.functions / "10_a.sql").write_text("select 'a';\n")
    (found.functions / "20_b.sql").write_text("select 'b';\n")
    return found


def stamped(folders: stamp.Folders) -> list[dict[str, str]]:
    """What each stamped migration holds, oldest first."""
    return [stamp.read_blocks(path.read_text()) for path in sorted(folders.migrations.glob("*_sql_*.sql"))]


def test_holds_the_files_under_their_hashes(folders: stamp.Folders) -> None:
    target = stamp.write_stamp("First, and best!", folders)
    assert target is not None
    assert target.name[14:] == "_sql_first_and_best.sql"
    digest = "8245b0e3f470a32c524d7fff21d8559e814022d9d205a36927c97c5fc4f4ef23"  # printf "select 'a';\n" | sha256sum
    assert f"-- from sql/10_a.sql sha256:{digest}\nselect 'a';\n" in target.read_text()
    assert stamp.check(folders) == []


def test_does_nothing_when_nothing_changed(folders: stamp.Folders) -> None:
    stamp.write_stamp("one", folders)
    assert stamp.write_stamp("two", folders) is None


def test_an_edit_is_noticed_until_it_is_stamped(folders: stamp.Folders) -> None:
    stamp.write_stamp("one", folders)
    (folders.functions / "10_a.sql").write_text("select 'A';\n")
    assert stamp.check(folders) == ["sql/10_a.sql is not stamped: run make sql-stamp"]


def test_an_unreleased_stamp_is_rewritten_under_its_number(folders: stamp.Folders) -> None:
    first = stamp.write_stamp("one", folders)
    (folders.functions / "10_a.sql").write_text("select 'A';\n")
    second = stamp.write_stamp("two", folders)
    assert first is not None
    assert second is not None
    assert second.name == first.name.replace("one", "two")
    assert stamped(folders) == [{"10_a.sql": "select 'A';\n", "20_b.sql": "select 'b';\n"}]


def test_a_rewritten_stamp_moves_behind_newer_migrations(folders: stamp.Folders) -> None:
    stamp.write_stamp("one", folders)
    (folders.migrations / "29990101000000_later.sql").write_text("create table u ();\n")
    (folders.functions / "10_a.sql").write_text("select 'A';\n")
    second = stamp.write_stamp("two", folders)
    assert second is not None
    assert second.name == "29990101000001_sql_two.sql"
    assert len(stamped(folders)) == 1


def test_a_released_stamp_is_followed_by_the_changes_only(folders: stamp.Folders) -> None:
    stamp.write_stamp("one", folders)
    assert stamp.freeze(folders) == []
    (folders.functions / "10_a.sql").write_text("select 'A';\n")
    stamp.write_stamp("two", folders)
    assert stamped(folders) == [
        {"10_a.sql": "select 'a';\n", "20_b.sql": "select 'b';\n"},
        {"10_a.sql": "select 'A';\n"},
    ]
    assert stamp.check(folders) == []


def test_a_copy_that_was_edited_is_noticed(folders: stamp.Folders) -> None:
    target = stamp.write_stamp("one", folders)
    assert target is not None
    target.write_text(target.read_text().replace("'b'", "'edited'"))
    assert f"{target.name}: its copy of sql/20_b.sql was edited; edit the source instead" in stamp.check(folders)


def test_released_migrations_stay_as_they_are(folders: stamp.Folders) -> None:
    stamp.write_stamp("one", folders)
    (folders.migrations / "20200102000000_more.sql").write_text("select 1;\n")
    stamp.freeze(folders)
    (folders.migrations / "20200101000000_tables.sql").write_text("create table other ();\n")
    (folders.migrations / "20200102000000_more.sql").unlink()
    assert stamp.check_frozen(folders) == [
        "20200101000000_tables.sql is released and was changed: restore it, add a new migration",
        "20200102000000_more.sql is released and was removed: restore it, add a new migration",
    ]


def test_a_release_with_unstamped_edits_is_refused(folders: stamp.Folders) -> None:
    assert stamp.freeze(folders) == [
        "sql/10_a.sql is not stamped: run make sql-stamp",
        "sql/20_b.sql is not stamped: run make sql-stamp",
    ]
    assert not folders.frozen.exists()
