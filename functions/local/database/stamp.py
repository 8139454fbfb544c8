"""Copies edits of `sql/` into ordinary migrations, because the Supabase CLI has no migrations that run again.

`sql/` is the source of the functions and views. A stamped migration holds a copy of every file that has changed since
the last stamp, each under a line with its hash. `supabase/migrations.sha256` freezes migrations: a file in that list
never changes, so every change is a new migration, and every database receives it.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from functions.local.database import migrate

FROZEN = migrate.REPOSITORY / "supabase" / "migrations.sha256"
HEADER = re.compile(r"^-- from sql/(?P<name>\S+\.sql) sha256:(?P<hash>[0-9a-f]{64})\n", re.MULTILINE)
# The first set replaced the migrations from the first of these versions up to the second, before the first release.
REPLACED = (migrate.FIRST_BEFORE_SQUASH, "20261122220001")
NOTICE = "Stamped from sql/ by `make sql-stamp`. Edit the files there, not here."


@dataclass(frozen=True, slots=True)
class Folders:
    """Where the sources, the migrations and the list of frozen migrations are."""

    functions: Path = migrate.FUNCTIONS
    migrations: Path = migrate.MIGRATIONS
    frozen: Path = FROZEN


def is_stamped(migration: migrate.Migration) -> bool:
    return migration.name.startswith("sql_")


def read_blocks(text: str) -> dict[str, str]:
    """The copies in a stamped migration, by file name."""
    matches = list(HEADER.finditer(text))
    ends = [match.start() for match in matches[1:]] + [len(text)]
    return {match["name"]: _normal(text[match.end() : end]) for match, end in zip(matches, ends, strict=True)}


def read_frozen(folders: Folders) -> dict[str, str]:
    """File name to hash; the list has the format of `sha256sum`."""
    if not folders.frozen.exists():
        return {}
    return _read_hashes(folders.frozen.read_text(encoding="utf-8").splitlines())


def find_changes(folders: Folders | None = None) -> dict[str, str]:
    """The files of `sql/` whose present text is not in their newest stamp."""
    folders = folders or Folders()
    newest: dict[str, str] = {}
    for stamp in filter(is_stamped, migrate.list_migrations(folders.migrations)):
        newest |= read_blocks(stamp.text)
    sources = {path.name: _normal(path.read_text(encoding="utf-8")) for path in sorted(folders.functions.glob("*.sql"))}
    return {name: text for name, text in sources.items() if newest.get(name) != text}


def write_stamp(message: str, folders: Folders | None = None) -> Path | None:
    """Writes the changed files into a new, frozen migration; returns it, or None when every change is stamped."""
    folders = folders or Folders()
    changes = find_changes(folders)
    if not changes:
        return None
    target = folders.migrations / f"{_choose_version(folders)}_sql_{_slug(message)}.sql"
    blocks = [f"-- from sql/{name} sha256:{migrate.hash_text(text)}\n{text}" for name, text in changes.items()]
    target.write_text(f"-- {NOTICE}\n\n" + "\n".join(blocks), encoding="utf-8")
    freeze(folders)
    return target


def _choose_version(folders: Folders) -> str:
    """The present time, or the number after the last migration where that one is later."""
    last = max((migration.version for migration in migrate.list_migrations(folders.migrations)), default="")
    now = datetime.now(UTC).strftime("%Y%m%d%H%M%S")
    return now if now > last else str(int(last) + 1)


def freeze(folders: Folders | None = None) -> list[str]:
    """Adds every migration that is not frozen yet to the list, and returns their names; existing lines stay."""
    folders = folders or Folders()
    frozen = read_frozen(folders)
    added = {name: digest for name, digest in _hash_migrations(folders).items() if name not in frozen}
    lines = [f"{digest}  {name}\n" for name, digest in sorted((frozen | added).items())]
    folders.frozen.write_text("".join(lines), encoding="utf-8")
    return list(added)


def check(folders: Folders | None = None) -> list[str]:
    """What is wrong with the migrations, one sentence each; empty when all is well."""
    folders = folders or Folders()
    faults = [f"sql/{name} is not stamped: run make sql-stamp" for name in find_changes(folders)]
    for stamp in filter(is_stamped, migrate.list_migrations(folders.migrations)):
        blocks = read_blocks(stamp.text)
        for match in HEADER.finditer(stamp.text):
            if migrate.hash_text(blocks[match["name"]]) != match["hash"]:
                faults.append(f"{stamp.path.name}: its copy of sql/{match['name']} was edited; edit the source instead")
    return faults + check_frozen(folders)


def check_frozen(folders: Folders | None = None) -> list[str]:
    """Which migrations are not frozen, and which frozen ones were changed or removed, with their line or without."""
    folders = folders or Folders()
    listed, present = read_frozen(folders), _hash_migrations(folders)
    frozen = listed | _read_committed(folders)  # a line that was edited together with its file is found in the history
    faults = [
        f"{name} is frozen and was {'changed' if name in present else 'removed'}: restore it, add a new migration"
        for name, digest in sorted(frozen.items())
        if not present.get(name) == listed.get(name) == digest
    ]
    unlisted = sorted(present.keys() - frozen.keys())
    return faults + [f"{name} is not frozen: run python -m functions.local stamp --freeze" for name in unlisted]


def _read_committed(folders: Folders) -> dict[str, str]:
    """Every line that the list has had in the first-parent history of this clone; empty outside of a clone."""
    command = ["git", "log", "--first-parent", "-m", "-p", "--reverse", "--format=", "--", folders.frozen.name]
    try:
        done = subprocess.run(command, cwd=folders.frozen.parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return {}
    added = re.findall(r"^\+([0-9a-f]{64}  \S+)$", done.stdout, re.MULTILINE)
    hashes = _read_hashes(reversed(added))  # of two lines for one name the first counts
    return {name: digest for name, digest in hashes.items() if not REPLACED[0] <= name < REPLACED[1]}


def _read_hashes(lines: Iterable[str]) -> dict[str, str]:
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines if line)}


def _hash_migrations(folders: Folders) -> dict[str, str]:
    return {migration.path.name: migration.sha256 for migration in migrate.list_migrations(folders.migrations)}


def _normal(text: str) -> str:
    return text.rstrip("\n") + "\n"


def _slug(message: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", message.lower()).strip("_")[:60] or "changes"


def main(argv: Sequence[str] | None = None) -> int:
    """`stamp -m MESSAGE | --check | --freeze`."""
    parser = argparse.ArgumentParser(prog="stamp", description="Copies changed files of sql/ into a new migration.")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("-m", "--message", help="what changed; becomes the name of the migration")
    action.add_argument("--check", action="store_true", help="only say what is wrong")
    action.add_argument("--freeze", action="store_true", help="add new migrations to supabase/migrations.sha256")
    options = parser.parse_args(argv)
    if options.message is not None:
        target = write_stamp(options.message)
        print(f"wrote {target.name}" if target else "nothing to stamp")
        return 0
    if options.freeze:
        print("\n".join(f"froze {name}" for name in freeze()) or "nothing to freeze")
        return 0
    faults = check()
    print("\n".join(faults), file=sys.stderr, end="\n" if faults else "")
    return 1 if faults else 0
