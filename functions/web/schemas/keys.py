"""Request and response bodies of API keys."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, BaseModel, Field, StringConstraints

from functions.core.api_keys import SCOPES, Scope
from functions.web.schemas.requests import Request, check_visible


def _order_scopes(scopes: list[Scope]) -> list[Scope]:
    return [scope for scope in SCOPES if scope in scopes]


Name = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100), AfterValidator(check_visible)
]


class NewKey(Request):
    """`name` says what the key is for; the scopes say what it may do."""

    name: Name
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=3), AfterValidator(_order_scopes)]
    expires_in_days: Annotated[int, Field(ge=1, le=3650)] = 365


class Key(BaseModel):
    """A key in the list of its owner; `hint` is how the key begins."""

    id: UUID
    name: str
    hint: str
    scopes: list[Scope]
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None


class CreatedKey(Key):
    """A key on the day it is made, with the bearer token that it is."""

    key: str


class KeyList(BaseModel):
    items: list[Key]
