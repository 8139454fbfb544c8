"""The contents of a deployment: the artifacts, and the template that osls writes offline from serverless.yml."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.utils import canonicalize_name

from functions.local.packaging import artifacts, ocr_layer, packages
from functions.local.packaging.packages import HOST, LAMBDA, PackagingError
from functions.runtime import metrics
from functions.runtime.config import Config
from tests.bench.bench_coldstart import MAX_MB
from tests.support import service
from tests.support.requirements import REPOSITORY, need_osls, need_tesseract

HANDLERS = service.python_handlers()
HTTP = sorted(name for name in HANDLERS if service.routes(name) and name not in ("retention", "storageEvent"))
UNCHECKED_HASH = b"\x01\0\0\0"
LAPTOP_ONLY = {"IBID_API_KEY", "IBID_HOME", "PORT", "TRANSLATION_FOLDER"}

Resource = dict[str, Any]


def write_template(folder: Path, **variables: str) -> dict[str, Resource]:
    """The resources of the template that a deployment with these environment variables writes into `folder`."""
    command = [need_osls(), "package", "--package", str(folder)]
    built = str(artifacts.build(HOST))
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "IBID_ARTIFACTS": built} | variables
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "cloudformation-template-update-stack.json").read_text(encoding="utf-8"))["Resources"]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package")
    write_template(folder)
    return folder


@pytest.fixture(scope="module")
def template(package: Path) -> dict[str, Resource]:
    return json.loads((package / "cloudformation-template-update-stack.json").read_text(encoding="utf-8"))["Resources"]


def of_type(template: dict[str, Resource], kind: str) -> dict[str, Resource]:
    """The properties of every resource of a type, by logical id."""
    return {name: r["Properties"] for name, r in template.items() if r["Type"] == f"AWS::{kind}"}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def as_pattern(path: str) -> str:
    """A gateway's path as a regular expression: `{proxy+}` takes the rest, `{id}` one segment."""
    return re.sub(r"\\{[^}]+?\\}", "[^/]+", re.escape(path).replace(re.escape("{proxy+}"), ".+"))


def operations(name: str) -> set[tuple[str, str]]:
    """The (method, path) pairs that the application of an HTTP function serves."""
    paths = importlib.import_module(HANDLERS[name]).handler.app.openapi()["paths"]
    return {(method.upper(), path) for path, methods in paths.items() for method in methods}


def is_sent_to(name: str, method: str, path: str) -> bool:
    """Whether the gateway sends such a request to the function."""
    return any(verb in ("ANY", method) and re.fullmatch(as_pattern(at), path) for verb, at in service.routes(name))


@pytest.mark.parametrize("module", sorted(HANDLERS.values()))
def test_every_handler_can_be_called(module: str) -> None:
    assert callable(importlib.import_module(module).handler)


def test_every_served_route_is_reachable_through_the_gateway() -> None:
    """FIX-4"""
    served = {operation for name in HTTP for operation in operations(name)}
    assert served
    assert served == {operation for name in HTTP for operation in operations(name) if is_sent_to(name, *operation)}


def test_pages_are_drawn_by_a_function_without_long_polls() -> None:
    """LIM-1: the gateway sends a request where the path is most specific."""
    assert service.routes("drawing") == {("GET", "/api/rag/documents/{id}/pages/{number}")}
    assert {path for _, path in operations("drawing") if is_sent_to("drawing", "GET", path)} == {
        "/api/rag/documents/{document_id}/pages/{number}.png"
    }


def test_the_functions_get_every_variable_they_read() -> None:
    """FIX-7"""
    declared = set(service.read()["provider"]["environment"])
    declared |= {name for function in service.functions().values() for name in function.get("environment", {})}
    declared |= {secret for name in service.functions() for secret in service.secrets(name)}
    read = {name.upper() for name in Config.model_fields}
    assert {name for name in declared if not name.startswith("AWS_")} - {"SECRETS_VERSION"} == read - LAPTOP_ONLY


def test_every_function_is_deployed_with_an_artifact_that_is_built() -> None:
    chosen = {function["package"]["artifact"] for function in service.functions().values()}
    assert chosen == {f"${{self:custom.artifacts}}/{name}.zip" for name in artifacts.SETS}


@pytest.fixture(scope="module", params=sorted(artifacts.SETS))
def artifact(request: pytest.FixtureRequest) -> Iterator[zipfile.ZipFile]:
    with zipfile.ZipFile(artifacts.build(HOST) / f"{request.param}.zip") as opened:
        yield opened


def test_an_artifact_has_the_functions_and_no_development_code(artifact: zipfile.ZipFile) -> None:
    ours = {name for name in artifact.namelist() if name.startswith("functions/") and "__pycache__" not in name}
    present = {str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / "functions").rglob("*") if path.is_file()}
    left_out = re.compile(r"functions/local/|.*__pycache__|.*\.md$")
    assert ours == {name for name in present if not left_out.match(name)}
    script = artifact.getinfo(service.functions()["chatStream"]["handler"])
    assert script.external_attr >> 16 == 0o100755


def test_an_artifact_has_the_bytecode_of_every_module(artifact: zipfile.ZipFile) -> None:
    names = set(artifact.namelist())
    sources = {name for name in names if name.endswith(".py")}
    compiled = {importlib.util.cache_from_source(name) for name in sources}
    assert {name.partition("/")[0] for name in sources} == {"functions"}
    assert compiled == {name for name in names if "__pycache__" in name}
    some = importlib.util.cache_from_source("functions/core/errors.py")
    assert artifact.read(some)[4:8] == UNCHECKED_HASH


def test_an_artifact_has_pinned_packages_only(artifact: zipfile.ZipFile) -> None:
    folders = {re.match(r"(.+)-(.+)\.dist-info/", name) for name in artifact.namelist()} - {None}
    packaged = {canonicalize_name(folder[1]): folder[2] for folder in folders if folder}
    assert {"psycopg", "psycopg-binary", "pydantic-settings"} <= packaged.keys()
    assert packaged.items() <= packages.read_pins().items()


def test_an_artifact_is_small_enough_to_start_quickly(artifact: zipfile.ZipFile) -> None:
    """FIX-4: Lambda unpacks the artifact before the first request."""
    limit = MAX_MB[Path(str(artifact.filename)).stem]
    assert sum(entry.file_size for entry in artifact.infolist()) <= limit * 1_000_000


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    with pytest.raises(PackagingError, match="fastapi is not among the packages"):
        packages.select_packages(["fastapi"], tmp_path, {})


def test_an_artifact_is_built_again_when_its_bytecode_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = HOST.stamp
    monkeypatch.setattr(packages, "find_python", lambda version: None)
    assert HOST.stamp != compiled


def test_markers_of_a_requirement_are_evaluated_for_the_target_machine(tmp_path: Path) -> None:
    for name, needs in {
        "a": ['b; sys_platform == "win32"', 'c[x]; platform_machine == "aarch64"'],
        "b": [],
        "d": [],
    }.items():
        make_package(tmp_path, name, needs)
    make_package(tmp_path, "c", ['d; extra == "x"', 'b; extra == "y"'])
    chosen = packages.select_packages(["a"], tmp_path, LAMBDA.markers)
    assert [package.name for package in chosen] == ["a", "c", "d"]


def make_package(folder: Path, name: str, needs: list[str]) -> None:
    metadata = folder / f"{name}-1.dist-info" / "METADATA"
    metadata.parent.mkdir()
    requires = "".join(f"Requires-Dist: {line}\n" for line in needs)
    metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n{requires}", encoding="utf-8")


def test_the_ocr_layer_names_a_missing_language() -> None:
    need_tesseract()
    with pytest.raises(PackagingError, match=r"without xyz$"):
        ocr_layer.find_languages("eng+xyz")


def test_the_ocr_layer_has_the_version_that_tests_use() -> None:
    assert f"{ocr_layer.TESSEROCR};" in (REPOSITORY / "tests" / "requirements.txt").read_text(encoding="utf-8")


def test_every_function_of_the_template_has_an_existing_handler(template: dict[str, Resource]) -> None:
    deployed = {function["Handler"] for function in of_type(template, "Lambda::Function").values()}
    assert deployed == {function["handler"] for function in service.functions().values()}


def test_the_visibility_timeout_is_six_times_the_function_timeout(template: dict[str, Resource]) -> None:
    """ING-10"""
    queue, dead = (of_type(template, "SQS::Queue")[name] for name in ("IngestQueue", "IngestDeadLetters"))
    (source,) = of_type(template, "Lambda::EventSourceMapping").values()
    timeout = of_type(template, "Lambda::Function")["IngestLambdaFunction"]["Timeout"]
    assert queue["VisibilityTimeout"] >= 6 * timeout
    assert queue["RedrivePolicy"]["deadLetterTargetArn"] == {"Fn::GetAtt": ["IngestDeadLetters", "Arn"]}
    assert dead["MessageRetentionPeriod"] == 14 * 24 * 3600
    assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def describe_resource(resource: Any) -> str:
    """A resource of a policy as this test writes it: the logical id of a resource, or the path of a parameter."""
    if "Fn::GetAtt" in resource:
        return str(resource["Fn::GetAtt"][0])
    return str(resource["Fn::Sub"]).removeprefix("arn:${AWS::Partition}:ssm:${AWS::Region}:${AWS::AccountId}:parameter")


def list_grants(template: dict[str, Resource], function: str) -> dict[str, list[str]]:
    """What the role of a function may do: action → resources."""
    (role,) = of_type(template, "Lambda::Function")[f"{function}LambdaFunction"]["Role"]["Fn::GetAtt"][:1]
    (policy,) = of_type(template, "IAM::Role")[role]["Policies"]
    grants: dict[str, list[str]] = {}
    for statement in policy["PolicyDocument"]["Statement"]:
        for action in as_list(statement["Action"]):
            grants.setdefault(action, []).extend(map(describe_resource, as_list(statement["Resource"])))
    return grants


USERS = ["DATABASE_URL", "SUPABASE_JWT_SECRET"]
MODELS = ["OPENAI_API_KEY", "EMBEDDING_API_KEY"]
SENDS, RECEIVES = ["SendMessage"], ["ReceiveMessage", "DeleteMessage", "GetQueueAttributes", "SendMessage"]
MAY: dict[str, tuple[list[str], list[str]]] = {
    "Chat": ([*USERS, *MODELS, "RERANK_API_KEY"], []),
    "ChatStream": ([*USERS, *MODELS, "RERANK_API_KEY"], []),
    "Conversations": (USERS, SENDS),
    "Documents": ([*USERS, "SUPABASE_SECRET_KEY"], SENDS),
    "Drawing": ([*USERS, "SUPABASE_SECRET_KEY"], []),
    "Notebooks": ([*USERS, "SUPABASE_SECRET_KEY"], SENDS),
    "Search": ([*USERS, *MODELS, "RERANK_API_KEY"], []),
    "Mcp": ([*USERS, *MODELS, "RERANK_API_KEY"], []),
    "Settings": ([*USERS, *MODELS], []),
    "Page": ([*USERS, "SUPABASE_SECRET_KEY", *MODELS, "METRICS_TOKEN"], []),
    "StorageEvent": (["DATABASE_URL", "WEBHOOK_SECRET"], SENDS),
    "Ingest": (["DATABASE_URL", "SUPABASE_SECRET_KEY", *MODELS, "TRANSLATION_API_KEY"], RECEIVES),
    "Sweeper": (["DATABASE_URL", "SUPABASE_SECRET_KEY"], SENDS),
    "Retention": (["DATABASE_URL", "CRON_SECRET"], []),
    "VectorIndexes": (["DATABASE_URL"], []),
}


@pytest.mark.parametrize("function", MAY)
def test_a_function_may_do_what_it_does_and_nothing_else(template: dict[str, Resource], function: str) -> None:
    """SEC-8: it writes its own log, reads its own secrets, and uses the queue if it has to."""
    secrets, actions = MAY[function]
    assert list_grants(template, function) == {
        "logs:CreateLogStream": [f"{function}LogGroup"],
        "logs:PutLogEvents": [f"{function}LogGroup"],
        "ssm:GetParameters": [f"/ibid/dev/{secret}" for secret in secrets],
        **{f"sqs:{action}": ["IngestQueue"] for action in actions},
    }


def test_every_function_has_a_role_of_its_own(template: dict[str, Resource]) -> None:
    """SEC-8: the framework would let all functions without a role receive from the queue."""
    roles = of_type(template, "IAM::Role")
    assert {f"{function}Role" for function in MAY} == roles.keys()
    assert len(of_type(template, "Lambda::Function")) == len(MAY)
    assert {role["AssumeRolePolicyDocument"]["Statement"][0]["Principal"]["Service"] for role in roles.values()} == {
        "lambda.amazonaws.com"
    }


@pytest.mark.parametrize("name", sorted(service.functions()))
def test_a_function_reads_what_its_role_may_read_in_one_call(name: str) -> None:
    """SEC-8: the parameter store answers for ten parameters at a time."""
    assert set(service.secrets(name)) == service.readable_secrets(name)
    assert len(service.secrets(name)) <= 10


def test_no_file_of_a_deployment_has_a_secret(tmp_path: Path) -> None:
    """SEC-8: whoever packages may have the secrets in the environment."""
    secrets = {secret for name in service.functions() for secret in service.secrets(name)}
    canaries = {name: f"canary-{name}" for name in secrets | {"MISTRAL_API_KEY"}}
    write_template(tmp_path, CHAT_MODEL="no-secret", **canaries)
    files = [path for path in (*tmp_path.rglob("*"), *artifacts.build(HOST).glob("*.zip")) if path.is_file()]
    assert len(files) > len(artifacts.SETS)
    assert [path.name for path in files if any(b"canary-" in content for content in read_files(path))] == []
    assert [path.suffix for path in files if any(b"no-secret" in content for content in read_files(path))] != []


def test_what_is_packaged_can_be_read_by_its_owner_only() -> None:
    """SEC-8: templates name accounts, addresses and settings."""
    recipe = subprocess.run(
        ["make", "-n", "-o", "installed-test", "-o", "node_modules/.installed", "package"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    packaging = re.findall(r"^.*osls package$", recipe, re.MULTILINE)
    assert [line.strip() for line in packaging] == [
        "umask 077 && IBID_ARTIFACTS=$artifacts node_modules/.bin/osls package"
    ]


def read_files(path: Path) -> Iterator[bytes]:
    """The contents of a file, or of every file in an archive."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            yield from (archive.read(name) for name in archive.namelist())
    else:
        yield path.read_bytes()


def test_the_gateway_limits_requests_and_the_limits_can_be_changed(
    tmp_path: Path, template: dict[str, Resource]
) -> None:
    """FIX-4: 200 at once are eighteen page loads of eleven requests."""
    (stage,) = of_type(template, "ApiGatewayV2::Stage").values()
    (other,) = of_type(
        write_template(tmp_path, THROTTLING_RATE="7", THROTTLING_BURST="9"), "ApiGatewayV2::Stage"
    ).values()
    limits = [
        (s["DefaultRouteSettings"]["ThrottlingRateLimit"], s["DefaultRouteSettings"]["ThrottlingBurstLimit"])
        for s in (stage, other)
    ]
    assert limits == [("50", "200"), ("7", "9")]


def test_every_alarm_tells_the_topic_and_watches_a_metric_that_exists(template: dict[str, Resource]) -> None:
    """OPS-6"""
    alarms = of_type(template, "CloudWatch::Alarm")
    ours = {(m["MetricName"], m["Dimensions"][0]["Value"]) for m in alarms.values() if m.get("Namespace") == "Ibid"}
    assert {json.dumps(alarm["AlarmActions"]) for alarm in alarms.values()} == {'[{"Ref": "AlarmTopic"}]'}
    assert ours == {(metric.name, "ibid-dev-sweeper") for metric in (metrics.DUE_SECONDS, metrics.GIVEN_UP)}
    assert len(alarms) == 10


def test_the_cors_methods_of_the_streaming_url_are_those_it_serves() -> None:
    """CHAT-10"""
    methods = service.functions()["chatStream"]["url"]["cors"]["allowedMethods"]
    assert {method for method, path in operations("chat") if path.startswith(("/api/", "/v1/"))} == set(methods)


def test_the_streaming_url_has_both_permissions(template: dict[str, Resource]) -> None:
    """CHAT-2: without both, a Function URL answers every call with 403."""
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


def test_no_http_function_has_a_longer_timeout_than_the_gateway(template: dict[str, Resource]) -> None:
    timeouts = {name: function.get("timeout", 15) for name, function in service.functions().items()}
    assert {name: timeouts[name] for name in HANDLERS if service.routes(name) and timeouts[name] >= 30} == {}


def reserved(template: dict[str, Resource]) -> dict[str, int]:
    """What the functions of a template reserve, by name; those without a reservation are left out."""
    functions = of_type(template, "Lambda::Function").values()
    found = {function["FunctionName"]: function.get("ReservedConcurrentExecutions") for function in functions}
    return {name.removeprefix("ibid-dev-"): count for name, count in found.items() if count is not None}


def test_a_deployment_reserves_nothing_so_a_new_account_takes_it(template: dict[str, Resource]) -> None:
    """FIX-4: a new account runs 10 functions at a time, and AWS refuses a template that reserves any of them."""
    (source,) = of_type(template, "Lambda::EventSourceMapping").values()
    assert (reserved(template), source["ScalingConfig"]) == ({}, {"MaximumConcurrency": 5})


def test_reservations_are_those_of_functions_with_connections_and_stay_below_the_poolers_limit(tmp_path: Path) -> None:
    """SEC-4: the smallest Supabase project allows 200 clients. A page load never waits for a reservation of `page`."""
    found = reserved(write_template(tmp_path, RESERVED_CONCURRENCY="full"))
    (queue,) = [event["sqs"] for event in service.functions()["ingest"]["events"]]
    assert found == service.reserved_concurrency()
    assert found.keys() == service.functions().keys() - {"ingest", "page"}
    assert sum(found.values()) + queue["maximumConcurrency"] < 200


def test_cfn_lint_finds_nothing(package: Path) -> None:
    # W3005: the framework's own redundant DependsOn
    found = subprocess.run(
        [Path(sys.executable).parent / "cfn-lint", "-i", "W3005", "--", "cloudformation-template-update-stack.json"],
        cwd=package,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (found.returncode, found.stdout) == (0, "")
