"""Who is asking: bearer tokens as Supabase signs them, verified here without a call for each request."""

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

from functions.core import errors, models

AUDIENCE = "authenticated"
ROLE = "authenticated"
LOCAL_ISSUER = "ibid-local"
LOCAL_USERS = uuid.UUID("6f0f3c2e-6f1c-5d0f-9a55-1b1dca11ab1e")
ASYMMETRIC = ("ES256", "RS256")
LEEWAY_SECONDS = 10
MAX_TOKEN_CHARS = 16_384
MIN_SECRET_BYTES = 32
MAX_KEY_SET_BYTES = 1 << 20

_log = logging.getLogger(__name__)


class Keys(Protocol):
    """Where keys come from, and the algorithms they are good for: never what the token says."""

    @property
    def algorithms(self) -> tuple[str, ...]: ...

    def find(self, token: str) -> Any:
        """Raises NotSignedInError when there is no key for this token."""
        ...


class SharedSecret:
    """One secret for signing and verifying: local use, and projects with a legacy JWT secret."""

    algorithms = ("HS256",)

    def __init__(self, secret: bytes) -> None:
        if len(secret) < MIN_SECRET_BYTES:
            raise ValueError(f"a JWT secret has at least {MIN_SECRET_BYTES} bytes")
        self._secret = secret

    def find(self, token: str) -> bytes:
        return self._secret


class KeySet:
    """The public keys of a project, fetched from its JWKS address.

    They are used for at most `lifetime` seconds. From `refresh` seconds on they are fetched anew, by one request while
    the others go on; a fetch that fails, or that brings no key at all, leaves the good keys in use until their lifetime
    is over. An unknown key id fetches them too. There is at most one fetch in `cooldown` seconds, so that made-up ids,
    or an address that does not answer, do not turn into requests.
    """

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
            raise ValueError("the JWKS address starts with https://")
        if not algorithms or not set(algorithms) <= set(ASYMMETRIC):
            raise ValueError(f"the algorithm of a key set is one of {', '.join(ASYMMETRIC)}")
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
        self._renew()
        return self._usable().get(kid) or self._look_again(kid)

    def _usable(self) -> dict[str, jwt.PyJWK]:
        return self._keys if self._clock() - self._fetched < self._lifetime else {}

    def _renew(self) -> None:
        """Fetches keys that will soon be too old, unless another request is just doing that."""
        if self._clock() - self._fetched < self._refresh_after or not self._usable():
            return
        if self._lock.acquire(blocking=False):
            try:
                self._fetch_if_due()
            finally:
                self._lock.release()

    def _look_again(self, kid: str) -> jwt.PyJWK:
        """The key among those that can be had now; a key that may be new is no reason to sign anybody out."""
        with self._lock:
            if kid not in self._usable():
                self._fetch_if_due()
            key = self._usable().get(kid)
            is_current = self._fetched >= self._tried
        if key is not None:
            return key
        if is_current:
            raise errors.NotSignedInError("The bearer token is signed with an unknown key. Sign in again.")
        raise errors.UnavailableError("The keys for checking sign-ins cannot be fetched. Try again in a moment.")

    def _fetch_if_due(self) -> None:
        now = self._clock()
        if now - self._tried < self._cooldown:
            return
        self._tried = now
        try:
            keys = _read_key_set(_download(self._url, self._timeout))
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as exc:
            _log.warning("no keys for checking sign-ins", extra={"url": self._url, "reason": str(exc)})
            return
        self._keys, self._fetched = keys, now


class _SameAddress(urllib.request.HTTPRedirectHandler):
    """Follows nobody elsewhere: keys come from the configured address or not at all."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _download(url: str, timeout: float) -> bytes:
    """The body of an answer that is complete within `timeout` seconds. Raises OSError or HTTPException."""
    deadline = time.monotonic() + timeout
    body = bytearray()
    with urllib.request.build_opener(_SameAddress).open(url, timeout=timeout) as response:
        while piece := response.read1(1 << 16):
            body += piece
            if time.monotonic() > deadline or len(body) > MAX_KEY_SET_BYTES:
                raise TimeoutError("the key set is too long, or comes too slowly")
    return bytes(body)


def _read_key_set(body: bytes) -> dict[str, jwt.PyJWK]:
    """The keys by their ids; raises ValueError when there is none that we can use."""
    document = json.loads(body)
    entries = document.get("keys") if isinstance(document, dict) else None
    keys = dict(filter(None, map(_read_key, entries if isinstance(entries, list) else [])))
    if not keys:
        raise ValueError("no public key in the key set; a project that signs with HS256 needs SUPABASE_JWT_SECRET")
    return keys


def _read_key(entry: Any) -> tuple[str, jwt.PyJWK] | None:
    """A key for signatures that we can use; a set may hold others."""
    try:
        key = jwt.PyJWK.from_dict(entry)
    except (jwt.PyJWTError, AttributeError, TypeError, ValueError):
        return None
    is_ours = key.algorithm_name in ASYMMETRIC and entry.get("use", "sig") == "sig"
    return (key.key_id, key) if is_ours and key.key_id else None


class JwtAuthenticator:
    """Accepts tokens of signed-in people only: the right signature, issuer, audience and role, and not expired.

    `issuer` or `audience` None leaves that claim unchecked; some tools mint tokens without them.
    """

    def __init__(self, keys: Keys, *, issuer: str | None, audience: str | None = AUDIENCE) -> None:
        self._keys = keys
        self._issuer = issuer
        self._audience = audience

    @classmethod
    def for_local(cls, secret: bytes) -> JwtAuthenticator:
        """For the tokens of `issue_local_token`."""
        return cls(SharedSecret(secret), issuer=LOCAL_ISSUER)

    @classmethod
    def for_shared_secret(cls, supabase_url: str, secret: str) -> JwtAuthenticator:
        """For a project that still signs with its legacy secret. Raises UnavailableError for one that is too short."""
        with _configuration():
            return cls(SharedSecret(secret.encode()), issuer=_issuer(supabase_url))

    @classmethod
    def for_supabase(cls, supabase_url: str, algorithm: str = "ES256") -> JwtAuthenticator:
        """For a project with signing keys; `algorithm` may name two while a project changes: "ES256,RS256".

        Raises UnavailableError for algorithms of other kinds.
        """
        issuer = _issuer(supabase_url)
        algorithms = tuple(name.strip() for name in algorithm.split(","))
        with _configuration():
            return cls(KeySet(f"{issuer}/.well-known/jwks.json", algorithms), issuer=issuer)

    def authenticate(self, token: str) -> models.User:
        """The user of a valid token of role `authenticated`.

        Raises NotSignedInError, or UnavailableError when the keys cannot be fetched.
        """
        claims = self._decode(token)
        if claims.get("role") != ROLE:
            raise errors.NotSignedInError("The bearer token is not one of a signed-in user.")
        try:
            user_id = str(uuid.UUID(claims["sub"]))
        except (ValueError, AttributeError, TypeError) as exc:
            raise errors.NotSignedInError("The bearer token names no user.") from exc
        return models.User(id=user_id, is_admin=_is_admin(claims), claims={**claims, "sub": user_id})

    def _decode(self, token: str) -> dict[str, Any]:
        if len(token) > MAX_TOKEN_CHARS:
            raise errors.NotSignedInError("The bearer token is too long.")
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
def _configuration() -> Iterator[None]:
    """What an administrator has set wrongly is said in words; nobody is let in meanwhile."""
    try:
        yield
    except ValueError as exc:
        raise errors.UnavailableError(f"Sign-in is not set up: {exc}. An administrator has to change that.") from exc


def _issuer(supabase_url: str) -> str:
    return f"{supabase_url.rstrip('/')}/auth/v1"


def _is_admin(claims: Mapping[str, Any]) -> bool:
    """Only `app_metadata` counts: users may write their own `user_metadata`."""
    metadata = claims.get("app_metadata")
    return isinstance(metadata, dict) and metadata.get("role") == "admin"


def local_user_id(name: str) -> str:
    """The same id for the same name, on every machine."""
    return str(uuid.uuid5(LOCAL_USERS, unicodedata.normalize("NFC", name).strip().lower()))


def issue_local_token(secret: bytes, user_id: str, name: str, *, admin: bool = False, lifetime: int = 86_400) -> str:
    """A token like Supabase's for the local mode; `lifetime` is in seconds."""
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
