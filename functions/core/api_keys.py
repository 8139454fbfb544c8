"""Personal API keys: what they look like, and what may be stored of them."""

from __future__ import annotations

import hashlib
import secrets
from typing import Final, Literal, get_args

Scope = Literal["read", "ask", "write"]
SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)

_PREFIX: Final = "ibid_"  # tells a key from a token, and lets scanners of leaked secrets find it
_HINT_CHARS: Final = len(_PREFIX) + 4


def make_key() -> str:
    """A new key of 256 random bits."""
    return _PREFIX + secrets.token_urlsafe(32)


def is_key(text: str) -> bool:
    """Whether a bearer token is meant as an API key; it need not be a valid one."""
    return text.startswith(_PREFIX)


def hash_key(key: str) -> str:
    """The hash under which a key is stored; a fast one will do, because nobody can guess 256 random bits."""
    return hashlib.sha256(key.encode()).hexdigest()


def shorten_key(key: str) -> str:
    """How a key begins, by which its owner recognizes it in a list."""
    return key[:_HINT_CHARS]
