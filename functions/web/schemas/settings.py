"""Response bodies of the settings, their description and their audit."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel


class Choice(BaseModel):
    value: str
    label: str


class Group(BaseModel):
    """A part of a settings page."""

    key: str
    label: str


class Setting(BaseModel):
    """What a form needs to know of a setting; `description` is its help."""

    key: str
    group: str
    type: Literal["integer", "number", "string", "boolean"]
    label: str
    description: str
    default: Any
    minimum: float | int | None = None
    maximum: float | int | None = None
    max_length: int | None = None
    choices: list[Choice] | None = None


class SettingsSchema(BaseModel):
    """The settings in the order of the page."""

    lang: Literal["en", "fr"]
    groups: list[Group]
    settings: list[Setting]


class Change(BaseModel):
    """One change of a setting; `changed_by` is null when that user's data was deleted."""

    id: int
    key: str
    old_value: Any
    new_value: Any
    changed_by: UUID | None
    changed_at: datetime


class ChangePage(BaseModel):
    items: list[Change]
    next_cursor: str | None
