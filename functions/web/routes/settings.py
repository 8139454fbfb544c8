"""The settings, which every user can read and administrators can change, and the audit of their changes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query

from functions.adapters.postgres import settings as stored_settings
from functions.core import settings as known_settings
from functions.web.deps import Admin, CurrentUser, ServicesDep
from functions.web.schemas import settings as schemas
from functions.web.schemas.settings_texts import Language

router = APIRouter(prefix="/api/rag/settings")


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


@router.patch("", response_model=schemas.SettingsInForce)
def change_settings(changes: dict[str, Any], user: Admin, services: ServicesDep) -> dict[str, Any]:
    """Saves all changes, or none if one of them is invalid; returns the settings in force."""
    known_settings.validate_changes(changes)
    with services.database.as_user(user) as connection:
        stored_settings.write(connection, changes, user)
        settings = known_settings.load_settings(stored_settings.read(connection))
    services.forget_policy()
    return asdict(settings)
