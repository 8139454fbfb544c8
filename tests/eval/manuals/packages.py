"""Fetches the manuals, which their licences (GPL, GFDL) allow to copy, from pinned Debian packages."""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

QUESTIONS: Final = Path(__file__).parent
FILES: Final = ("queries.jsonl", "near_misses.jsonl")


class UnavailableError(Exception):
    """A package cannot be fetched here, or holds another file than the one whose pages the questions name."""


@dataclass(frozen=True, slots=True)
class Manual:
    """A PDF inside a package; `path` may be that of a gzipped PDF, and `sha256` is that of the PDF itself."""

    doc_id: str
    package: str
    version: str
    path: str
    sha256: str

    @property
    def file_name(self) -> str:
        return Path(self.path).name.removesuffix(".gz")


MANUALS: Final = (
    Manual(
        "debian-policy",
        "debian-policy",
        "4.6.2.0",
        "usr/share/doc/debian-policy/policy.pdf.gz",
        "220f9366d6deb3984e84236f02f04bdd6275d6fe7b5587acd6c689dfeb99020f",
    ),
    Manual(
        "bash-reference",
        "bash-doc",
        "5.2.15-2",
        "usr/share/doc/bash/bashref.pdf",
        "104971d389c0b9b7a261b0b3070a53b0d8cce6db1ffddefcc8423ddda92acd87",
    ),
    Manual(
        "debian-reference-fr",
        "debian-reference-fr",
        "2.100",
        "usr/share/debian-reference/debian-reference.fr.pdf",
        "1abd3ec78ab9b8b291c943c710cbf697e949495efcd754e09970e3394920682a",
    ),
    Manual(
        "developers-reference-fr",
        "developers-reference-fr",
        "12.18",
        "usr/share/developers-reference/fr/developers-reference.pdf",
        "f385de2f7d6b31027d085ad6187f8101d00f14c581fff06fd7aff40078dd5646",
    ),
    Manual(
        "eyes17-fr",
        "eyes17-manuals-fr",
        "5.1.2+repack-1",
        "usr/share/doc/eyes17/fr/eyes17.pdf.gz",
        "9cc2e97baba73d9924ba5fe5dbb5c3a527e20cccca68980e401d9c9690106fd3",
    ),
)


def write_set(folder: Path, manuals: Sequence[Manual] = MANUALS) -> None:
    """Makes `folder` a question set: the manuals, fetched once, their `corpus.jsonl`, and links to the questions.

    Raises UnavailableError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for manual in manuals:
        target = folder / manual.file_name
        if not target.is_file() or not _is_pinned(target.read_bytes(), manual):
            target.write_bytes(_fetch(manual))
    rows = [{"doc_id": manual.doc_id, "path": manual.file_name} for manual in manuals]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(QUESTIONS / name)


def _is_pinned(pdf: bytes, manual: Manual) -> bool:
    return hashlib.sha256(pdf).hexdigest() == manual.sha256


def _fetch(manual: Manual) -> bytes:
    with tempfile.TemporaryDirectory(prefix="ibid-manuals-") as folder:
        _run("apt-get", "download", f"{manual.package}={manual.version}", folder=folder)
        (package,) = Path(folder).glob("*.deb")
        _run("dpkg-deb", "--extract", package.name, ".", folder=folder)
        stored = Path(folder, manual.path).read_bytes()
    pdf = gzip.decompress(stored) if manual.path.endswith(".gz") else stored
    if not _is_pinned(pdf, manual):
        raise UnavailableError(f"{manual.package} {manual.version} holds another {manual.file_name}")
    return pdf


def _run(*command: str, folder: str) -> None:
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as exc:
        reason = getattr(exc, "stderr", None) or str(exc)
        raise UnavailableError(f"{' '.join(command)}: {reason.strip()}") from exc
