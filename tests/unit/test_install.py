"""The set-up behind `make run` and `make test`, with real interpreters and without a network."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from functions.local import install
from tests.requirements import REPOSITORY, need_program


@pytest.fixture
def bare_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of requirement files only, in a folder with a space in its name; its pins cannot be installed."""
    copy = tmp_path / "a copy"
    (copy / "tests").mkdir(parents=True)
    for name in install.SETS["test"]:
        (copy / name).write_text("no-such-package==0 # nowhere\n")
    monkeypatch.setattr(install, "REPOSITORY", copy)
    monkeypatch.setattr(install, "VENV", copy / ".venv")
    monkeypatch.setattr(install, "PYTHON", copy / ".venv" / "bin" / "python")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return copy


def fake_python(folder: Path, script: str) -> str:
    program = folder / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


def test_a_second_start_installs_nothing(bare_copy: Path) -> None:
    """FIX-5"""
    install.make_environment()
    install.stamp_file("run").write_text(install.stamp("run"))
    assert install.main("run") == 0


def test_a_changed_requirement_is_installed(bare_copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install.make_environment()
    install.stamp_file("run").write_text(install.stamp("run"))
    (bare_copy / "requirements.txt").write_text("another-package==0 # nowhere\n")
    assert install.main("run") == 1
    assert "could not be installed" in capsys.readouterr().err


def test_what_only_tests_need_does_not_reinstall_what_serves(bare_copy: Path) -> None:
    run, test = install.stamp("run"), install.stamp("test")
    (bare_copy / "tests" / "requirements.txt").write_text("another-package==0 # nowhere\n")
    assert install.stamp("run") == run
    assert install.stamp("test") != test


def test_an_environment_without_pip_is_made_anew(bare_copy: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare_copy / ".venv")], check=True)
    assert not install.is_usable()
    install.make_environment()
    assert install.is_usable()


def test_a_python_without_venv_is_told_which_package_it_lacks(
    bare_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = fake_python(tmp_path, "echo 'ensurepip is not available'; exit 1")
    monkeypatch.setattr(sys, "executable", program)
    assert install.main("run") == 1
    assert "apt-get install python3" in capsys.readouterr().err


def test_make_names_the_python_that_is_too_old_or_missing(tmp_path: Path) -> None:
    (tmp_path / "Makefile").symlink_to(REPOSITORY / "Makefile")
    command = [need_program("make"), "run", f"IBID_PYTHON={fake_python(tmp_path, 'exit 1')}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"no Python 3.11 or newer found as IBID_PYTHON={tmp_path}/python" in done.stderr
