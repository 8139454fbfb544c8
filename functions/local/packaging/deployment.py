"""Stores the secrets of an installation on AWS, and deploys it.

`python -m functions.local.packaging.deployment parameters|deploy STAGE [--region REGION]` reads `.env.STAGE`. The
parameter store holds each secret as `/ibid/STAGE/NAME`, and all other variables as `/ibid/STAGE/env`, for the next
person who deploys. The AWS CLI gets secrets in a file of their owner, because everybody sees the arguments of programs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any, Final

from dotenv import dotenv_values

from functions.local.packaging.packages import REPOSITORY
from functions.runtime.config import Config

_LAPTOP: Final = "IBID_API_KEY"
SECRETS: Final = tuple(
    name.upper()
    for name, field in Config.model_fields.items()
    if "SecretStr" in str(field.annotation) and name.upper() != _LAPTOP
)
GENERATED: Final = ("CRON_SECRET", "WEBHOOK_SECRET", "METRICS_TOKEN")
"""Secrets that Ibid's own parts share, which `parameters` makes up where they are missing."""


class DeploymentError(Exception):
    """Why nothing was stored or deployed; the message is printed as it is."""


class Installation:
    """A stage in a region: its file of variables and its parameters."""

    def __init__(self, stage: str, region: str | None) -> None:
        self.stage = stage
        self.path = f"/ibid/{stage}"
        self.file = REPOSITORY / f".env.{stage}"
        self.variables = self._read_variables()
        self.region = region or self.variables.get("AWS_REGION") or os.environ.get("AWS_REGION") or "eu-central-1"

    def _read_variables(self) -> dict[str, str]:
        if not self.file.exists():
            raise DeploymentError(
                f"{self.file.name} is missing. functions/DEPLOY.md, step 4, says what it holds; if this installation"
                f" exists, fetch it: aws ssm get-parameter --name {self.path}/env --query Parameter.Value --output text"
                f" > {self.file.name}"
            )
        return {name: value for name, value in dotenv_values(self.file, interpolate=False).items() if value}

    def store_parameters(self) -> list[str]:
        """Stores every secret and the other variables; returns what was stored, without values."""
        stored = self.read_versions()
        made_up = {name: secrets.token_hex(32) for name in GENERATED if name not in stored}
        found = made_up | {name: value for name, value in self.variables.items() if is_secret(name)}
        for name, value in found.items():
            self._put(name, value, "SecureString")
        settings = {name: value for name, value in self.variables.items() if not is_secret(name)}
        self._put("env", "".join(f"{name}={quote(value)}\n" for name, value in settings.items()), "String")
        return [*(f"{self.path}/{name}" for name in found), f"{self.path}/env"]

    def read_versions(self) -> dict[str, int]:
        """Which secrets are stored, and how often each was; their values are not decrypted."""
        answer = self._call("get-parameters", {"Names": [f"{self.path}/{name}" for name in SECRETS]})
        return {p["Name"].removeprefix(f"{self.path}/"): p["Version"] for p in answer["Parameters"]}

    def list_missing(self, stored: Iterable[str]) -> list[str]:
        """What has to be set before this installation can work."""
        needed = ["DATABASE_URL", "SUPABASE_SECRET_KEY", *GENERATED]
        asks_openai = "OPENAI_BASE_URL" not in self.variables
        if asks_openai and self.variables.keys() & {"CHAT_MODEL", "EMBEDDING_MODEL"}:
            needed.append("OPENAI_API_KEY")
        missing = [f"the parameter {self.path}/{name}" for name in needed if name not in set(stored)]
        return missing + [f"{name} in {self.file.name}" for name in ["SUPABASE_URL"] if name not in self.variables]

    def deploy(self) -> int:
        """Deploys with the variables that are no secrets; raises DeploymentError when something is missing."""
        versions = self.read_versions()
        if missing := self.list_missing(versions):
            raise DeploymentError(
                f"not deployed, because this is not set: {', '.join(missing)}.\nWrite it into {self.file.name} and run"
                f" make parameters STAGE={self.stage}"
            )
        settings = {name: value for name, value in {**os.environ, **self.variables}.items() if not is_secret(name)}
        key = "EMBEDDING_API_KEY" if "EMBEDDING_API_KEY" in versions else "OPENAI_API_KEY"
        # A changed sum starts every function anew, with the secrets of now.
        more = {"EMBEDDING_API_KEY_NAME": key, "SECRETS_VERSION": str(sum(versions.values()))}
        os.umask(0o077)
        command = ["node_modules/.bin/osls", "deploy", "--stage", self.stage, "--region", self.region]
        return subprocess.run(command, cwd=REPOSITORY, env=settings | more, check=False).returncode

    def _put(self, name: str, value: str, kind: str) -> None:
        parameter = {"Name": f"{self.path}/{name}", "Value": value, "Type": kind, "Overwrite": True}
        self._call("put-parameter", parameter)

    def _call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        command = ["aws", "ssm", operation, "--region", self.region, "--output", "json", "--cli-input-json"]
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".json") as file:
            json.dump(request, file)
            file.flush()
            try:
                done = subprocess.run([*command, f"file://{file.name}"], capture_output=True, text=True, check=False)
            except FileNotFoundError:
                raise DeploymentError("the AWS CLI is not installed; functions/DEPLOY.md says where it is") from None
        if done.returncode != 0:
            raise DeploymentError(f"aws ssm {operation} failed: {done.stderr.strip()}")
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer


def is_secret(name: str) -> bool:
    return name in SECRETS or (name.endswith("_API_KEY") and name != _LAPTOP)


def quote(value: str) -> str:
    """A value as a line of the file has it."""
    return (
        value if re.fullmatch(r"[\w./:@%+,=-]*", value) else "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m functions.local.packaging.deployment", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("command", choices=["parameters", "deploy"])
    parser.add_argument("stage")
    parser.add_argument("--region")
    options = parser.parse_args(argv)
    try:
        installation = Installation(options.stage, options.region)
        if options.command == "deploy":
            return installation.deploy()
        for name in installation.store_parameters():
            print(f"ibid: stored {name}")
    except DeploymentError as error:
        print(f"ibid: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
