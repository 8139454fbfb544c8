from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given, strategies

from functions.core import errors
from functions.core.settings import Settings, describe_settings, load_settings, validate_changes
from functions.core.text.storable import clean_text


def faults_of(changes: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(errors.InvalidSettingsError) as caught:
        validate_changes(changes)
    return {fault["key"]: fault["message"] for fault in caught.value.details["faults"]}


def rows_of() -> dict[str, dict[str, Any]]:
    return {row["key"]: row for row in describe_settings()}


def test_every_setting_is_described_with_its_bounds() -> None:
    """SET-5"""
    assert list(rows_of()) == list(asdict(Settings()))
    assert rows_of()["rrf_k"] == {
        "key": "rrf_k",
        "type": "integer",
        "minimum": 1,
        "maximum": 200,
        "default": Settings().rrf_k,
        "description": "Constant k of reciprocal rank fusion.",
    }


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


ANY_VALUE = strategies.one_of(
    strategies.none(), strategies.booleans(), strategies.integers(), strategies.floats(), strategies.text(max_size=1100)
)


@given(strategies.sampled_from(describe_settings()), strategies.data())
def test_a_setting_takes_exactly_the_values_that_its_description_allows(
    row: dict[str, Any], data: strategies.DataObject
) -> None:
    """SET-3, SET-5"""
    near: list[Any] = [row["default"], *row.get("choices", [])]
    near += [row[bound] + step for bound in ("minimum", "maximum") if bound in row for step in (-1, 0, 1, 0.5)]
    value = data.draw(strategies.one_of(strategies.sampled_from(near), ANY_VALUE))
    settings = load_settings({row["key"]: value})
    if is_allowed(row, value):
        validate_changes({row["key"]: value})
        assert getattr(settings, row["key"]) == value
    else:
        assert list(faults_of({row["key"]: value})) == [row["key"]]
        assert settings == Settings()


def is_allowed(row: dict[str, Any], value: Any) -> bool:
    types: dict[str, tuple[type, ...]] = {
        "integer": (int,),
        "number": (int, float),
        "string": (str,),
        "boolean": (bool,),
    }
    if not isinstance(value, types[row["type"]]) or (isinstance(value, bool) and row["type"] != "boolean"):
        return False
    if isinstance(value, str):
        is_short = len(value) <= row.get("max_length", len(value))
        return is_short and value in row.get("choices", [value]) and clean_text(value) == value
    return isinstance(value, bool) or row["minimum"] <= value <= row["maximum"]
