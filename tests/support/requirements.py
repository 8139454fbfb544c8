"""Requirements of some tests beyond Python packages.

If one is missing, its tests are skipped with a message; with IBID_REQUIRE_ALL=1 they fail.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def requires_all() -> bool:
    return os.environ.get("IBID_REQUIRE_ALL") == "1"


def missing(what: str) -> NoReturn:
    """Skips the test with a message, or fails it if IBID_REQUIRE_ALL=1."""
    if requires_all():
        pytest.fail(f"IBID_REQUIRE_ALL=1, and this is missing: {what}", pytrace=False)
    pytest.skip(f"MISSING: {what}")  # without it, all other tests still run


def report_missing(what: str) -> None:
    """Does for programs other than tests what `missing` does: prints what is missing, or exits."""
    if requires_all():
        sys.exit(f"IBID_REQUIRE_ALL=1, and this is missing: {what}")
    print(f"MISSING: {what}", file=sys.stderr)


def need_program(*names: str) -> str:
    """The path of the first program found."""
    program = next(filter(None, map(shutil.which, names)), None)
    return program or missing(f"the program {' or '.join(names)}")


def need_chromium() -> str:
    return need_program("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def need_tesseract() -> str:
    return need_program("tesseract")


def need_node() -> str:
    return need_program("node")


def need_osls() -> str:
    """The packaging tool, which `make test` installs if npm exists."""
    need_node()
    program = shutil.which("osls", path=str(REPOSITORY / "node_modules" / ".bin"))
    return program or missing("osls in node_modules (npm ci)")


def need_axe() -> Path:
    """The script with the rules of accessibility, which `make test` installs if npm exists."""
    script = REPOSITORY / "node_modules" / "axe-core" / "axe.min.js"
    return script if script.exists() else missing("axe-core in node_modules (npm ci)")


def need_clone() -> Path:
    """The repository as a git work tree, for tests that list tracked files."""
    need_program("git")
    return REPOSITORY if (REPOSITORY / ".git").exists() else missing("a git clone; this is a bare copy")


def _need_folder(variable: str, default: str, name: str) -> Path:
    root = Path(os.environ.get(variable) or REPOSITORY / default)
    folder = root / name
    if folder.exists():
        return folder
    if variable not in os.environ and not root.exists():
        pytest.skip(f"MISSING: {variable} is not set")  # data outside the repository, which no set-up can install
    missing(f"{variable}: no {name!r} in {root}")


def need_eval_data(name: str = ".") -> Path:
    return _need_folder("IBID_EVAL_DATA", "../shared/eval", name)


def need_corpus(name: str = ".") -> Path:
    return _need_folder("IBID_CORPUS_DATA", "../shared/corpus", name)


def need_permission_to_install() -> None:
    """Runs tests that install the project from scratch, which needs minutes and a network, only if allowed.

    IBID_TEST_INSTALL=1 allows them, 0 skips them.
    """
    permission = os.environ.get("IBID_TEST_INSTALL")
    if permission == "0":
        pytest.skip("IBID_TEST_INSTALL=0")  # without a network or time, set it to 0
    if permission != "1" and not requires_all():
        missing("IBID_TEST_INSTALL=1, permission to install the project from scratch")


def need_root(purpose: str) -> None:
    if os.geteuid() != 0:
        missing(f"root, to {purpose}")
