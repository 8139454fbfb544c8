"""The settings, which every user can read and administrators can change, the audit of their changes, and the usage."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query

from functions.adapters.postgres import settings as stored_settings
from functions.adapters.postgres import users
from functions.core import errors
from functions.core import settings as known_settings
from functions.web.deps import Admin, CurrentUser, ServicesDep
from functions.web.schemas import settings as schemas
from functions.web.schemas.settings_texts import Language
from functions.web.schemas.usage import Day, Usage

router = APIRouter(prefix="/api/rag/settings")
usage_router = APIRouter(prefix="/api/rag/usage")


@router.get("", response_model=schemas.SettingsInForce)
def get_settings(user: CurrentUser, services: ServicesDep) -> dict[str, Any]:
    with services.database.as_user(user) as connection:
        return asdict(known_settings.load_settings(stored_settings.read(connection)))


@router.get("/schema", response_model_exclude_unset=True)
def get_schema(_: CurrentUser, lang: Language = "en") -> schemas.SettingsSchema:
    """The type, bounds, default, label and help of every setting, from which a page can draw a form."""
    return schemas.SettingsSchema.of(lang)


@router.get("/audit")
def list_changes(
    user: Admin,
    services: ServicesDep,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
) -> schemas.ChangePage:
    """Who changed which setting when, from which value to which, newest first; for administrators."""
    with services.database.as_user(user) as connection:
        rows, next_cursor = stored_settings.list_changes(connection, limit, cursor)
    return schemas.ChangePage(items=[schemas.Change(**row) for row in rows], next_cursor=next_cursor)


@usage_router.get("")
def get_usage(
    user: CurrentUser, services: ServicesDep, days: Annotated[int, Query(ge=1, le=366)] = 30, everyone: bool = False
) -> Usage:
    """Questions, tokens and cost of each of the last days: the caller's, or for administrators `everyone`'s."""
    if everyone and not user.is_admin:
        raise errors.NotAdminError
    with services.database.as_user(user) as connection:
        rows = users.list_usage(connection, days, of=None if everyone else user)
    return Usage(of_everyone=everyone, days=[Day(**row) for row in rows])


@router.patch("", response_model=schemas.SettingsInForce)
def change_settings(changes: dict[str, Any], user: Admin, services: ServicesDep) -> dict[str, Any]:
    """Saves all changes, or none if one of them is invalid; returns the settings in force."""
    known_settings.validate_changes(changes)
    with services.database.as_user(user) as connection:
        stored_settings.write(connection, changes, user)
        settings = known_settings.load_settings(stored_settings.read(connection))
    services.forget_policy()
    return asdict(settings)
