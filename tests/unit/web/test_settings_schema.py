"""The schema of the settings, from which a page draws its form."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from functions.core.settings import Settings
from functions.web.schemas.settings import SettingsSchema
from functions.web.schemas.settings_texts import CHOICES, GROUPS, TEXTS, Language


def describe(lang: Language) -> dict[str, Any]:
    return SettingsSchema.of(lang).model_dump(exclude_unset=True)


def rows_of(lang: Language = "en") -> dict[str, dict[str, Any]]:
    return {row["key"]: row for row in describe(lang)["settings"]}


def test_every_setting_is_described_in_both_languages() -> None:
    """SET-5"""
    english, french = rows_of("en"), rows_of("fr")
    assert sorted(english) == sorted(french) == sorted(asdict(Settings())) == sorted(TEXTS)
    assert [key for key in english if english[key]["description"] == french[key]["description"]] == []
    assert (
        len({row["label"] for row in english.values()}) == len({row["label"] for row in french.values()}) == len(TEXTS)
    )


def test_every_setting_is_in_one_group() -> None:
    """SET-5"""
    schema = describe("fr")
    assert sorted(key for group in GROUPS for key in group.settings) == sorted(asdict(Settings()))
    assert [group["key"] for group in schema["groups"]] == list(dict.fromkeys(r["group"] for r in schema["settings"]))


def test_a_setting_is_described_with_its_bounds() -> None:
    """SET-5"""
    assert rows_of("en")["rrf_k"] == {
        "key": "rrf_k",
        "group": "search",
        "type": "integer",
        "label": "Constant of the fusion",
        "description": "Constant k of reciprocal rank fusion.",
        "is_expert": True,
        "default": Settings().rrf_k,
        "minimum": 1,
        "maximum": 200,
    }


def test_every_choice_has_a_label() -> None:
    """SET-5"""
    labels = {(key, c["value"]): c["label"] for key, row in rows_of("fr").items() for c in row.get("choices", [])}
    assert labels == {(key, value): names[1] for key, choices in CHOICES.items() for value, names in choices.items()}
    assert labels["prompt_profile", "auto"] == "Automatique"
