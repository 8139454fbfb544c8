"""Signs in the person at this machine: with a key that works once, and from then on with a cookie bound to that key.

The address that `make run` prints contains the key. Other accounts of the machine have none, nor has whoever reaches
the port through a proxy. Browsers send a cookie to every port of a host but keep the key for one port: both are needed.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable
from typing import Final

import jwt

from functions.core import errors

COOKIE_SECONDS: Final = 30 * 24 * 3600  # renewed at each sign-in

_REFUSED: Final = (
    "Open the address that Ibid has printed last: it contains a key that works once."
    " Or paste a token: .venv/bin/python -m functions.local token --admin"
)


class SignIn:
    """The one unused key of this server; `announce` gets each key that replaces a used one."""

    def __init__(self, secret: bytes, announce: Callable[[str], object] | None = None) -> None:
        # A derived secret, so that a cookie is never valid as a bearer token signed with the same one.
        self._secret = hmac.digest(secret, b"ibid browser", "sha256")
        self._announce = announce
        self._lock = threading.Lock()
        self.key = secrets.token_urlsafe(24)

    def accept(self, key: str, cookie: str | None) -> str:
        """The cookie for a browser with the unused key, or with the key that its cookie is bound to.

        Raises NotSignedInError.
        """
        if not self._is_bound(cookie, key):
            self._use(key)
        claims = {"key": _digest(key), "exp": int(time.time()) + COOKIE_SECONDS}
        return jwt.encode(claims, self._secret, algorithm="HS256")

    def _use(self, key: str) -> None:
        with self._lock:
            if not hmac.compare_digest(_digest(key), _digest(self.key)):
                raise errors.NotSignedInError(_REFUSED)
            self.key = secrets.token_urlsafe(24)
        if self._announce is not None:
            self._announce(self.key)

    def _is_bound(self, cookie: str | None, key: str) -> bool:
        try:
            claims = jwt.decode(cookie or "", self._secret, algorithms=["HS256"], options={"require": ["exp", "key"]})
        except jwt.PyJWTError:
            return False
        return hmac.compare_digest(str(claims["key"]), _digest(key))


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
