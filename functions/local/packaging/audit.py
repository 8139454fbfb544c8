"""Compares the pinned packages with the public databases of known vulnerabilities.

`python -m functions.local.packaging.audit` runs pip-audit, which it installs apart in `.build/audit`, over everything
that the requirements files pin, and npm audit over package-lock.json. It ends with 1 if a package is vulnerable, and
with 2 if a database could not be asked, so that silence is not taken for safety.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from typing import Final

from functions.local.packaging import wheels
from functions.local.packaging.packages import BUILD, REPOSITORY

PIP_AUDIT: Final = "pip-audit==2.10.1"
FOLDER: Final = BUILD / "audit"


class NotAuditedError(Exception):
    """A database could not be asked; the message is printed as it is."""


def ask_pip_audit() -> str:
    """The report of pip-audit, as JSON."""
    python = FOLDER / "bin" / "python"
    if not (FOLDER / "bin" / "pip-audit").exists():
        venv.create(FOLDER, with_pip=True, clear=True)
        _run([str(python), "-I", "-m", "pip", "install", "--quiet", PIP_AUDIT])
    locked = FOLDER / "locked.txt"
    locked.write_text(wheels.lock(wheels.read_requirements(REPOSITORY / wheels.FILE)), encoding="utf-8")
    options = ["--require-hashes", "--disable-pip", "--format", "json", "--progress-spinner", "off", "-r", str(locked)]
    return _run([str(python), "-I", "-m", "pip_audit", *options])


def ask_npm() -> str:
    """The report of npm audit, as JSON."""
    return _run(["npm", "audit", "--package-lock-only", "--json"])


def _run(command: list[str]) -> str:
    """The output of a program, which also fails when it finds something; raises NotAuditedError without any."""
    try:
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise NotAuditedError(f"{command[0]} is not installed") from error
    if done.returncode != 0 and not done.stdout.strip():
        raise NotAuditedError((done.stderr.strip() or f"{command[0]} failed").splitlines()[-1])
    return done.stdout


def list_vulnerable_wheels(report: str) -> list[str]:
    """The findings of pip-audit; raises NotAuditedError for packages that its database does not know."""
    dependencies = json.loads(report)["dependencies"]
    if skipped := [package["name"] for package in dependencies if "skip_reason" in package]:
        raise NotAuditedError(f"the database does not know {len(skipped)} packages, such as {skipped[0]}")
    return [f"{p['name']} {p['version']}: {v['id']}" for p in dependencies for v in p["vulns"]]


def list_vulnerable_modules(report: str) -> list[str]:
    """The findings of npm audit; raises NotAuditedError when the registry did not answer."""
    found = json.loads(report)
    if "vulnerabilities" not in found:
        raise NotAuditedError(str(found.get("message") or "the registry did not answer"))
    return [f"{name}: {entry['severity']}" for name, entry in found["vulnerabilities"].items()]


def main() -> int:
    status = 0
    for name, ask, read in (
        ("Python packages", ask_pip_audit, list_vulnerable_wheels),
        ("Node.js packages of the deployment tool", ask_npm, list_vulnerable_modules),
    ):
        try:
            findings = read(ask())
        except (NotAuditedError, ValueError, KeyError) as error:
            print(f"ibid: {name}: NOT AUDITED: {error}", file=sys.stderr)
            status = status or 2
            continue
        print(f"ibid: {name}: {len(findings)} known vulnerabilities", *findings, sep="\n  ")
        status = 1 if findings else status
    return status


if __name__ == "__main__":
    sys.exit(main())
