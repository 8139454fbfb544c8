"""Request bodies of embedding servers."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from functions.web.schemas.requests import Request, check_visible

# Administrators are not operators: only variables that are named as keys of model servers may leave the installation.
_KEY_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]{0,90}_API_KEY")


def check_address(value: str) -> str:
    """An absolute address of HTTP without a user, a query or a fragment; ValueError also for a port above 65535."""
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0 or re.search(r"\s", value):
        raise ValueError("give an address that begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise ValueError("put no name or password into the address; name the variable of the key in api_key_env")
    if parts.query or parts.fragment:
        raise ValueError("leave out what follows ? or #")
    return value.rstrip("/")


def check_key_variable(value: str) -> str:
    if not _KEY_VARIABLE.fullmatch(value):
        raise ValueError("give the name of an environment variable, which ends in _API_KEY, and never the key itself")
    return value


Name = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), AfterValidator(check_visible)
]
Address = Annotated[str, StringConstraints(strip_whitespace=True, max_length=500), AfterValidator(check_address)]
KeyVariable = Annotated[str, StringConstraints(max_length=100), AfterValidator(check_key_variable)]
Language = Annotated[str, StringConstraints(pattern=r"^[a-z]{2}$")]
Languages = Annotated[tuple[Language, ...], Field(max_length=100)]
Prefix = Annotated[str, StringConstraints(max_length=500)]
Dimensions = Annotated[int, Field(ge=1, le=4000)]
InputTokens = Annotated[int, Field(ge=16, le=1_000_000)]
BatchSize = Annotated[int, Field(ge=1, le=2048)]
Price = Annotated[float, Field(ge=0, le=10_000)]


class NewServer(Request):
    """A server to add: `dimensions` are as many as it returns, prefixes those of its model, unless they are given."""

    name: Name
    kind: Literal["openai", "local"] = "openai"
    model: Name
    base_url: Address | None = None
    api_key_env: KeyVariable | None = None
    dimensions: Dimensions | None = None
    max_input_tokens: InputTokens = 8191
    languages: Languages = ()
    batch_size: BatchSize = 20
    query_prefix: Prefix | None = None
    passage_prefix: Prefix | None = None
    price_per_million_tokens: Price = 0.0
    is_default: bool = False


class ServerChanges(Request):
    """What changes of a server; a field that is left out stays. `documents` is the fate of what it holds."""

    name: Name | None = None
    model: Name | None = None
    base_url: Address | None = None
    api_key_env: KeyVariable | None = None
    dimensions: Dimensions | None = None
    max_input_tokens: InputTokens | None = None
    languages: Languages | None = None
    batch_size: BatchSize | None = None
    query_prefix: Prefix | None = None
    passage_prefix: Prefix | None = None
    price_per_million_tokens: Price | None = None
    is_default: Literal[True] | None = None
    active: bool | None = None
    documents: Literal["reindex", "words"] | None = None

    @model_validator(mode="after")
    def check_alone(self) -> ServerChanges:
        if self.active is False and self.model_fields_set - {"active", "documents"}:
            raise ValueError("switch a server off in a request of its own")
        if not self.model_fields_set - {"documents"}:
            raise ValueError("name what shall change")
        return self

    def columns(self) -> dict[str, Any]:
        """The given columns; null takes an address or a key away, and leaves everything else."""
        given = self.model_dump(exclude={"is_default", "active", "documents"}, exclude_unset=True)
        return {
            name: value for name, value in given.items() if value is not None or name in ("base_url", "api_key_env")
        }


class TextsToEmbed(Request):
    """Texts to embed with the prefix of a question or a passage."""

    texts: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=20_000)]], Field(min_length=1, max_length=20)
    ]
    server_id: UUID | None = None
    kind: Literal["query", "passage"] = "query"
