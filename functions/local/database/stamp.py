"""Turns edits of `sql/` into ordinary migrations, because the Supabase CLI has no migrations that repeat.

`sql/` is the source of the functions; a stamped migration is a copy of the changed files, each under a line with its
hash. A stamped migration that is not yet released (not in `supabase/migrations.sha256`) is rewritten, not followed by
another.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from functions.local.database import migrate

FROZEN = migrate.REPOSITORY / "supabase" / "migrations.sha256"
HEADER = re.compile(r"^-- from sql/(?P<name>\S+\.sql) sha256:(?P<hash>[0-9a-f]{64})\n", re.MULTILINE)
HAND = "Stamped from sql/ by `make sql-stamp`. Edit the files there, not here."


@dataclass(frozen=True, slots=True)
class Folders:
    """Where the sources, the migrations and the list of released ones are."""

    functions: Path = migrate.FUNCTIONS
    migrations: Path = migrate.MIGRATIONS
    frozen: Path = FROZEN


def hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def is_stamped(migration: migrate.Migration) -> bool:
    return migration.name.startswith("sql_")


def read_blocks(text: str) -> dict[str, str]:
    """The copies in a stamped migration, by file name, as they stand there."""
    matches = list(HEADER.finditer(text))
    ends = [match.start() for match in matches[1:]] + [len(text)]
    return {match["name"]: _normal(text[match.end() : end]) for match, end in zip(matches, ends, strict=True)}


def read_frozen(folders: Folders) -> dict[str, str]:
    """File name to hash of the released migrations; the file is in the format of `sha256sum`."""
    if not folders.frozen.exists():
        return {}
    lines = folders.frozen.read_text(encoding="utf-8").split("\n")
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines if line)}


def find_changes(folders: Folders, stamps: Iterable[migrate.Migration]) -> dict[str, str]:
    """The files of `sql/` that are not in `stamps` as they are now."""
    newest: dict[str, str] = {}
    for stamp in stamps:
        newest |= read_blocks(stamp.text)
    sources = {path.name: _normal(path.read_text(encoding="utf-8")) for path in sorted(folders.functions.glob("*.sql"))}
    return {name: text for name, text in sources.items() if newest.get(name) != text}


def write_stamp(message: str, folders: Folders | None = None) -> Path | None:
    """Writes the changed files into a migration; returns it, or None when every change is stamped already."""
    folders = folders or Folders()
    migrations = migrate.list_migrations(folders.migrations)
    stamps = [migration for migration in migrations if is_stamped(migration)]
    if not find_changes(folders, stamps):
        return None
    frozen = read_frozen(folders)
    unreleased = [stamp for stamp in stamps if stamp.path.name not in frozen]
    changes = find_changes(folders, [stamp for stamp in stamps if stamp not in unreleased])
    others = [migration for migration in migrations if migration not in unreleased]
    version = _choose_version(unreleased, others)
    target = folders.migrations / f"{version}_sql_{_slug(message)}.sql"
    blocks = [f"-- from sql/{name} sha256:{hash_text(text)}\n{text}" for name, text in changes.items()]
    for stamp in unreleased:
        stamp.path.unlink()
    target.write_text(f"-- {HAND}\n\n" + "\n".join(blocks), encoding="utf-8")
    return target


def _choose_version(unreleased: Sequence[migrate.Migration], others: Sequence[migrate.Migration]) -> str:
    """The old number while it is still the last, so that databases that have it are not confused; else a new one."""
    last = max((migration.version for migration in others), default="")
    if unreleased and unreleased[-1].version > last:
        return unreleased[-1].version
    now = datetime.now(UTC).strftime("%Y%m%d%H%M%S")
    return now if now > last else str(int(last) + 1)


def check(folders: Folders | None = None) -> list[str]:
    """What is wrong with the stamps, in words; nothing when all is well."""
    folders = folders or Folders()
    stamps = [migration for migration in migrate.list_migrations(folders.migrations) if is_stamped(migration)]
    faults = [f"sql/{name} is not stamped: run make sql-stamp" for name in find_changes(folders, stamps)]
    for stamp in stamps:
        blocks = read_blocks(stamp.text)
        for match in HEADER.finditer(stamp.text):
            if hash_text(blocks[match["name"]]) != match["hash"]:
                faults.append(f"{stamp.path.name}: its copy of sql/{match['name']} was edited; edit the source instead")
    return faults + check_frozen(folders)


def check_frozen(folders: Folders | None = None) -> list[str]:
    """Which released migrations were changed or removed."""
    folders = folders or Folders()
    present = _hash_migrations(folders)
    return [
        f"{name} is released and was {'changed' if name in present else 'removed'}: restore it, add a new migration"
        for name, digest in read_frozen(folders).items()
        if present.get(name) != digest
    ]


def freeze(folders: Folders | None = None) -> list[str]:
    """Notes every migration as released: part of making a release. Refuses by returning faults."""
    folders = folders or Folders()
    if faults := check(folders):
        return faults
    lines = [f"{digest}  {name}\n" for name, digest in _hash_migrations(folders).items()]
    folders.frozen.write_text("".join(lines), encoding="utf-8")
    return []


def _hash_migrations(folders: Folders) -> dict[str, str]:
    return {migration.path.name: hash_text(migration.text) for migration in migrate.list_migrations(folders.migrations)}


def _normal(text: str) -> str:
    return text.rstrip("\n") + "\n"


def _slug(message: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", message.lower()).strip("_")[:60] or "changes"


def main(argv: Sequence[str] | None = None) -> int:
    """`stamp -m MESSAGE | --check | --freeze`."""
    parser = argparse.ArgumentParser(prog="stamp", description="Copies changed files of sql/ into a migration.")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("-m", "--message", help="what changed; becomes the name of the migration")
    action.add_argument("--check", action="store_true", help="only say what is wrong")
    action.add_argument("--freeze", action="store_true", help="note all migrations as released")
    options = parser.parse_args(argv)
    if options.message is not None:
        target = write_stamp(options.message)
        print(f"wrote {target.name}" if target else "nothing to stamp")
        return 0
    faults = freeze() if options.freeze else check()
    print("\n".join(faults), file=sys.stderr, end="\n" if faults else "")
    return 1 if faults else 0
