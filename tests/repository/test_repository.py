"""The repository has the agreed top level, documents that agree with the code, and pinned versions."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from functions.local.packaging import local_models
from functions.runtime.config import Config
from tests.support import service
from tests.support.requirements import REPOSITORY, need_clone

TOP_LEVEL = {"functions", "supabase", "sql", "tests", "serverless.yml", "requirements.txt", "README.md"}
TOP_LEVEL |= {"Makefile", "pyproject.toml", "requirements-local.txt", "package.json", "package-lock.json"}
TOP_LEVEL |= {"LICENSE", "CHANGELOG.md"}

# Written in halves, so that this file does not contain the words it looks for.
FORBIDDEN = ["/" + "work/", "/" + "root/", "/opt/" + "pypi", "bash_" + "jobs"]
FORBIDDEN += ["pypi" + ".org", "python" + "hosted.org", "registry." + "npmjs.org"]

# [text](target) and ![text](target); a target may carry an anchor.
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)

# A file of the repository, named from its root.
PATH = re.compile(r"(?<![\w./])(?:functions|tests|sql|supabase)/[\w./-]+\.(?:py|sql|md|sh|toml|sha256)\b")

PROMISE = re.compile(r"\b[A-Z]{3,5}-[0-9]+\b")
STANDARDS = {"UTF-8", "UTF-16", "SHA-256", "AVX-512"}

REQUIREMENT = re.compile(r"^(?P<requirement>\S+==[0-9][^\s*]*) +# (?P<why>.+)$")


@cache
def tracked() -> list[Path]:
    """Every file that is committed, or would be by `git add --all`."""
    # safe.directory lets git read a clone that belongs to another user
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


def dependencies_of(requirement: Requirement) -> set[str]:
    """The names of the packages that an installed distribution requires here, with the requested extras."""
    wanted = map(Requirement, metadata.requires(requirement.name) or [])
    extras = ["", *requirement.extras]
    return {
        canonicalize_name(need.name)
        for need in wanted
        if not need.marker or any(need.marker.evaluate({"extra": extra}) for extra in extras)
    }


def test_the_top_level_holds_the_agreed_files_and_no_others() -> None:
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
def test_every_package_and_its_dependencies_are_pinned(name: str) -> None:
    pinned = pins(name)
    assert {need for requirement in pinned.values() for need in dependencies_of(requirement)} <= pinned.keys()


def test_the_installed_versions_are_the_pinned_ones() -> None:
    pinned = [*pins("tests/requirements.txt").values(), Requirement(local_models.MINILM_REQUIREMENT)]
    wrong = {p.name: metadata.version(p.name) for p in pinned if not p.specifier.contains(metadata.version(p.name))}
    assert not wrong


def test_the_lock_file_names_no_host_to_install_from() -> None:
    packages = json.loads((REPOSITORY / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert {"resolved"} & {key for package in packages.values() for key in package} == set()


def anchors_of(text: str) -> set[str]:
    """The anchors that GitHub gives to the headings of a Markdown text."""
    headings = re.findall(r"^#+ +(.+?) *$", CODE_BLOCK.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def is_broken(source: Path, link: str) -> bool:
    """Whether a relative link of a document leads to no tracked file, or to no heading of it."""
    name, _, anchor = link.partition("#")
    target = (source.parent / name).resolve() if name else source
    if target not in tracked() and not (target.is_dir() and any(target in path.parents for path in tracked())):
        return True
    return bool(anchor) and anchor not in anchors_of(target.read_text(encoding="utf-8"))


def test_every_relative_link_leads_to_a_file_and_a_heading() -> None:
    documents = {
        path: CODE_BLOCK.sub("", path.read_text(encoding="utf-8")) for path in tracked() if path.suffix == ".md"
    }
    links = [(path, link) for path, text in documents.items() for link in LINK.findall(text) if "://" not in link]
    assert [(str(path.relative_to(REPOSITORY)), link) for path, link in links if is_broken(path, link)] == []
    assert len(links) > 20


def test_a_link_to_nothing_is_broken() -> None:
    readme = REPOSITORY / "README.md"
    assert not is_broken(readme, "functions/API.md#routes")
    assert is_broken(readme, "functions/API.md#no-such-heading")
    assert is_broken(readme, "functions/NOTHING.md")


def test_every_path_that_a_document_names_exists() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in tracked() if path.suffix == ".md"}
    named = {name for text in texts.values() for name in PATH.findall(text)}
    assert {name for name in named if not (REPOSITORY / name).is_file()} == set()
    assert len(named) > 5


def test_the_readme_is_short_and_begins_with_the_two_commands() -> None:
    """FIX-5"""
    lines = (REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150
    assert {"make run", "make test"} <= {line.split("  ")[0] for line in lines[:20]}


def test_the_api_document_names_every_route() -> None:
    text = (REPOSITORY / "functions" / "API.md").read_text(encoding="utf-8")
    routes = {path.replace("/{proxy+}", "") for name in service.functions() for _, path in service.routes(name)}
    assert {route for route in routes - {"/", "/static", "/v1"} if route not in text} == set()


def promises_named_in(path: Path) -> set[str]:
    """The ids of promises in the docstrings and comments of a module."""
    source = path.read_text(encoding="utf-8")
    docstrings = [
        ast.get_docstring(node) or ""
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    comments = re.findall(r"(?:^|\s)# .*$", source, re.MULTILINE)
    return set(PROMISE.findall("\n".join(docstrings + comments))) - STANDARDS


def test_every_promise_that_a_test_names_is_explained() -> None:
    text = (REPOSITORY / "tests" / "README.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"^\| \*\*([A-Z]+-[0-9]+)\*\* \| \S", text, re.MULTILINE))
    named = {promise for path in tracked() if path.suffix == ".py" for promise in promises_named_in(path)}
    assert named - explained == set()
    assert len(named) > 50


def test_make_help_lists_every_target() -> None:
    text = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    public = {target for line in re.findall(r"^\.PHONY: (.+)$", text, re.MULTILINE) for target in line.split()}
    listed = set(re.findall(r"^([a-z-]+):.*## ", text, re.MULTILINE))
    assert {target for target in public if not target.startswith("installed-")} == listed
