from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from functions.core import errors
from functions.core.settings import Settings, describe_settings, load_settings, validate_changes
from functions.core.settings_texts import CHOICES, GROUPS, TEXTS, Language


def faults_of(changes: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(errors.InvalidSettingsError) as caught:
        validate_changes(changes)
    return {fault["key"]: fault["message"] for fault in caught.value.details["faults"]}


def rows_of(lang: Language = "en") -> dict[str, dict[str, Any]]:
    return {row["key"]: row for row in describe_settings(lang)["settings"]}


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
    schema = describe_settings("fr")
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
        "default": Settings().rrf_k,
        "minimum": 1,
        "maximum": 200,
    }


def test_every_choice_has_a_label() -> None:
    """SET-5"""
    labels = {(key, c["value"]): c["label"] for key, row in rows_of("fr").items() for c in row.get("choices", [])}
    assert labels == {(key, value): names[1] for key, choices in CHOICES.items() for value, names in choices.items()}
    assert labels["prompt_profile", "auto"] == "Automatique"


def test_every_default_is_within_its_own_bounds() -> None:
    """SET-3"""
    validate_changes(asdict(Settings()))


@pytest.mark.parametrize("row", [r for r in rows_of().values() if "minimum" in r], ids=lambda r: r["key"])
def test_a_number_may_equal_but_not_exceed_its_bounds(row: dict[str, Any]) -> None:
    """SET-3"""
    key, low, high = row["key"], row["minimum"], row["maximum"]
    validate_changes({key: low})
    validate_changes({key: high})
    between = f"This must be between {low:g} and {high:g}."
    assert [faults_of({key: value}) for value in (low - 1, high + 1)] == [{key: between}] * 2


def test_all_faults_are_reported_at_once() -> None:
    """SET-3"""
    assert faults_of({"rrf_k": 0, "nonsense": 1, "match_count": 20, "guard_message": 5}) == {
        "rrf_k": "This must be between 1 and 200.",
        "nonsense": "There is no such setting.",
        "guard_message": "This must be text.",
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rrf_k", 1.5),
        ("rrf_k", True),
        ("rrf_k", "60"),
        ("rrf_k", None),
        ("fts_weight", float("nan")),
        ("fts_weight", []),
    ],
    ids=repr,
)
def test_a_value_of_the_wrong_type_is_a_fault(key: str, value: Any) -> None:
    """SET-3"""
    assert list(faults_of({key: value})) == [key]


def test_the_length_of_a_text_is_bounded() -> None:
    """SET-3"""
    validate_changes({"guard_message": "x" * 1000})
    assert faults_of({"guard_message": "x" * 1001}) == {"guard_message": "This must be at most 1000 characters."}


def test_a_stored_value_that_is_no_longer_valid_is_replaced_by_its_default() -> None:
    assert load_settings({"rrf_k": 20, "match_count": 9999, "gone": 1}) == Settings(rrf_k=20)
