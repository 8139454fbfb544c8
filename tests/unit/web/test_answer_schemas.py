"""API-1: a field that a response gains must be in its schema, because what a schema lacks is not sent."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from pydantic import BaseModel

from functions.adapters.postgres.embedding import moves
from functions.core import models
from functions.runtime import readiness
from functions.web.schemas import answers, operations, server_results


class FlatHit(answers.Hit, answers.Arms):
    """A hit with the fields of its arms."""


@pytest.mark.parametrize(
    ("schema", "described", "added", "left_out"),
    [
        (FlatHit, models.SearchHit, {"document_id", "arms", "evidence"}, {"chunk_id"}),
        (answers.Citation, models.Citation, {"document_id"}, set()),
        (answers.Section, models.CitedSection, {"source_ids"}, set()),
        (answers.Usage, models.Usage, {"cost_usd", "degraded"}, set()),
        (answers.Scope, models.Scope, set(), set()),
        (server_results.Move, moves.Move, set(), set()),
        (operations.Check, readiness.Check, set(), set()),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_schema_has_the_fields_of_what_it_describes(
    schema: type[BaseModel], described: Any, added: set[str], left_out: set[str]
) -> None:
    """API-1"""
    assert set(schema.model_fields) - added == {field.name for field in dataclasses.fields(described)} - left_out
