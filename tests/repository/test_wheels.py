"""Only wheels of known hashes are installed, and audits say aloud when they could not be made."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections import defaultdict
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.tags import Tag, compatible_tags, cpython_tags, mac_platforms
from packaging.utils import canonicalize_name, parse_wheel_filename

from functions.local.packaging import audit, packages, wheels
from functions.local.packaging.packages import LAMBDA, PackagingError

PYTHONS = [(3, 11), (3, 12), (3, 13), (3, 14)]
GLIBC = range(36, 16, -1)  # of Debian 12 down to that of manylinux2014
PLATFORMS = {
    "linux-x86_64": [
        *(f"manylinux_2_{minor}_x86_64" for minor in GLIBC),
        *(f"manylinux{name}_x86_64" for name in (2014, 2010, 1)),
    ],
    "linux-aarch64": [*(f"manylinux_2_{minor}_aarch64" for minor in GLIBC), "manylinux2014_aarch64"],
    "darwin-arm64": list(mac_platforms((15, 0), "arm64")),
}


def list_tags() -> dict[tuple[str, str], set[Tag]]:
    """What the listed wheels of each version run on."""
    tags: dict[tuple[str, str], set[Tag]] = defaultdict(set)
    for line in wheels.LIST.read_text(encoding="utf-8").splitlines():
        name, version, _, found = parse_wheel_filename(line.split()[1])
        tags[name, str(version)] |= found
    return tags


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("python", PYTHONS, ids=lambda python: ".".join(map(str, python)))
def test_every_pinned_version_has_a_listed_wheel(python: tuple[int, int], platform: str) -> None:
    """FIX-5"""
    names = PLATFORMS[platform]
    usable = {*cpython_tags(python, platforms=names), *compatible_tags(python, f"cp{python[0]}{python[1]}", names)}
    markers = {"sys_platform": platform.split("-")[0]}
    pins = map(Requirement, wheels.read_requirements(wheels.REPOSITORY / wheels.FILE))
    wanted = {
        (canonicalize_name(pin.name), str(pin.specifier).removeprefix("=="))
        for pin in pins
        if pin.marker is None or pin.marker.evaluate(markers)
    }
    listed = list_tags()
    assert {pin for pin in wanted if not listed[pin] & usable} == set()


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel that the only package index offers."""
    path = tmp_path / "small-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("small.py", "")
        archive.writestr("small-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: small\nVersion: 1.0\n")
        archive.writestr("small-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("small-1.0.dist-info/RECORD", "")
    monkeypatch.setattr(wheels, "LIST", tmp_path / "wheels.sha256")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    return path


def list_wheel(wheel: Path, digest: str) -> None:
    wheels.LIST.write_text(f"{digest}  {wheel.name}\n", encoding="utf-8")


def test_a_wheel_of_the_listed_hash_is_installed(wheel: Path, tmp_path: Path) -> None:
    list_wheel(wheel, hashlib.sha256(wheel.read_bytes()).hexdigest())
    packages.fetch(LAMBDA, tmp_path / "fetched", ["small==1.0"])
    assert (tmp_path / "fetched" / "small.py").exists()


def test_another_wheel_under_the_same_name_is_refused(wheel: Path, tmp_path: Path) -> None:
    list_wheel(wheel, "0" * 64)
    with pytest.raises(PackagingError, match="could not fetch"):
        packages.fetch(LAMBDA, tmp_path / "fetched", ["small==1.0"])


@pytest.mark.parametrize(
    ("pin", "message"), [("small==1.1", "does not have its hashes: run make lock$"), ("small>1", "not pinned")]
)
def test_a_version_without_a_hash_is_not_installed(wheel: Path, tmp_path: Path, pin: str, message: str) -> None:
    list_wheel(wheel, "0" * 64)
    with pytest.raises(PackagingError, match=message):
        packages.fetch(LAMBDA, tmp_path / "fetched", [pin])


def test_an_audit_that_could_not_be_made_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unknown = {"dependencies": [{"name": "fastapi", "skip_reason": "Dependency not found"}]}
    monkeypatch.setattr(audit, "ask_pip_audit", lambda: json.dumps(unknown))
    monkeypatch.setattr(audit, "ask_npm", lambda: json.dumps({"message": "405 Method Not Allowed"}))
    assert audit.main() == 2
    assert capsys.readouterr().err.count("NOT AUDITED") == 2


def test_a_vulnerable_package_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    vulnerable = {"dependencies": [{"name": "jinja2", "version": "3.1.2", "vulns": [{"id": "PYSEC-2024-1"}]}]}
    monkeypatch.setattr(audit, "ask_pip_audit", lambda: json.dumps(vulnerable))
    monkeypatch.setattr(audit, "ask_npm", lambda: json.dumps({"vulnerabilities": {}}))
    assert audit.main() == 1
    assert "jinja2 3.1.2: PYSEC-2024-1" in capsys.readouterr().out
