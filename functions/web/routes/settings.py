"""The settings, which every user can read and administrators can change."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter

from functions.adapters.postgres import settings as stored_settings
from functions.core import settings as known_settings
from functions.web.deps import Admin, CurrentUser, ServicesDep

router = APIRouter(prefix="/api/rag/settings")


@router.get("")
def get_settings(user: CurrentUser, services: ServicesDep) -> dict[str, Any]:
    with services.database.as_user(user) as connection:
        return asdict(known_settings.load_settings(stored_settings.read(connection)))


@router.get("/schema")
def get_schema(_: CurrentUser) -> dict[str, Any]:
    return {"settings": known_settings.describe_settings()}


@router.patch("")
def change_settings(changes: dict[str, Any], user: Admin, services: ServicesDep) -> dict[str, Any]:
    """Saves all changes, or none if one of them is invalid."""
    known_settings.validate_changes(changes)
    with services.database.as_user(user) as connection:
        stored_settings.write(connection, changes, user)
        settings = known_settings.load_settings(stored_settings.read(connection))
    services.forget_policy()
    return asdict(settings)
