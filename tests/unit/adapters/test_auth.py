"""SEC-1: which bearer tokens are accepted."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from functions.adapters import auth
from functions.core import errors, models
from tests.support.fakes import key_server
from tests.support.fakes.key_server import EC_KEY, RSA_KEY, USER, KeyServer, public

SECRET = b"a secret of at least thirty-two bytes"


@pytest.fixture
def server() -> Iterator[KeyServer]:
    with key_server.serve_keys() as running:
        yield running


def claims(issuer: str = auth.LOCAL_ISSUER, **changes: Any) -> dict[str, Any]:
    return key_server.claims(issuer, **changes)


def sign(body: dict[str, Any], key: Any = SECRET, algorithm: str = "HS256", kid: str | None = None) -> str:
    return key_server.sign(body, key, algorithm, kid)


def issuer_of(server: KeyServer) -> str:
    return server.issuer


def test_a_local_token_signs_the_local_user_in() -> None:
    user_id = auth.local_user_id("Zoë")
    user = auth.JwtAuthenticator.for_local(SECRET).authenticate(auth.issue_local_token(SECRET, user_id, "Zoë"))
    assert (user.id, user.is_admin) == (user_id, False)
    assert (user.claims["role"], user.claims["sub"], user.claims["user_metadata"]) == (
        "authenticated",
        user_id,
        {"name": "Zoë"},
    )


def test_local_user_ids_are_the_same_on_every_machine() -> None:
    assert auth.local_user_id("local") == str(uuid.uuid5(auth.LOCAL_USERS, "local"))
    assert auth.local_user_id("  ZOE\u0308 ") == auth.local_user_id("zo\u00eb")
    assert auth.local_user_id("a") != auth.local_user_id("b")


def test_only_app_metadata_makes_an_administrator() -> None:
    local = auth.JwtAuthenticator.for_local(SECRET)
    assert local.authenticate(auth.issue_local_token(SECRET, USER, "x", admin=True)).is_admin
    for metadata in (
        {"user_metadata": {"role": "admin"}},
        {"app_metadata": ["admin"]},
        {"app_metadata": {"role": "user"}},
    ):
        assert not local.authenticate(sign(claims(**metadata))).is_admin


@pytest.mark.parametrize(
    ("key", "algorithm", "kid"), [(EC_KEY, "ES256", "ec"), (RSA_KEY, "RS256", "rsa")], ids=["ec", "rsa"]
)
def test_tokens_of_a_supabase_project_are_verified_with_its_keys(
    server: KeyServer, key: Any, algorithm: str, kid: str
) -> None:
    body = claims(issuer_of(server), email="zoe@example.org")
    user = auth.JwtAuthenticator.for_supabase(server.url, algorithm).authenticate(sign(body, key, algorithm, kid))
    assert user == models.User(USER, is_admin=False, claims=body)


def test_tokens_of_a_project_with_a_legacy_secret_are_verified() -> None:
    project = auth.JwtAuthenticator.for_shared_secret("https://x.supabase.co/", SECRET.decode())
    assert project.authenticate(sign(claims("https://x.supabase.co/auth/v1"))).id == USER


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"exp": 1_000_000_000}, "expired"),
        ({"exp": None}, "not valid"),
        ({"iss": "https://elsewhere.example"}, "not valid"),
        ({"iss": None}, "not valid"),
        ({"aud": "somebody else"}, "not valid"),
        ({"aud": None}, "not valid"),
        ({"nbf": 4_000_000_000}, "not valid"),
        ({"role": "anon"}, "does not belong to a signed-in user"),
        ({"role": "service_role"}, "does not belong to a signed-in user"),
        ({"role": ["authenticated"]}, "does not belong to a signed-in user"),
        ({"role": None}, "does not belong to a signed-in user"),
        ({"sub": None}, "not valid"),
        ({"sub": "not a uuid"}, "names no user"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_invalid_claims_are_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(errors.NotSignedInError, match=reason):
        auth.JwtAuthenticator.for_local(SECRET).authenticate(sign(claims(**changes)))


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "é.é.é", "Bearer x.y.z", "." * 5, "a" * 20_000], ids=repr)
def test_a_malformed_token_is_refused_with_a_sentence(server: KeyServer, token: str) -> None:
    for authenticator in (auth.JwtAuthenticator.for_local(SECRET), auth.JwtAuthenticator.for_supabase(server.url)):
        with pytest.raises(errors.NotSignedInError):
            authenticator.authenticate(token)


def test_the_token_cannot_choose_its_algorithm(server: KeyServer) -> None:
    """No signature at all, the public key used as a shared secret, and a key of the other kind."""
    body = claims(issuer_of(server))
    unsigned = jwt.encode(body, "", algorithm="none", headers={"kid": "ec"})
    other_kind = sign(body, RSA_KEY, "RS256", "rsa")
    project = auth.JwtAuthenticator.for_supabase(server.url, "ES256")
    for token in (key_server.confuse(body, EC_KEY, "ec"), unsigned, other_kind, sign(body, SECRET, "HS256", "ec")):
        with pytest.raises(errors.NotSignedInError):
            project.authenticate(token)


def test_a_local_secret_does_not_accept_unsigned_or_foreign_tokens() -> None:
    local = auth.JwtAuthenticator.for_local(SECRET)
    for token in (
        jwt.encode(claims(), "", algorithm="none"),
        sign(claims(), SECRET + b"!"),
        sign(claims(), SECRET * 2, "HS512"),
    ):
        with pytest.raises(errors.NotSignedInError):
            local.authenticate(token)


def test_a_key_inside_the_token_is_ignored(server: KeyServer) -> None:
    stranger = ec.generate_private_key(ec.SECP256R1())
    token = jwt.encode(
        claims(issuer_of(server)), stranger, algorithm="ES256", headers={"kid": "ec", "jwk": public(stranger, "ec")}
    )
    with pytest.raises(errors.NotSignedInError):
        auth.JwtAuthenticator.for_supabase(server.url).authenticate(token)


class Clock:
    """A clock that moves only when a test sets it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def authenticate(server: KeyServer, clock: Clock) -> Callable[[str], models.User]:
    keys = auth.KeySet(server.url, clock=clock, timeout=0.5)
    return auth.JwtAuthenticator(keys, issuer=issuer_of(server)).authenticate


def token_of(server: KeyServer) -> str:
    return sign(claims(issuer_of(server)), EC_KEY, "ES256", "ec")


def test_keys_are_fetched_once_in_five_minutes(
    server: KeyServer, clock: Clock, authenticate: Callable[[str], models.User]
) -> None:
    for seconds, visits in ((0, 1), (299, 1), (1, 2), (299, 2)):
        clock.now += seconds
        authenticate(token_of(server))
        assert server.visits == visits


def test_unknown_keys_cause_one_fetch_in_half_a_minute(
    server: KeyServer, clock: Clock, authenticate: Callable[[str], models.User]
) -> None:
    authenticate(sign(claims(issuer_of(server)), EC_KEY, "ES256", "ec"))
    clock.now += 31

    def authenticate_quietly(number: int) -> None:
        with pytest.raises(errors.NotSignedInError, match="unknown key"):
            authenticate(sign(claims(issuer_of(server)), EC_KEY, "ES256", f"made up {number}"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(authenticate_quietly, range(40)))
    assert server.visits == 2


def test_a_new_key_of_the_project_is_fetched(
    server: KeyServer, clock: Clock, authenticate: Callable[[str], models.User]
) -> None:
    authenticate(sign(claims(issuer_of(server)), EC_KEY, "ES256", "ec"))
    rotated = ec.generate_private_key(ec.SECP256R1())
    server.keys = [public(rotated, "new")]
    clock.now += 31
    assert authenticate(sign(claims(issuer_of(server)), rotated, "ES256", "new")).id == USER
    with pytest.raises(errors.NotSignedInError):
        authenticate(sign(claims(issuer_of(server)), EC_KEY, "ES256", "ec"))


TROUBLE: dict[str, dict[str, Any]] = {
    "error": {"status": 500},
    "gone": {"status": 404, "body": b"<html>"},
    "elsewhere": {"status": 302, "location": "http://127.0.0.1:9/"},
    "no-json": {"body": b"<html>not found</html>"},
    "no-text": {"body": b"\xff\xfe\x00"},
    "nothing": {"body": b""},
    "no-object": {"body": b"[]"},
    "no-keys": {"body": b"{}"},
    "number": {"body": b'{"keys": 5}'},
    "null": {"body": b'{"keys": null}'},
    "object": {"body": b'{"keys": {"kid": "ec"}}'},
    "empty": {"body": b'{"keys": []}'},
    "deep": {"body": b"[" * 100_000},
    "huge": {"body": b" " * (auth.MAX_KEY_SET_BYTES + 1)},
    "slow": {"delay": 1.0},
    "no-http": {"raw": b"SSH-2.0-OpenSSH_9.9\r\n"},
    "hung-up": {"raw": b""},
    "cut": {"raw": b'HTTP/1.0 200 OK\r\ncontent-length: 500\r\n\r\n{"keys": ['},
}


@pytest.fixture(params=list(TROUBLE.values()), ids=list(TROUBLE))
def trouble(request: pytest.FixtureRequest, server: KeyServer) -> Callable[[], None]:
    """Makes the server of the keys fail in one way."""

    def break_server() -> None:
        for name, value in request.param.items():
            setattr(server, name, value)

    return break_server


def test_without_keys_every_token_is_refused_and_the_server_is_asked_once(
    server: KeyServer, clock: Clock, authenticate: Callable[[str], models.User], trouble: Callable[[], None]
) -> None:
    trouble()
    for _ in range(5):
        with pytest.raises(errors.UnavailableError, match="keys that verify sign-ins"):
            authenticate(token_of(server))
    assert server.visits == 1
    server.recover()
    clock.now += 31
    assert authenticate(token_of(server)).id == USER


def test_good_keys_survive_a_failed_fetch_for_ten_minutes(
    server: KeyServer, clock: Clock, authenticate: Callable[[str], models.User], trouble: Callable[[], None]
) -> None:
    authenticate(token_of(server))
    trouble()
    clock.now += 301
    assert authenticate(token_of(server)).id == USER
    with pytest.raises(errors.UnavailableError):
        authenticate(sign(claims(issuer_of(server)), EC_KEY, "ES256", "perhaps a new one"))
    assert authenticate(token_of(server)).id == USER
    clock.now += 299
    with pytest.raises(errors.UnavailableError):
        authenticate(token_of(server))
    server.recover()
    clock.now += 31
    assert authenticate(token_of(server)).id == USER


def test_a_revoked_key_is_refused_after_ten_minutes(
    server: KeyServer, clock: Clock, authenticate: Callable[[str], models.User]
) -> None:
    authenticate(token_of(server))
    server.keys = [public(RSA_KEY, "rsa")]
    clock.now += 600
    with pytest.raises(errors.NotSignedInError, match="unknown key"):
        authenticate(token_of(server))


def test_one_request_waits_for_new_keys_while_the_others_continue(
    server: KeyServer, clock: Clock, authenticate: Callable[[str], models.User]
) -> None:
    token = token_of(server)
    authenticate(token)
    clock.now += 301
    server.delay = 0.4
    first = threading.Thread(target=authenticate, args=(token,))
    first.start()
    while server.visits < 2:
        time.sleep(0.005)
    for _ in range(20):
        authenticate(token)
    assert first.is_alive()
    first.join()
    assert server.visits == 2


def test_a_key_set_that_arrives_too_slowly_times_out(clock: Clock) -> None:
    """Every byte is within the socket's timeout, the whole response is not."""
    with key_server.serve_drops() as url:
        keys = auth.KeySet(url, clock=clock, timeout=0.3)
        with pytest.raises(errors.UnavailableError):
            keys.find(sign(claims("x"), EC_KEY, "ES256", "ec"))


def test_keys_of_other_kinds_in_the_set_are_skipped(
    server: KeyServer, authenticate: Callable[[str], models.User]
) -> None:
    server.keys[:0] = [{"kty": "oct", "k": "c2VjcmV0", "kid": "ec", "alg": "HS256"}, {"kty": "new"}, "nonsense"]
    assert authenticate(sign(claims(issuer_of(server)), EC_KEY, "ES256", "ec")).id == USER


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: auth.SharedSecret(b"short"),
        lambda: auth.KeySet("file:///etc/passwd"),
        lambda: auth.KeySet("https://x", ("HS256",)),
        lambda: auth.KeySet("https://x", ("none",)),
        lambda: auth.KeySet("https://x", ()),
    ],
    ids=["short secret", "file", "shared", "none", "empty"],
)
def test_a_dangerous_configuration_is_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"secret must have at least|address must start|algorithm of a key set"):
        wrong()
