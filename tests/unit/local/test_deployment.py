"""What is stored on AWS before a deployment, and what a deployment needs, with a stand-in for the parameter store."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from dotenv import dotenv_values

from functions.local.packaging import deployment
from functions.local.packaging.deployment import GENERATED, SECRETS
from tests.support.fakes import aws_cli
from tests.support.fakes import parameter_store as fake
from tests.support.fakes.parameter_store import ParameterStore

OSLS = """#!/bin/sh
{ umask; echo "$@"; env; } > deployed
"""
VARIABLES = """AWS_REGION=eu-west-3
SUPABASE_URL=https://ref.supabase.co
DATABASE_URL='postgresql://postgres.ref:p#$s@pooler:6543/postgres?sslmode=require'
SUPABASE_SECRET_KEY=sb_secret_canary
OPENAI_API_KEY=sk-canary
MISTRAL_API_KEY=canary-of-mistral
EMBEDDING_QUERY_PREFIX="query: it's "
CHAT_MODEL=gpt-4.1-mini
"""


NEEDED = ["DATABASE_URL", "SUPABASE_SECRET_KEY", "OPENAI_API_KEY", *GENERATED]


@pytest.fixture
def store() -> Iterator[ParameterStore]:
    """A store that has what a deployment needs."""
    with ParameterStore({f"/ibid/prod/{name}": f"canary of {name}" for name in NEEDED}) as running:
        yield running


@pytest.fixture
def repository(store: ParameterStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `.env.prod`, a deployment tool that writes down how it was called, and a command line of AWS."""
    for name, text in {
        "node_modules/.bin/osls": OSLS,
        "bin/aws": f'#!/bin/sh\nexec "{sys.executable}" "{aws_cli.__file__}" "$@"\n',
    }.items():
        program = tmp_path / name
        program.parent.mkdir(parents=True)
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)
    (tmp_path / ".env.prod").write_text(VARIABLES, encoding="utf-8")
    monkeypatch.setattr(deployment, "REPOSITORY", tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("AWS_ENDPOINT_URL_SSM", store.base_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA-operator")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", fake.SECRET_KEY)
    monkeypatch.setenv("RERANK_API_KEY", "canary of the shell")
    return tmp_path


def run(*arguments: str) -> int:
    before = os.umask(0o022)
    try:
        return deployment.main([*arguments])
    finally:
        os.umask(before)


def test_secrets_and_settings_are_stored_apart(
    store: ParameterStore, repository: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """SEC-8: what Ibid's own parts share is made up once."""
    del store.values["/ibid/prod/CRON_SECRET"], store.values["/ibid/prod/DATABASE_URL"]
    assert run("parameters", "prod") == 0
    values = {name.removeprefix("/ibid/prod/"): value for name, value in store.values.items()}
    settings = values.pop("env")
    assert store.kinds == dict.fromkeys(store.values, "SecureString") | {"/ibid/prod/env": "String"}
    assert len(values.pop("CRON_SECRET")) == 64
    assert values == {
        "DATABASE_URL": "postgresql://postgres.ref:p#$s@pooler:6543/postgres?sslmode=require",
        "SUPABASE_SECRET_KEY": "sb_secret_canary",
        "OPENAI_API_KEY": "sk-canary",
        "MISTRAL_API_KEY": "canary-of-mistral",
        "WEBHOOK_SECRET": "canary of WEBHOOK_SECRET",
        "METRICS_TOKEN": "canary of METRICS_TOKEN",
    }
    assert "canary" not in settings + "".join(capfd.readouterr())
    before = dotenv_values(repository / ".env.prod", interpolate=False)
    (repository / "fetched").write_text(settings, encoding="utf-8")
    names = ["AWS_REGION", "SUPABASE_URL", "EMBEDDING_QUERY_PREFIX", "CHAT_MODEL"]
    assert dotenv_values(repository / "fetched", interpolate=False) == {name: before[name] for name in names}


def test_a_deployment_gets_the_settings_and_no_secret(store: ParameterStore, repository: Path) -> None:
    """SEC-8"""
    assert run("deploy", "prod") == 0
    umask, arguments, *environment = (repository / "deployed").read_text(encoding="utf-8").splitlines()
    variables = dict(line.split("=", 1) for line in environment if "=" in line)
    assert (int(umask, 8), arguments) == (0o077, "deploy --stage prod --region eu-west-3")
    assert (variables["CHAT_MODEL"], variables["EMBEDDING_API_KEY_NAME"]) == ("gpt-4.1-mini", "OPENAI_API_KEY")
    assert not variables.keys() & {*SECRETS, "MISTRAL_API_KEY"}
    assert not [value for value in variables.values() if "canary" in value]


def test_a_new_secret_changes_the_deployment_so_that_functions_start_anew(
    store: ParameterStore, repository: Path
) -> None:
    """SEC-8: AWS changes nothing for a template that has not changed."""

    def read_version() -> str:
        assert run("deploy", "prod") == 0
        lines = (repository / "deployed").read_text(encoding="utf-8").splitlines()
        return next(line for line in lines if line.startswith("SECRETS_VERSION="))

    before = read_version()
    assert read_version() == before
    store.versions["/ibid/prod/OPENAI_API_KEY"] += 1
    assert read_version() != before


def test_a_deployment_without_its_parameters_says_what_to_set(
    store: ParameterStore, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del store.values["/ibid/prod/DATABASE_URL"], store.values["/ibid/prod/OPENAI_API_KEY"]
    (repository / ".env.prod").write_text("CHAT_MODEL=gpt-4.1-mini\n", encoding="utf-8")
    assert run("deploy", "prod") == 1
    assert capsys.readouterr().err == (
        "ibid: not deployed, because this is not set: the parameter /ibid/prod/DATABASE_URL, the parameter"
        " /ibid/prod/OPENAI_API_KEY, SUPABASE_URL in .env.prod.\nWrite it into .env.prod and run make parameters"
        " STAGE=prod\n"
    )
    assert not (repository / "deployed").exists()


def test_a_refusal_of_aws_is_shown(
    store: ParameterStore, repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    assert run("deploy", "prod") == 1
    assert "aws ssm get-parameters failed: " in (shown := capsys.readouterr().err)
    assert "InvalidSignatureException" in shown


def test_a_stage_without_a_file_says_where_to_get_it(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("deploy", "test") == 1
    assert "aws ssm get-parameter --name /ibid/test/env" in capsys.readouterr().err
