"""Runs the deployed functions on this machine as Lambda does: from read-only artifacts, with the real runtime client.

A function has the same environment as on Lambda: `LAMBDA_TASK_ROOT` with its artifact, `LAMBDA_RUNTIME_DIR` with the
runtime client and boto3, and the variables of serverless.yml and of the platform. It has neither HOME nor the packages
of this machine. Secrets are in a parameter store, where each function may read what its role in serverless.yml may.
"""

from __future__ import annotations

import base64
import os
import socket
import subprocess
import sys
import sysconfig
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from functions.local.packaging import artifacts, packages
from tests.handlers import events
from tests.support import service
from tests.support.fakes import parameter_store, runtime_api
from tests.support.fakes.parameter_store import ParameterStore
from tests.support.fakes.runtime_api import RuntimeApi

START_SECONDS = 30.0
PARAMETERS = "/ibid/dev"
_PLATFORM = {
    "AWS_SECRET_ACCESS_KEY": parameter_store.SECRET_KEY,
    "AWS_SESSION_TOKEN": "none",
    "AWS_REGION": runtime_api.REGION,
    "AWS_DEFAULT_REGION": runtime_api.REGION,
    "AWS_EXECUTION_ENV": "AWS_Lambda_python3.12",
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024",
    "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
    "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
    "AWS_LAMBDA_LOG_STREAM_NAME": "2026/11/22/[$LATEST]01",
    "AWS_XRAY_CONTEXT_MISSING": "LOG_ERROR",
    "LANG": "en_US.UTF-8",
    "TZ": ":UTC",
}


class Function:
    """A function with a running process."""

    def __init__(self, api: RuntimeApi, log: Path) -> None:
        self.api = api
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8")

    def invoke(self, event: Any) -> Any:
        try:
            return self.api.invoke(event)
        except runtime_api.FunctionError as exc:
            exc.add_note(self.log)
            raise

    def send(self, method: str, path: str, body: Any = None, **options: Any) -> events.Answer:
        """Sends a request through the gateway; the options are those of `events.http`."""
        raw = self.invoke(events.http(method, path, body, **options))
        text = raw.get("body") or ""
        content = base64.b64decode(text) if raw.get("isBase64Encoded") else text.encode()
        return events.Answer(raw["statusCode"], raw["headers"], content)


class Platform:
    """The functions of serverless.yml with one configuration, given as variables; used inside a `with` block."""

    def __init__(self, folder: Path, variables: Mapping[str, str], layer: Path | None = None) -> None:
        """`layer` is a zip file that is unpacked for every function."""
        secrets = {secret for name in service.functions() for secret in service.secrets(name)}
        self.store = ParameterStore(
            {f"{PARAMETERS}/{name}": value for name, value in variables.items() if name in secrets and value},
            readable={
                name: {f"{PARAMETERS}/{s}" for s in service.readable_secrets(name)} for name in service.functions()
            },
        )
        self.temporary = folder / "tmp"
        self._folder = folder
        self.variables = variables
        self._runtime = folder / "runtime"
        self._programs = folder / "bin"
        self._layer = folder / "opt"
        self._artifacts = artifacts.build(packages.HOST)
        for path in (self.temporary, self._runtime, self._programs):
            path.mkdir(parents=True)
        _link_packages(self._runtime, "awslambdaric", "boto3")
        for name in ("python", "python3"):
            program = self._programs / name
            python = sys._base_executable  # type: ignore[attr-defined]  # typeshed leaves it out
            program.write_text(f'#!/bin/sh\nexec "{python}" -S -s "$@"\n')
            program.chmod(0o755)
        if layer is not None:
            unzip(layer, self._layer)

    def __enter__(self) -> Self:
        self.store.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.store.__exit__(*error)

    def artifact(self, set_name: str) -> Path:
        return self._artifacts / f"{set_name}.zip"

    def task_root(self, set_name: str) -> Path:
        """The unzipped, read-only artifact of a set."""
        root = self._folder / "task" / set_name
        if not root.exists():
            unzip(self.artifact(set_name), root)
        return root

    def environment(self, name: str) -> dict[str, str]:
        function = service.functions()[name]
        declared = service.read()["provider"]["environment"] | function.get("environment", {})
        literal = {key: value for key, value in declared.items() if isinstance(value, str) and "${" not in value}
        configured = {key: self.variables.get(key, literal.get(key, "")) for key in declared}
        endpoints = {key: value for key, value in self.variables.items() if key.startswith("AWS_ENDPOINT_URL")}
        return {
            **_PLATFORM,
            **endpoints,
            **configured,
            "AWS_ACCESS_KEY_ID": f"AKIA-{name}",
            "AWS_ENDPOINT_URL_SSM": self.store.base_url,
            "PARAMETER_PATH": PARAMETERS,
            "AWS_LAMBDA_FUNCTION_NAME": f"ibid-dev-{name}",
            "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/ibid-dev-{name}",
            "LAMBDA_TASK_ROOT": str(self.task_root(set_of(name))),
            "LAMBDA_RUNTIME_DIR": str(self._runtime),
            "PATH": f"{self._programs}:{self._layer}/bin",  # without the PATH of this machine
            "TMPDIR": str(self.temporary),
            "_HANDLER": function["handler"],
        }

    @contextmanager
    def start(self, name: str) -> Iterator[Function]:
        """Starts a function as the managed Python runtime does."""
        environment = self.environment(name)
        command = ["python", "-m", "awslambdaric", environment["_HANDLER"]]
        timeout = service.functions()[name].get("timeout", service.read()["provider"]["timeout"])
        with runtime_api.run(environment["AWS_LAMBDA_FUNCTION_NAME"], min(timeout, 60)) as api:
            address = {"AWS_LAMBDA_RUNTIME_API": api.address, "PYTHONPATH": str(self._runtime)}
            log = self._folder / f"{name}.log"
            with _running(command, environment | address, log):
                yield Function(api, log)

    @contextmanager
    def start_behind_web_adapter(self, name: str) -> Iterator[str]:
        """Starts a function as the Lambda Web Adapter does, by running its handler script; yields its address."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        environment = self.environment(name) | {"AWS_LWA_PORT": str(port)}
        script = Path(environment["LAMBDA_TASK_ROOT"]) / environment["_HANDLER"]
        log = self._folder / f"{name}.log"
        with _running([str(script)], environment, log) as process:
            deadline = time.monotonic() + START_SECONDS
            while not _listens(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError(log.read_text(encoding="utf-8"))
                time.sleep(0.02)
            yield f"http://127.0.0.1:{port}"


def set_of(name: str) -> str:
    """The set of packages with which a function is deployed."""
    return Path(service.functions()[name]["package"]["artifact"]).stem


def unzip(artifact: Path, root: Path) -> None:
    """Unpacks as Lambda does: keeps the permissions except those to write."""
    with zipfile.ZipFile(artifact) as archive:
        archive.extractall(root)
        for entry in archive.infolist():
            (root / entry.filename).chmod(entry.external_attr >> 16 & 0o555)
    for folder in (root, *filter(Path.is_dir, root.rglob("*"))):
        folder.chmod(0o555)


def _link_packages(folder: Path, *names: str) -> None:
    """Links packages of this machine and their dependencies into `folder`."""
    installed = Path(sysconfig.get_path("purelib"))
    for package in packages.select_packages(names, installed, packages.HOST.markers):
        for name in {path.parts[0] for path in packages.list_files(package)}:
            (folder / name).symlink_to(installed / name)


@contextmanager
def _running(command: list[str], environment: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    root = environment["LAMBDA_TASK_ROOT"]
    path = environment["PATH"].split(":")[0]
    program = command[0] if os.sep in command[0] else f"{path}/{command[0]}"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [program, *command[1:]], cwd=root, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    with process:
        yield process
        process.kill()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except ConnectionRefusedError:
        return False
    return True
