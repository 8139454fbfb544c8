"""The parameter store, with a stand-in that checks each signature with botocore."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from functions.adapters import parameter_store
from functions.core import errors
from functions.runtime.config import Config, read_config
from functions.runtime.services import Services
from tests.support.fakes import parameter_store as fake
from tests.support.fakes.json_server import Fault
from tests.support.fakes.parameter_store import BROKEN, THROTTLED, ParameterStore

PATH = "/ibid/test"
DSN = "postgresql://somebody:wörd@127.0.0.1:1/nothing"
NAMES = ["DATABASE_URL", "OPENAI_API_KEY", "MISTRAL_API_KEY"]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ParameterStore]:
    """A store with two parameters, of which the function `chat` may read what NAMES names."""
    values = {f"{PATH}/DATABASE_URL": DSN, f"{PATH}/MISTRAL_API_KEY": "sk-mistral"}
    readable = {"chat": {f"{PATH}/{name}" for name in NAMES}}
    with ParameterStore(values, readable=readable) as running:
        for name, value in {
            "AWS_ENDPOINT_URL_SSM": running.base_url,
            "AWS_REGION": "eu-central-1",
            "AWS_ACCESS_KEY_ID": "AKIA-chat",
            "AWS_SECRET_ACCESS_KEY": fake.SECRET_KEY,
            "AWS_SESSION_TOKEN": "a token",
            "PARAMETER_PATH": PATH,
            "SECRETS": ",".join(NAMES),
        }.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(parameter_store, "_PAUSES", (0, 0, 0))
        yield running


def test_the_secrets_of_a_function_are_read_in_one_call(store: ParameterStore) -> None:
    """SEC-8"""
    config = read_config()
    assert config.database_url is not None
    assert (config.database_url.get_secret_value(), config.openai_api_key) == (DSN, None)
    assert [request["body"]["Names"] for request in store.requests] == [[f"{PATH}/{name}" for name in NAMES]]


def test_a_key_that_an_administrator_names_is_found_among_the_parameters(store: ParameterStore) -> None:
    """SEC-8"""
    config = read_config()
    names = ["MISTRAL_API_KEY", "OPENAI_API_KEY", "DATABASE_URL", None]
    assert [config.find_api_key(name) for name in names[:2] + names[3:]] == ["sk-mistral", None, None]


def test_a_missing_parameter_is_named(store: ParameterStore) -> None:
    """SEC-8"""
    del store.values[f"{PATH}/DATABASE_URL"]
    services = Services(read_config())
    with pytest.raises(errors.DatabaseUnavailableError, match=r"^The parameter /ibid/test/DATABASE_URL is not set\."):
        _ = services.database


@pytest.mark.parametrize("fault", [THROTTLED, BROKEN, Fault(503, body=b"")], ids=["throttled", "broken", "down"])
def test_a_call_that_may_succeed_later_is_repeated(store: ParameterStore, fault: Fault) -> None:
    """SEC-8"""
    store.script(*[fault] * 3)
    assert read_config().database_url is not None
    assert len(store.requests) == 4


def test_a_store_that_stays_unavailable_is_reported_and_asked_again_the_next_time(store: ParameterStore) -> None:
    """SEC-8"""
    store.script(*[THROTTLED] * 4)
    with pytest.raises(errors.UnavailableError, match=r"^The parameters in /ibid/test could not be read"):
        read_config()
    assert read_config().database_url is not None


def test_a_role_that_may_not_read_a_parameter_is_reported_at_once(
    store: ParameterStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-8"""
    monkeypatch.setenv("SECRETS", "DATABASE_URL,CRON_SECRET")
    with pytest.raises(errors.UnavailableError, match=r"^The role of this function may not read its parameters"):
        read_config()
    assert len(store.requests) == 1


def test_a_wrong_signature_is_refused(store: ParameterStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    with pytest.raises(errors.UnavailableError, match="could not be read"):
        read_config()


def test_without_a_path_no_store_is_asked(store: ParameterStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """FIX-7"""
    monkeypatch.delenv("PARAMETER_PATH")
    assert (read_config(), store.requests) == (Config(), [])
