"""The workflow of `.github`, as far as it can be checked without GitHub."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.support.requirements import REPOSITORY, need_root

TEXT = (REPOSITORY / ".github" / "workflows" / "checks.yml").read_text(encoding="utf-8")
JOBS: dict[str, Any] = yaml.safe_load(TEXT)["jobs"]


def commands_of(job: str) -> list[str]:
    return [step["run"] for step in JOBS[job]["steps"] if "run" in step]


def test_every_action_is_pinned_to_a_commit_whose_version_is_named() -> None:
    lines = [line for line in TEXT.splitlines() if "uses:" in line]
    assert lines
    assert [line for line in lines if not re.search(r"uses: [\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line)] == []


def test_every_job_ends_by_itself_and_may_only_read() -> None:
    assert yaml.safe_load(TEXT)["permissions"] == {"contents": "read"}
    assert {name: job["timeout-minutes"] for name, job in JOBS.items()} == {"run": 120, "audit": 20}


def test_the_jobs_run_what_the_repository_has() -> None:
    targets = set(re.findall(r"^([\w-]+):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert commands_of("run")[-1] == ".ci/run"
    assert os.access(REPOSITORY / ".ci" / "run", os.X_OK)
    assert commands_of("audit")[-1].removeprefix("make ") in targets


def test_git_reads_the_files_of_the_runner_although_the_job_runs_as_root(tmp_path: Path) -> None:
    """A job in a container is root, and its checkout belongs to another user; tests clone it."""
    need_root("give a clone to another user")
    clone = tmp_path / "workspace"
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    subprocess.run(["git", "init", "-q", str(clone)], check=True)
    subprocess.run(["chown", "-R", "1001:1001", str(clone)], check=True)
    for command in commands_of("run")[:-1]:
        subprocess.run(["sh", "-e", "-c", command], cwd=clone, env=environment, check=True)
    subprocess.run(["git", "clone", "-q", str(clone), str(tmp_path / "copy")], env=environment, check=True)


def test_the_checks_see_the_whole_history_with_which_frozen_migrations_are_compared() -> None:
    assert JOBS["run"]["steps"][0]["with"]["fetch-depth"] == 0
