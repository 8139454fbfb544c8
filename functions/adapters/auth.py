"""Verifies bearer tokens as Supabase signs them, locally, so that no request waits for the sign-in server."""

from __future__ import annotations

import http.client
import json
import logging
import threading
import time
import unicodedata
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import jwt

from functions.core import api_keys, errors, models

AUDIENCE = "authenticated"
ROLE = "authenticated"
LOCAL_ISSUER = "ibid-local"
# The namespace of local user ids. A changed value would give every local user another id.
LOCAL_USERS = uuid.UUID("6f0f3c2e-6f1c-5d0f-9a55-1b1dca11ab1e")
ASYMMETRIC = ("ES256", "RS256")
LEEWAY_SECONDS = 10
MAX_TOKEN_CHARS = 16_384
MIN_SECRET_BYTES = 32
MAX_KEY_SET_BYTES = 1 << 20
# What an assistant may do for which somebody has signed in with OAuth; such a token has the claim `client_id`.
CLIENT_SCOPES: frozenset[api_keys.Scope] = frozenset({"read", "ask"})

_log = logging.getLogger(__name__)


class Keys(Protocol):
    """Supplies verification keys and the accepted algorithms; a token cannot choose its algorithm."""

    @property
    def algorithms(self) -> tuple[str, ...]: ...

    @property
    def is_fetched(self) -> bool:
        """Whether `find` may wait for a server."""
        ...

    def find(self, token: str) -> Any:
        """The key that verifies `token`; raises NotSignedInError when there is none."""
        ...


class SharedSecret:
    """One secret that both signs and verifies: for local use, and for projects with a legacy JWT secret."""

    algorithms = ("HS256",)
    is_fetched = False

    def __init__(self, secret: bytes) -> None:
        if len(secret) < MIN_SECRET_BYTES:
            raise ValueError(f"the JWT secret must have at least {MIN_SECRET_BYTES} bytes")
        self._secret = secret

    def find(self, token: str) -> bytes:
        return self._secret


class KeySet:
    """The public keys of a project, fetched from its JWKS address.

    Keys are used for at most `lifetime` seconds. After `refresh` seconds one request fetches them again while the
    others keep using the old ones. A fetch that fails or returns no key leaves the old keys in use until their lifetime
    ends. An unknown key id also triggers a fetch. At most one fetch happens in `cooldown` seconds, so invented key ids
    and an unreachable server do not cause one fetch per request.
    """

    is_fetched = True

    def __init__(
        self,
        url: str,
        algorithms: tuple[str, ...] = ASYMMETRIC,
        *,
        lifetime: float = 600,
        refresh: float = 300,
        cooldown: float = 30,
        timeout: float = 5,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not url.startswith(("https://", "http://")):
            raise ValueError("the JWKS address must start with https://")
        if not algorithms or not set(algorithms) <= set(ASYMMETRIC):
            raise ValueError(f"the algorithm of a key set must be one of {', '.join(ASYMMETRIC)}")
        self.algorithms = algorithms
        self._url = url
        self._lifetime = lifetime
        self._refresh_after = refresh
        self._cooldown = cooldown
        self._timeout = timeout
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched = self._tried = float("-inf")

    def find(self, token: str) -> jwt.PyJWK:
        kid = str(jwt.get_unverified_header(token).get("kid"))
        self._refresh_early()
        return self._usable().get(kid) or self._fetch_and_find(kid)

    def _usable(self) -> dict[str, jwt.PyJWK]:
        return self._keys if self._clock() - self._fetched < self._lifetime else {}

    def _refresh_early(self) -> None:
        """Fetches keys that will soon be too old, unless another request is fetching them already."""
        if self._clock() - self._fetched < self._refresh_after or not self._usable():
            return
        if self._lock.acquire(blocking=False):
            try:
                self._fetch_if_due()
            finally:
                self._lock.release()

    def _fetch_and_find(self, kid: str) -> jwt.PyJWK:
        """The key, after a fetch if one is due.

        Raises NotSignedInError only when the newest keys lack it: while they cannot be fetched, the key may exist, and
        signing the user out would be wrong. Raises UnavailableError then.
        """
        with self._lock:
            if kid not in self._usable():
                self._fetch_if_due()
            key = self._usable().get(kid)
            is_current = self._fetched >= self._tried
        if key is not None:
            return key
        if is_current:
            raise errors.NotSignedInError("The bearer token is signed with an unknown key. Sign in again.")
        raise errors.UnavailableError("The keys that verify sign-ins cannot be fetched. Try again in a moment.")

    def _fetch_if_due(self) -> None:
        now = self._clock()
        if now - self._tried < self._cooldown:
            return
        self._tried = now
        try:
            keys = _read_key_set(_download(self._url, self._timeout))
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as exc:
            _log.warning(
                "the keys that verify sign-ins could not be fetched", extra={"url": self._url, "reason": str(exc)}
            )
            return
        self._keys, self._fetched = keys, now


class _RefuseRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: keys from another address than the configured one cannot be trusted."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _download(url: str, timeout: float) -> bytes:
    """The response body; raises OSError or HTTPException, also when it is incomplete after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    body = bytearray()
    with urllib.request.build_opener(_RefuseRedirects).open(url, timeout=timeout) as response:
        while piece := response.read1(1 << 16):
            body += piece
            if time.monotonic() > deadline or len(body) > MAX_KEY_SET_BYTES:
                raise TimeoutError("the key set is too large or arrives too slowly")
    return bytes(body)


def _read_key_set(body: bytes) -> dict[str, jwt.PyJWK]:
    """The usable keys by id; raises ValueError when there is none."""
    document = json.loads(body)
    entries = document.get("keys") if isinstance(document, dict) else None
    keys = dict(filter(None, map(_read_key, entries if isinstance(entries, list) else [])))
    if not keys:
        raise ValueError("the key set has no public key; a project that signs with HS256 needs SUPABASE_JWT_SECRET")
    return keys


def _read_key(entry: Any) -> tuple[str, jwt.PyJWK] | None:
    """The id and the key, or None for a key that we cannot use: one for encryption, or of another algorithm."""
    try:
        key = jwt.PyJWK.from_dict(entry)
    except (jwt.PyJWTError, AttributeError, TypeError, ValueError):
        return None
    is_usable = key.algorithm_name in ASYMMETRIC and entry.get("use", "sig") == "sig"
    return (key.key_id, key) if is_usable and key.key_id else None


class JwtAuthenticator:
    """Accepts unexpired tokens of signed-in users with the expected signature, issuer, audience and role.

    `None` for `issuer` or `audience` leaves that claim unchecked, because some tools issue tokens without them.
    """

    def __init__(self, keys: Keys, *, issuer: str | None, audience: str | None = AUDIENCE) -> None:
        self._keys = keys
        self._issuer = issuer
        self._audience = audience

    @classmethod
    def for_local(cls, secret: bytes) -> JwtAuthenticator:
        """Accepts the tokens of `issue_local_token`."""
        return cls(SharedSecret(secret), issuer=LOCAL_ISSUER)

    @classmethod
    def for_shared_secret(cls, supabase_url: str, secret: str) -> JwtAuthenticator:
        """Accepts tokens that a project signs with its legacy secret; raises UnavailableError if that is too short."""
        with _configuration_errors():
            return cls(SharedSecret(secret.encode()), issuer=issuer_of(supabase_url))

    @classmethod
    def for_supabase(cls, supabase_url: str, algorithm: str = "ES256") -> JwtAuthenticator:
        """Accepts tokens of a project with signing keys.

        `algorithm` may name two while a project migrates: "ES256,RS256". Raises UnavailableError for any other.
        """
        issuer = issuer_of(supabase_url)
        algorithms = tuple(name.strip() for name in algorithm.split(","))
        with _configuration_errors():
            return cls(KeySet(f"{issuer}/.well-known/jwks.json", algorithms), issuer=issuer)

    @property
    def fetches_keys(self) -> bool:
        """Whether `authenticate` may wait for the server that publishes the keys."""
        return self._keys.is_fetched

    def authenticate(self, token: str) -> models.User:
        """The user of a valid token of role `authenticated`.

        Raises NotSignedInError, or UnavailableError when the keys cannot be fetched.
        """
        claims = self._decode(token)
        if claims.get("role") != ROLE:
            raise errors.NotSignedInError("The bearer token does not belong to a signed-in user. Sign in again.")
        try:
            user_id = str(uuid.UUID(claims["sub"]))
        except (ValueError, AttributeError, TypeError) as exc:
            raise errors.NotSignedInError("The bearer token names no user. Sign in again.") from exc
        is_client = bool(claims.get("client_id"))
        return models.User(
            id=user_id,
            is_admin=_is_admin(claims) and not is_client,
            claims={**claims, "sub": user_id},
            scopes=CLIENT_SCOPES if is_client else None,
        )

    def _decode(self, token: str) -> dict[str, Any]:
        if len(token) > MAX_TOKEN_CHARS:
            raise errors.NotSignedInError("The bearer token is too long. Sign in again.")
        required = ["exp", "sub", *(["iss"] if self._issuer else []), *(["aud"] if self._audience else [])]
        try:
            return jwt.decode(
                token,
                self._keys.find(token),
                algorithms=list(self._keys.algorithms),
                issuer=self._issuer,
                audience=self._audience,
                leeway=LEEWAY_SECONDS,
                options={"require": required, "verify_aud": self._audience is not None},
            )
        except jwt.ExpiredSignatureError as exc:
            raise errors.NotSignedInError("The sign-in has expired. Sign in again.") from exc
        except jwt.PyJWTError as exc:
            raise errors.NotSignedInError("The bearer token is not valid. Sign in again.") from exc


@contextmanager
def _configuration_errors() -> Iterator[None]:
    """Reports a wrong setting as UnavailableError, so that every sign-in fails with a sentence that names it."""
    try:
        yield
    except ValueError as exc:
        raise errors.UnavailableError(
            f"Sign-in is not set up: {exc}. An administrator has to correct the setting."
        ) from exc


def issuer_of(supabase_url: str) -> str:
    """The issuer of a project's tokens, which is also its authorization server (OAuth 2.1)."""
    return f"{supabase_url.rstrip('/')}/auth/v1"


def _is_admin(claims: Mapping[str, Any]) -> bool:
    """Reads `app_metadata` only, because users can write their own `user_metadata`."""
    metadata = claims.get("app_metadata")
    return isinstance(metadata, dict) and metadata.get("role") == "admin"


def local_user_id(name: str) -> str:
    """The same id for the same name, on every machine."""
    return str(uuid.uuid5(LOCAL_USERS, unicodedata.normalize("NFC", name).strip().lower()))


def issue_local_token(secret: bytes, user_id: str, name: str, *, admin: bool = False, lifetime: int = 86_400) -> str:
    """A token with the claims of Supabase's, for local mode; `lifetime` is in seconds."""
    now = int(time.time())
    claims = {
        "iss": LOCAL_ISSUER,
        "aud": AUDIENCE,
        "role": ROLE,
        "sub": user_id,
        "iat": now,
        "exp": now + lifetime,
        "app_metadata": {"role": "admin"} if admin else {},
        "user_metadata": {"name": name},
    }
    return jwt.encode(claims, secret, algorithm="HS256")
