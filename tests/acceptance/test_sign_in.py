"""SEC-1 over HTTP: which tokens the whole application accepts, with a project's keys served at a real address."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from pydantic import SecretStr

from functions.adapters import auth
from tests.support.fakes import key_server
from tests.support.fakes.key_server import EC_KEY, RSA_KEY, USER, KeyServer, claims, sign
from tests.support.local_server import LocalServer, problem_of, run_local_server

LEGACY_SECRET = "the legacy secret of a project, 40 bytes"
OTHER_USER = "7b7f5c1e-50fb-4a2c-9d0e-1f3c5a6b7d8e"
Make = Callable[[str], str]


@pytest.fixture(scope="module")
def keys() -> Iterator[KeyServer]:
    with key_server.serve_keys() as running:
        yield running


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def signing(module_database: str, home: Path, keys: KeyServer) -> Iterator[LocalServer]:
    """A project with signing keys of Supabase's default kind."""
    with run_local_server(module_database, home, worker=False, supabase_url=keys.url) as running:
        yield running


@pytest.fixture(scope="module")
def legacy(module_database: str, home: Path, keys: KeyServer) -> Iterator[LocalServer]:
    """A project that still signs with its shared secret."""
    secret = SecretStr(LEGACY_SECRET)
    with run_local_server(
        module_database, home, worker=False, supabase_url=keys.url, supabase_jwt_secret=secret
    ) as running:
        yield running


def list_documents(server: LocalServer, token: str) -> httpx.Response:
    return server.http.get("/api/rag/documents", headers={"Authorization": f"Bearer {token}"})


def with_claims(**changes: Any) -> Make:
    return lambda issuer: sign(claims(issuer, **changes), EC_KEY, "ES256", "ec")


def sign_as_stranger(issuer: str) -> str:
    """Signs with another key under the key id of the project."""
    return sign(claims(issuer), ec.generate_private_key(ec.SECP256R1()), "ES256", "ec")


def change_signature(issuer: str) -> str:
    head, body, signature = sign(claims(issuer), EC_KEY, "ES256", "ec").split(".")
    return f"{head}.{body}.{signature[::-1]}"


def change_claims(issuer: str) -> str:
    """Replaces the claims and keeps the signature."""
    mine, hers = (sign(claims(issuer, sub=sub), EC_KEY, "ES256", "ec").split(".") for sub in (USER, OTHER_USER))
    return f"{mine[0]}.{hers[1]}.{mine[2]}"


REFUSED: dict[str, Make] = {
    "expired": with_claims(exp=int(time.time()) - 60),
    "endless": with_claims(exp=None),
    "not-yet": with_claims(nbf=int(time.time()) + 3600),
    "other-issuer": with_claims(iss="https://elsewhere.supabase.co/auth/v1"),
    "issuer-prefix": lambda issuer: sign(claims(f"{issuer}/"), EC_KEY, "ES256", "ec"),
    "no-issuer": with_claims(iss=None),
    "other-audience": with_claims(aud="somebody"),
    "no-audience": with_claims(aud=None),
    "anon": with_claims(role="anon"),
    "service-role": with_claims(role="service_role"),
    "worker-role": with_claims(role="rag_worker"),
    "no-role": with_claims(role=None),
    "no-subject": with_claims(sub=None),
    "odd-subject": with_claims(sub="admin"),
    "unsigned": lambda issuer: jwt.encode(claims(issuer), "", algorithm="none", headers={"kid": "ec"}),
    "public-key-as-secret": lambda issuer: key_server.confuse(claims(issuer), EC_KEY, "ec"),
    "shared-secret": lambda issuer: sign(claims(issuer), LEGACY_SECRET, "HS256", "ec"),
    "unknown-key": lambda issuer: sign(claims(issuer), EC_KEY, "ES256", "made up"),
    "no-key-id": lambda issuer: sign(claims(issuer), EC_KEY, "ES256"),
    "other-kind": lambda issuer: sign(claims(issuer), RSA_KEY, "RS256", "rsa"),
    "stranger": sign_as_stranger,
    "changed-signature": change_signature,
    "changed-claims": change_claims,
    "publishable-key": lambda issuer: "sb_publishable_ACJWlzQHlZjBrEguHvfOxg_3BJgxAaH",
    "secret-key": lambda issuer: "sb_secret_N7UND0UgjKTVK-Uodkm0Hg_xSvEMPvz",
    "nothing": lambda issuer: ".",
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_an_invalid_token_gets_a_401(signing: LocalServer, keys: KeyServer, make: Make) -> None:
    response = list_documents(signing, make(keys.issuer))
    assert problem_of(response) == (401, "not_signed_in")
    assert response.headers["www-authenticate"].startswith("Bearer")


def test_a_valid_token_is_accepted(signing: LocalServer, keys: KeyServer) -> None:
    response = list_documents(signing, with_claims()(keys.issuer))
    assert (response.status_code, response.json()) == (200, {"items": [], "next_cursor": None})


@pytest.mark.parametrize("path", ["/api/local/token", "/storage/v1/object/sign/documents/a"])
def test_with_supabase_the_local_routes_do_not_exist(signing: LocalServer, path: str) -> None:
    """With SUPABASE_URL no route hands out tokens."""
    for method in ("POST", "GET", "PUT"):
        assert signing.http.request(method, path).status_code == 404


def test_with_supabase_a_local_token_is_refused(signing: LocalServer, keys: KeyServer) -> None:
    secret = signing.services.local_secret
    for token in (
        auth.issue_local_token(secret, OTHER_USER, "x", admin=True),
        jwt.encode(claims(keys.issuer), secret, algorithm="HS256", headers={"kid": "ec"}),
    ):
        assert problem_of(list_documents(signing, token)) == (401, "not_signed_in")


LEGACY_REFUSED = {
    "expired": lambda issuer: sign(claims(issuer, exp=int(time.time()) - 60), LEGACY_SECRET, "HS256"),
    "other-issuer": lambda issuer: sign(claims("https://elsewhere"), LEGACY_SECRET, "HS256"),
    "other-audience": lambda issuer: sign(claims(issuer, aud="x"), LEGACY_SECRET, "HS256"),
    "anon-key": lambda issuer: sign(claims(issuer, role="anon", sub=None, aud=None), LEGACY_SECRET, "HS256"),
    "service-key": lambda issuer: sign(claims(issuer, role="service_role", sub=None), LEGACY_SECRET, "HS256"),
    "unsigned": lambda issuer: jwt.encode(claims(issuer), "", algorithm="none"),
    "other-secret": lambda issuer: sign(claims(issuer), LEGACY_SECRET + "!", "HS256"),
    "signing-key": lambda issuer: sign(claims(issuer), EC_KEY, "ES256", "ec"),
}


@pytest.mark.parametrize("make", LEGACY_REFUSED.values(), ids=LEGACY_REFUSED)
def test_a_project_with_a_shared_secret_refuses_the_same_tokens(
    legacy: LocalServer, keys: KeyServer, make: Make
) -> None:
    assert list_documents(legacy, sign(claims(keys.issuer), LEGACY_SECRET, "HS256")).status_code == 200
    assert problem_of(list_documents(legacy, make(keys.issuer))) == (401, "not_signed_in")


@pytest.mark.parametrize(
    "setting",
    [{"supabase_jwt_algorithm": "HS256"}, {"supabase_jwt_algorithm": "none"}, {"supabase_jwt_secret": SecretStr("x")}],
    ids=["shared", "none", "short-secret"],
)
def test_a_dangerous_configuration_refuses_everybody_with_a_503(
    module_database: str, home: Path, keys: KeyServer, setting: dict[str, Any]
) -> None:
    with run_local_server(module_database, home, worker=False, supabase_url=keys.url, **setting) as running:
        for token in (with_claims()(keys.issuer), jwt.encode(claims(keys.issuer), "", algorithm="none")):
            response = list_documents(running, token)
            assert problem_of(response) == (503, "unavailable")
            assert "Sign-in is not set up" in response.json()["detail"]


def test_a_flood_of_unknown_key_ids_is_refused_with_few_fetches_of_the_keys(
    signing: LocalServer, keys: KeyServer
) -> None:
    good = with_claims()(keys.issuer)
    assert list_documents(signing, good).status_code == 200
    before = keys.visits
    flood = [sign(claims(keys.issuer), EC_KEY, "ES256", f"made up {n}") for n in range(60)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda token: list_documents(signing, token), flood))
    assert {problem_of(answer) for answer in answers} == {(401, "not_signed_in")}
    assert keys.visits - before <= 1
    assert list_documents(signing, good).status_code == 200


class Clock:
    """A clock that tests set."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(signing: LocalServer, keys: KeyServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """Gives the running server a clock that tests set; the project gets its first key back afterwards."""
    clock = Clock()
    again = auth.KeySet(f"{keys.issuer}/.well-known/jwks.json", ("ES256",), clock=clock, timeout=1)
    monkeypatch.setitem(vars(signing.services), "authenticator", auth.JwtAuthenticator(again, issuer=keys.issuer))
    before = list(keys.keys)
    yield clock
    keys.recover()
    keys.keys = before


def test_keys_are_rotated_without_a_restart(signing: LocalServer, keys: KeyServer, clock: Clock) -> None:
    """In Supabase's steps: the new key stands by, then signs; the old key stays valid for a while, then is revoked."""
    new_key = ec.generate_private_key(ec.SECP256R1())
    old, new = (sign(claims(keys.issuer), key, "ES256", kid) for key, kid in ((EC_KEY, "ec"), (new_key, "new")))

    def statuses() -> tuple[int, int]:
        return list_documents(signing, old).status_code, list_documents(signing, new).status_code

    assert statuses() == (200, 401)
    keys.keys = [key_server.public(new_key, "new"), key_server.public(EC_KEY, "ec")]
    clock.now += 31
    assert statuses() == (200, 200)
    keys.keys = keys.keys[:1]
    clock.now += 600
    assert statuses() == (401, 200)


def test_an_outage_of_the_sign_in_server_is_bridged_for_a_while_and_then_reported(
    signing: LocalServer, keys: KeyServer, clock: Clock
) -> None:
    token = with_claims()(keys.issuer)
    assert list_documents(signing, token).status_code == 200
    keys.body = b'{"keys": []}'
    clock.now += 400
    assert list_documents(signing, token).status_code == 200
    assert problem_of(list_documents(signing, sign_as_new(keys.issuer))) == (503, "unavailable")
    clock.now += 200
    response = list_documents(signing, token)
    assert problem_of(response) == (503, "unavailable")
    assert "Try again in a moment" in response.json()["detail"]
    keys.recover()
    clock.now += 31
    assert list_documents(signing, token).status_code == 200


def sign_as_new(issuer: str) -> str:
    return sign(claims(issuer), EC_KEY, "ES256", "perhaps new")
