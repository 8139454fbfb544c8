from __future__ import annotations

import pytest

from functions.core import errors
from functions.web.errors import PUBLIC_DETAILS, STATUS, describe_problem, status_of
from functions.web.schemas.answers import Problem


def leaves(cls: type[errors.IbidError] = errors.IbidError) -> list[type[errors.IbidError]]:
    return [cls, *(leaf for child in cls.__subclasses__() for leaf in leaves(child))]


@pytest.mark.parametrize("error", leaves(), ids=lambda cls: cls.__name__)
def test_every_error_has_a_status_a_code_and_a_sentence(error: type[errors.IbidError]) -> None:
    """SEC-6"""
    problem = describe_problem(error())
    assert problem["status"] == status_of(error())
    assert problem["code"] == error.code
    assert problem["detail"].endswith(".")


def test_only_an_internal_error_is_a_500() -> None:
    assert [cls.__name__ for cls in leaves() if status_of(cls()) == 500] == ["IbidError"]
    assert set(STATUS) <= set(leaves())


def test_the_tree_of_errors_in_the_docstring_is_complete() -> None:
    drawn = {word for line in (errors.__doc__ or "").splitlines() for word in line.split() if word.endswith("Error")}
    assert drawn == {cls.__name__ for cls in leaves()}


def test_the_document_describes_every_detail_of_an_error_that_responses_contain() -> None:
    """API-1"""
    assert set(PUBLIC_DETAILS) <= set(Problem.model_fields)
