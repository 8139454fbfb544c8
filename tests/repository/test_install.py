"""The installation behind `make run` and `make test`, with real interpreters and without a network."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from functions.local.packaging import install
from tests.support.requirements import REPOSITORY, need_program


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the requirement files, in a folder with a space in its name."""
    copy = tmp_path_factory.mktemp("a copy")
    (copy / "tests").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(install, "REPOSITORY", copy)
        patch.setattr(install, "VENV", copy / ".venv")
        patch.setattr(install, "PYTHON", copy / ".venv" / "bin" / "python")
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("EMBEDDING_MODEL", "a-remote-model")
        yield copy


@pytest.fixture(autouse=True)
def requirements(copy: Path) -> None:
    for name in install.SETS["test"]:
        (copy / name).write_text("no-such-package==0\n")


@pytest.fixture(scope="module")
def environment(copy: Path) -> None:
    """The environment of the copy, created from one that has no pip."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(copy / ".venv")], check=True)
    assert not install.is_usable()
    install.create_environment()
    assert install.is_usable()


def fake_python(folder: Path, script: str) -> str:
    program = folder / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.usefixtures("environment")
def test_a_second_start_installs_nothing() -> None:
    """FIX-5"""
    install.stamp_file("run").write_text(install.compute_stamp("run"))
    assert install.main("run") == 0


@pytest.mark.usefixtures("environment")
def test_a_changed_requirement_is_installed(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install.stamp_file("run").write_text(install.compute_stamp("run"))
    (copy / "requirements.txt").write_text("another-package==0\n")
    assert install.main("run") == 1
    assert "could not be installed" in capsys.readouterr().err


def test_a_changed_test_requirement_does_not_reinstall_the_server(copy: Path) -> None:
    run, test = install.compute_stamp("run"), install.compute_stamp("test")
    (copy / "tests" / "requirements.txt").write_text("another-package==0\n")
    assert install.compute_stamp("run") == run
    assert install.compute_stamp("test") != test


def test_a_python_without_venv_is_reported_with_the_missing_package(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(install, "PYTHON", tmp_path / "none")
    monkeypatch.setattr(sys, "executable", fake_python(tmp_path, "echo 'ensurepip is not available'; exit 1"))
    assert install.main("run") == 1
    assert "apt-get install python3" in capsys.readouterr().err


def test_make_reports_a_python_that_is_too_old_or_missing(tmp_path: Path) -> None:
    (tmp_path / "Makefile").symlink_to(REPOSITORY / "Makefile")
    command = [need_program("make"), "run", f"IBID_PYTHON={fake_python(tmp_path, 'exit 1')}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"no Python 3.11 or newer found at IBID_PYTHON={tmp_path}/python" in done.stderr
