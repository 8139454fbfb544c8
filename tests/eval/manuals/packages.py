"""Fetches manuals, which their licences (GPL, GFDL) allow to copy, from pinned Debian packages."""

from __future__ import annotations

import gzip
import hashlib
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final


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

    def is_copy(self, pdf: bytes) -> bool:
        return hashlib.sha256(pdf).hexdigest() == self.sha256

    def fetch(self) -> bytes:
        """The PDF. Raises UnavailableError."""
        with tempfile.TemporaryDirectory(prefix="ibid-manuals-") as folder:
            run("apt-get", "download", f"{self.package}={self.version}", folder=folder)
            (package,) = Path(folder).glob("*.deb")
            run("dpkg-deb", "--extract", package.name, ".", folder=folder)
            stored = Path(folder, self.path).read_bytes()
        pdf = gzip.decompress(stored) if self.path.endswith(".gz") else stored
        if not self.is_copy(pdf):
            raise UnavailableError(f"{self.package} {self.version} holds another {self.file_name}")
        return pdf


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


def run(*command: str, folder: str) -> None:
    """Runs a command in `folder`. Raises UnavailableError with what it printed."""
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as exc:
        reason = getattr(exc, "stderr", None) or str(exc)
        raise UnavailableError(f"{' '.join(command)}: {reason.strip()}") from exc
