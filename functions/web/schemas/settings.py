"""Response bodies of the settings, their description and their audit."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field, create_model

from functions.core import settings
from functions.web.schemas.settings_texts import CHOICES, EXPERT_SETTINGS, GROUPS, TEXTS, Language

_FIELDS: dict[str, Any] = {
    row["key"]: (type(row["default"]), Field(description=row["description"])) for row in settings.describe_settings()
}
SettingsInForce: type[BaseModel] = create_model("Settings", **_FIELDS)
"""The value of every setting."""


class Choice(BaseModel):
    value: str
    label: str


class Group(BaseModel):
    """A part of a settings page."""

    key: str
    label: str


class Setting(BaseModel):
    """What a form needs to know of a setting; `description` is its help, and `is_expert` folds it away."""

    key: str
    group: str
    type: Literal["integer", "number", "string", "boolean"]
    label: str
    description: str
    is_expert: bool = False
    default: Any
    minimum: float | int | None = None
    maximum: float | int | None = None
    max_length: int | None = None
    choices: list[Choice] | None = None


class SettingsSchema(BaseModel):
    """The settings in the order of the page."""

    lang: Language
    groups: list[Group]
    settings: list[Setting]

    @classmethod
    def of(cls, lang: Language) -> SettingsSchema:
        rows = {row["key"]: row for row in settings.describe_settings()}
        return cls(
            lang=lang,
            groups=[Group(key=group.key, label=group.fr if lang == "fr" else group.en) for group in GROUPS],
            settings=[
                Setting(group=group.key, **_translate(rows[key], lang)) for group in GROUPS for key in group.settings
            ],
        )


def _translate(row: dict[str, Any], lang: Language) -> dict[str, Any]:
    text, labels = TEXTS[row["key"]], CHOICES.get(row["key"], {})
    row |= {"label": text.fr, "description": text.help_fr} if lang == "fr" else {"label": text.en}
    if row["key"] in EXPERT_SETTINGS:
        row["is_expert"] = True
    if "choices" in row:
        row["choices"] = [Choice(value=value, label=labels[value][lang == "fr"]) for value in row["choices"]]
    return row


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
