"""The repository itself: what lies at its top, what it must not say, and that every version is pinned."""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from functions.local.packaging import install
from functions.runtime.config import Config
from tests.support.requirements import REPOSITORY, need_clone

TOP_LEVEL = {"functions", "supabase", "sql", "tests", "serverless.yml", "requirements.txt", "README.md"}
TOP_LEVEL |= {"Makefile", "pyproject.toml", "requirements-local.txt", "package.json", "package-lock.json"}
TOP_LEVEL |= {"LICENSE", "CHANGELOG.md"}

# Written in halves, so that this file does not hold what it looks for.
FORBIDDEN = ["/" + "work/", "/" + "root/", "/opt/" + "pypi", "bash_" + "jobs"]
FORBIDDEN += ["pypi" + ".org", "python" + "hosted.org", "registry." + "npmjs.org"]

REQUIREMENT = re.compile(r"^(?P<requirement>\S+==[0-9][^\s*]*) +# (?P<why>.+)$")


@cache
def tracked() -> list[Path]:
    """Every file that is or would be committed."""
    # safe.directory: a clone that belongs to another user may still be read
    command = ["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=need_clone(), capture_output=True, text=True, check=True).stdout
    return [path for name in listed.split("\0") if name and (path := REPOSITORY / name).is_file()]


def pins(name: str) -> dict[str, Requirement]:
    """The requirements of a file and of those it includes, by canonical name."""
    path = REPOSITORY / name
    found: dict[str, Requirement] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            found |= pins(str((path.parent / line[3:]).resolve().relative_to(REPOSITORY)))
        elif line and not line.startswith("#"):
            match = REQUIREMENT.match(line)
            assert match, f"{name}: not pinned, or without a reason: {line}"
            requirement = Requirement(match["requirement"])
            if requirement.marker is None or requirement.marker.evaluate():
                found[canonicalize_name(requirement.name)] = requirement
    return found


def needs(requirement: Requirement) -> set[str]:
    """What an installed distribution needs here, with the extras asked for."""
    wanted = map(Requirement, metadata.requires(requirement.name) or [])
    extras = ["", *requirement.extras]
    return {
        canonicalize_name(need.name)
        for need in wanted
        if not need.marker or any(need.marker.evaluate({"extra": extra}) for extra in extras)
    }


def test_the_top_level_is_as_agreed() -> None:
    """FIX-2"""
    names = {path.relative_to(REPOSITORY).parts[0] for path in tracked()}
    assert {name for name in names if not name.startswith(".")} <= TOP_LEVEL


def test_no_file_names_a_machine_or_a_package_registry() -> None:
    contents = {path: path.read_bytes() for path in tracked()}
    found = [(str(p), word) for p, content in contents.items() for word in FORBIDDEN if word.encode() in content]
    assert not found


def test_the_environment_example_documents_every_variable() -> None:
    """FIX-7"""
    text = (REPOSITORY / ".env.example").read_text(encoding="utf-8")
    documented = set(re.findall(r"^#? ?([A-Z][A-Z0-9_]*)=", text, re.MULTILINE))
    assert {name.upper() for name in Config.model_fields} <= documented


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-local.txt", "tests/requirements.txt"])
def test_every_package_and_what_it_needs_is_pinned(name: str) -> None:
    pinned = pins(name)
    assert {need for requirement in pinned.values() for need in needs(requirement)} <= pinned.keys()


def test_the_installed_versions_are_the_pinned_ones() -> None:
    pinned = [*pins("tests/requirements.txt").values(), Requirement(install.WEIGHTS)]
    wrong = {p.name: metadata.version(p.name) for p in pinned if not p.specifier.contains(metadata.version(p.name))}
    assert not wrong


def test_the_lock_file_names_no_host_to_install_from() -> None:
    packages = json.loads((REPOSITORY / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert {"resolved"} & {key for package in packages.values() for key in package} == set()


def test_make_help_lists_every_target() -> None:
    text = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    public = {target for line in re.findall(r"^\.PHONY: (.+)$", text, re.MULTILINE) for target in line.split()}
    listed = set(re.findall(r"^([a-z-]+):.*## ", text, re.MULTILINE))
    assert {target for target in public if not target.startswith("installed-")} == listed
