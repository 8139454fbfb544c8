"""What would be deployed: the template and the artifact that osls writes from serverless.yml, offline."""

from __future__ import annotations

import importlib
import json
import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from functions.runtime.config import Config
from tests import service
from tests.requirements import REPOSITORY, need_osls

HANDLERS = service.python_handlers()
HTTP = sorted(name for name in HANDLERS if service.routes(name) and name not in ("retention", "storageEvent"))
LAPTOP_ONLY = {"IBID_HOME", "PORT"}
PLATFORM = re.compile(r"AWS_|PYTHONPATH$")

Resource = dict[str, Any]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package")
    command = [need_osls(), "package", "--package", str(folder)]
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def template(package: Path) -> dict[str, Resource]:
    return json.loads((package / "cloudformation-template-update-stack.json").read_text(encoding="utf-8"))["Resources"]


def of_type(template: dict[str, Resource], kind: str) -> dict[str, Resource]:
    """The properties of every resource of a type, by logical id."""
    return {name: r["Properties"] for name, r in template.items() if r["Type"] == f"AWS::{kind}"}


def statements(template: dict[str, Resource]) -> Iterator[Resource]:
    for role in of_type(template, "IAM::Role").values():
        for policy in role["Policies"]:
            yield from policy["PolicyDocument"]["Statement"]


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def as_pattern(path: str) -> str:
    """A gateway's path as a regular expression: `{proxy+}` takes the rest, `{id}` one segment."""
    return re.sub(r"\\{[^}]+?\\}", "[^/]+", re.escape(path).replace(re.escape("{proxy+}"), ".+"))


def operations(name: str) -> set[tuple[str, str]]:
    """The (method, path) pairs the application of an HTTP function answers."""
    paths = importlib.import_module(HANDLERS[name]).handler.app.openapi()["paths"]
    return {(method.upper(), path) for path, methods in paths.items() for method in methods}


def is_sent_to(name: str, method: str, path: str) -> bool:
    """Whether the gateway sends such a request to the function."""
    return any(verb in ("ANY", method) and re.fullmatch(as_pattern(at), path) for verb, at in service.routes(name))


@pytest.mark.parametrize("module", sorted(HANDLERS.values()))
def test_every_handler_can_be_called(module: str) -> None:
    assert callable(importlib.import_module(module).handler)


def test_every_route_that_is_served_is_reached_through_the_gateway() -> None:
    """FIX-4"""
    served = {operation for name in HTTP for operation in operations(name)}
    assert served
    assert served == {operation for name in HTTP for operation in operations(name) if is_sent_to(name, *operation)}


@pytest.fixture
def streaming_function(tmp_path: Path) -> Iterator[str]:
    """The address of `chatStream`, started the way the Lambda Web Adapter starts it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": "/var/task/.build/wheels",
        "LAMBDA_TASK_ROOT": str(REPOSITORY),
        "LAMBDA_RUNTIME_DIR": "/var/runtime",
        "AWS_LWA_PORT": str(port),
        "IBID_HOME": str(tmp_path),
    }
    script = REPOSITORY / service.functions()["chatStream"]["handler"]
    with subprocess.Popen([script], env=environment, cwd="/", stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        while "Uvicorn running" not in (line := process.stderr.readline()):
            assert line, "it ended before it served"
        yield f"http://127.0.0.1:{port}"
        process.terminate()


def test_the_streaming_function_serves_the_application_of_the_chat_function(streaming_function: str) -> None:
    """CHAT-2"""
    ask = urllib.request.Request(f"{streaming_function}/api/rag/chat", method="POST", data=b"{}")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(ask)
    with refused.value as answer:
        assert (answer.code, json.load(answer)["code"]) == (401, "not_signed_in")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{streaming_function}/v1/models")
    with refused.value as answer:
        assert (answer.code, json.load(answer)["error"]["code"]) == (401, "not_signed_in")


def test_the_functions_get_the_configuration_they_read() -> None:
    """FIX-7"""
    given = set(service.read()["provider"]["environment"])
    given |= {name for function in service.functions().values() for name in function.get("environment", {})}
    read = {name.upper() for name in Config.model_fields}
    assert {name for name in given if not PLATFORM.match(name)} == read - LAPTOP_ONLY


def test_the_artifact_holds_the_functions_and_no_development_code(package: Path) -> None:
    with zipfile.ZipFile(package / "ibid.zip") as artifact:
        names = {name for name in artifact.namelist() if not name.startswith(".build/wheels/")}
        script = artifact.getinfo(service.functions()["chatStream"]["handler"])
    present = {str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / "functions").rglob("*") if path.is_file()}
    assert names == {name for name in present if "__pycache__" not in name and not name.startswith("functions/local/")}
    assert script.external_attr >> 16 & 0o111 == 0o111


def test_every_function_of_the_template_is_a_handler_we_have(template: dict[str, Resource]) -> None:
    deployed = {function["Handler"] for function in of_type(template, "Lambda::Function").values()}
    assert deployed == {function["handler"] for function in service.functions().values()}


def test_a_message_stays_hidden_for_six_times_as_long_as_its_function_may_run(template: dict[str, Resource]) -> None:
    """ING-10"""
    queue, dead = (of_type(template, "SQS::Queue")[name] for name in ("IngestQueue", "IngestDeadLetters"))
    (source,) = of_type(template, "Lambda::EventSourceMapping").values()
    timeout = of_type(template, "Lambda::Function")["IngestLambdaFunction"]["Timeout"]
    assert queue["VisibilityTimeout"] >= 6 * timeout
    assert queue["RedrivePolicy"]["deadLetterTargetArn"] == {"Fn::GetAtt": ["IngestDeadLetters", "Arn"]}
    assert dead["MessageRetentionPeriod"] == 14 * 24 * 3600
    assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_no_permission_is_for_everything(template: dict[str, Resource]) -> None:
    named = [(as_list(s["Action"]), resource) for s in statements(template) for resource in as_list(s["Resource"])]
    assert named
    assert not [grant for grant in named if "*" in grant[0] or any(action.endswith(":*") for action in grant[0])]
    # the one wildcard allowed stands for the streams of our own log groups
    wild = [resource for _, resource in named if "*" in json.dumps(resource)]
    assert all(":log-group:/aws/lambda/ibid-dev" in json.dumps(resource) for resource in wild)


def test_pages_elsewhere_may_call_what_the_streaming_url_serves() -> None:
    """CHAT-10"""
    methods = service.functions()["chatStream"]["url"]["cors"]["allowedMethods"]
    assert {method for method, path in operations("chat") if path.startswith(("/api/", "/v1/"))} == set(methods)


def test_the_streaming_url_may_be_called(template: dict[str, Resource]) -> None:
    """CHAT-2: a Function URL needs two permissions, or every call answers 403."""
    (url,) = of_type(template, "Lambda::Url").values()
    permissions = of_type(template, "Lambda::Permission").values()
    actions = {p["Action"] for p in permissions if "ChatStream" in json.dumps(p["FunctionName"])}
    assert (url["InvokeMode"], url["AuthType"]) == ("RESPONSE_STREAM", "NONE")
    assert actions == {"lambda:InvokeFunctionUrl", "lambda:InvokeFunction"}


def test_the_schedules_are_every_minute_and_nightly(template: dict[str, Resource]) -> None:
    """OPS-1, OPS-2, RET-3"""
    rules = of_type(template, "Events::Rule")
    assert {name: rule["ScheduleExpression"] for name, rule in rules.items()} == {
        "SweeperEventsRuleSchedule1": "rate(1 minute)",
        "RetentionEventsRuleSchedule1": "cron(0 4 * * ? *)",
        "VectorIndexesEventsRuleSchedule1": "cron(30 4 * * ? *)",
    }


def test_the_gateway_gives_no_function_longer_than_it_waits_itself(template: dict[str, Resource]) -> None:
    timeouts = {name: function.get("timeout", 15) for name, function in service.functions().items()}
    assert {name: timeouts[name] for name in HANDLERS if service.routes(name) and timeouts[name] >= 30} == {}


def test_reserved_concurrency_stays_below_the_poolers_limit() -> None:
    """SEC-4: the smallest Supabase project takes 200 clients."""
    reserved = sum(function.get("reservedConcurrency", 0) for function in service.functions().values())
    (queue,) = [event["sqs"] for event in service.functions()["ingest"]["events"]]
    assert reserved + queue["maximumConcurrency"] < 200


def test_the_linter_of_cloudformation_finds_nothing(package: Path) -> None:
    # W3005: the framework's own redundant DependsOn
    found = subprocess.run(
        [Path(sys.executable).parent / "cfn-lint", "-i", "W3005", "--", "cloudformation-template-update-stack.json"],
        cwd=package,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (found.returncode, found.stdout) == (0, "")
