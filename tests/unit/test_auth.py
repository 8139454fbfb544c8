"""SEC-1: which bearer tokens are believed."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from functions.adapters import auth
from functions.core import errors, models

SECRET = b"a secret of at least thirty-two bytes"
USER = "3f0d1a52-5a0e-4f3a-9d5e-8a3b7f1c2d4e"


@dataclass
class KeyServer:
    """A JWKS address that counts its visitors."""

    url: str = ""
    keys: list[dict[str, Any]] = field(default_factory=list)
    visits: int = 0
    broken: bool = False


@contextmanager
def serve_keys() -> Iterator[KeyServer]:
    state = KeyServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.visits += 1
            body = json.dumps({"keys": state.keys}).encode()
            self.send_response(500 if state.broken else 200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield state
        server.shutdown()
        thread.join()


@pytest.fixture
def server() -> Iterator[KeyServer]:
    with serve_keys() as running:
        running.keys = [public(EC_KEY, "ec"), public(RSA_KEY, "rsa")]
        yield running


EC_KEY = ec.generate_private_key(ec.SECP256R1())
RSA_KEY = rsa.generate_private_key(65537, 2048)


def public(key: Any, kid: str) -> dict[str, Any]:
    kind = jwt.algorithms.ECAlgorithm if isinstance(key, ec.EllipticCurvePrivateKey) else jwt.algorithms.RSAAlgorithm
    algorithm = "ES256" if kind is jwt.algorithms.ECAlgorithm else "RS256"
    return {**kind.to_jwk(key.public_key(), as_dict=True), "kid": kid, "alg": algorithm, "use": "sig"}


def claims(issuer: str = auth.LOCAL_ISSUER, **changes: Any) -> dict[str, Any]:
    now = int(time.time())
    standard = {
        "iss": issuer,
        "aud": "authenticated",
        "role": "authenticated",
        "sub": USER,
        "iat": now,
        "exp": now + 60,
    }
    return {name: value for name, value in {**standard, **changes}.items() if value is not None}


def sign(body: dict[str, Any], key: Any = SECRET, algorithm: str = "HS256", kid: str | None = None) -> str:
    return jwt.encode(body, key, algorithm=algorithm, headers={"kid": kid} if kid else None)


def issuer_of(server: KeyServer) -> str:
    return f"{server.url}/auth/v1"


def test_a_local_token_signs_the_local_user_in() -> None:
    user_id = auth.local_user_id("Zoë")
    user = auth.JwtAuthenticator.for_local(SECRET).authenticate(auth.issue_local_token(SECRET, user_id, "Zoë"))
    assert (user.id, user.is_admin) == (user_id, False)
    assert (user.claims["role"], user.claims["sub"], user.claims["user_metadata"]) == (
        "authenticated",
        user_id,
        {"name": "Zoë"},
    )


def test_local_ids_are_the_same_everywhere() -> None:
    assert auth.local_user_id("local") == str(uuid.uuid5(auth.LOCAL_USERS, "local"))
    assert auth.local_user_id("  ZOE\u0308 ") == auth.local_user_id("zo\u00eb")
    assert auth.local_user_id("a") != auth.local_user_id("b")


def test_an_administrator_is_named_by_app_metadata_only() -> None:
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


def test_a_project_with_a_legacy_secret() -> None:
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
        ({"role": "anon"}, "not one of a signed-in user"),
        ({"role": "service_role"}, "not one of a signed-in user"),
        ({"role": ["authenticated"]}, "not one of a signed-in user"),
        ({"role": None}, "not one of a signed-in user"),
        ({"sub": None}, "not valid"),
        ({"sub": "not a uuid"}, "names no user"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_claims_that_are_not_believed(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(errors.NotSignedInError, match=reason):
        auth.JwtAuthenticator.for_local(SECRET).authenticate(sign(claims(**changes)))


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "é.é.é", "Bearer x.y.z", "." * 5, "a" * 20_000], ids=repr)
def test_what_is_no_token_is_refused_in_words(server: KeyServer, token: str) -> None:
    for authenticator in (auth.JwtAuthenticator.for_local(SECRET), auth.JwtAuthenticator.for_supabase(server.url)):
        with pytest.raises(errors.NotSignedInError):
            authenticator.authenticate(token)


def test_the_algorithm_is_ours_to_choose(server: KeyServer) -> None:
    """No signature at all, the public key used as a shared secret, and a key of the other kind."""
    body = claims(issuer_of(server))
    pem = EC_KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    header = jwt.utils.base64url_encode(b'{"alg":"HS256","kid":"ec","typ":"JWT"}')
    message = header + b"." + jwt.utils.base64url_encode(json.dumps(body).encode())
    confused = (
        message
        + b"."
        + jwt.utils.base64url_encode(
            jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(message, pem)
        )
    )
    unsigned = jwt.encode(body, None, algorithm="none", headers={"kid": "ec"})
    other_kind = sign(body, RSA_KEY, "RS256", "rsa")
    project = auth.JwtAuthenticator.for_supabase(server.url, "ES256")
    for token in (confused.decode(), unsigned, other_kind, sign(body, SECRET, "HS256", "ec")):
        with pytest.raises(errors.NotSignedInError):
            project.authenticate(token)


def test_a_local_secret_does_not_accept_unsigned_or_foreign_tokens() -> None:
    local = auth.JwtAuthenticator.for_local(SECRET)
    for token in (
        jwt.encode(claims(), None, algorithm="none"),
        sign(claims(), SECRET + b"!"),
        sign(claims(), SECRET * 2, "HS512"),
    ):
        with pytest.raises(errors.NotSignedInError):
            local.authenticate(token)


def test_a_key_in_the_token_is_not_used(server: KeyServer) -> None:
    stranger = ec.generate_private_key(ec.SECP256R1())
    token = jwt.encode(
        claims(issuer_of(server)), stranger, algorithm="ES256", headers={"kid": "ec", "jwk": public(stranger, "ec")}
    )
    with pytest.raises(errors.NotSignedInError):
        auth.JwtAuthenticator.for_supabase(server.url).authenticate(token)


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def authenticate(server: KeyServer, clock: Clock) -> Callable[[str], models.User]:
    keys = auth.KeySet(server.url, clock=clock)
    return auth.JwtAuthenticator(keys, issuer=issuer_of(server)).authenticate


def test_keys_are_fetched_once_in_ten_minutes(
    server: KeyServer, clock: Clock, authenticate: Callable[[str], models.User]
) -> None:
    token = sign(claims(issuer_of(server)), EC_KEY, "ES256", "ec")
    for seconds, visits in ((0, 1), (599, 1), (1, 2)):
        clock.now += seconds
        authenticate(token)
        assert server.visits == visits


def test_unknown_keys_cause_one_fetch_in_half_a_minute(
    server: KeyServer, clock: Clock, authenticate: Callable[[str], models.User]
) -> None:
    authenticate(sign(claims(issuer_of(server)), EC_KEY, "ES256", "ec"))
    clock.now += 31

    def knock(number: int) -> None:
        with pytest.raises(errors.NotSignedInError, match="unknown key"):
            authenticate(sign(claims(issuer_of(server)), EC_KEY, "ES256", f"made up {number}"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(knock, range(40)))
    assert server.visits == 2


def test_a_new_key_of_the_project_is_found(
    server: KeyServer, clock: Clock, authenticate: Callable[[str], models.User]
) -> None:
    authenticate(sign(claims(issuer_of(server)), EC_KEY, "ES256", "ec"))
    rotated = ec.generate_private_key(ec.SECP256R1())
    server.keys = [public(rotated, "new")]
    clock.now += 31
    assert authenticate(sign(claims(issuer_of(server)), rotated, "ES256", "new")).id == USER
    with pytest.raises(errors.NotSignedInError):
        authenticate(sign(claims(issuer_of(server)), EC_KEY, "ES256", "ec"))


def test_while_the_keys_cannot_be_had_nobody_is_let_in_and_the_server_is_left_in_peace(
    server: KeyServer, clock: Clock, authenticate: Callable[[str], models.User]
) -> None:
    server.broken = True
    token = sign(claims(issuer_of(server)), EC_KEY, "ES256", "ec")
    for _ in range(5):
        with pytest.raises(errors.UnavailableError, match="keys for checking sign-ins"):
            authenticate(token)
    assert server.visits == 1
    server.broken = False
    clock.now += 31
    assert authenticate(token).id == USER


def test_keys_of_other_kinds_in_the_set_are_passed_over(
    server: KeyServer, authenticate: Callable[[str], models.User]
) -> None:
    server.keys[:0] = [{"kty": "oct", "k": "c2VjcmV0", "kid": "ec", "alg": "HS256"}, {"kty": "new"}, "nonsense"]
    assert authenticate(sign(claims(issuer_of(server)), EC_KEY, "ES256", "ec")).id == USER


def test_a_set_without_keys_lets_nobody_in(server: KeyServer, authenticate: Callable[[str], models.User]) -> None:
    server.keys = []
    with pytest.raises(errors.NotSignedInError):
        authenticate(sign(claims(issuer_of(server)), EC_KEY, "ES256", "ec"))


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
    with pytest.raises(ValueError, match=r"secret has at least|address starts|algorithm of a key set"):
        wrong()
