"""Makes, lists and revokes personal API keys, for people who are signed in; a key cannot do that."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from fastapi import APIRouter

from functions.adapters.postgres import users
from functions.core import api_keys
from functions.web.deps import KeyOwner, ServicesDep, read_id
from functions.web.schemas import keys as schemas

router = APIRouter(prefix="/api/rag/keys")


@router.post("", status_code=201)
def create_key(body: schemas.NewKey, user: KeyOwner, services: ServicesDep) -> schemas.CreatedKey:
    """The only response that holds the key: afterwards its hash is all that there is."""
    users.take_request(services.database, user, services.policy().settings)
    key = api_keys.make_key()
    expires_at = datetime.now(UTC) + timedelta(days=body.expires_in_days)
    with services.database.as_user(user) as connection:
        row = users.insert_key(connection, user, key, body.name, body.scopes, expires_at)
    return schemas.CreatedKey(**row, key=key)


@router.get("")
def list_keys(user: KeyOwner, services: ServicesDep) -> schemas.KeyList:
    with services.database.as_user(user) as connection:
        return schemas.KeyList(items=[schemas.Key(**row) for row in users.list_keys(connection)])


@router.delete("/{key_id}", status_code=204)
def revoke_key(key_id: str, user: KeyOwner, services: ServicesDep) -> None:
    """Takes effect with the next request that carries the key."""
    with services.database.as_user(user) as connection:
        users.delete_key(connection, read_id(key_id, "API key"))
