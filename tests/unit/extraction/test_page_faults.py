from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

import pytest

from functions.core import errors, models
from functions.core.extraction.page_faults import READING_FAILED, FaultTolerantReader


@dataclass(frozen=True, slots=True)
class ThreePages:
    """An open document that raises the given exceptions on the pages of these numbers."""

    raises: Mapping[int, Exception] = field(default_factory=dict)
    page_count: int = 3

    @property
    def metadata(self) -> models.DocumentMetadata:
        raise IndexError

    def pages(self, start: int = 1) -> Iterator[models.Page]:
        return (models.Page(number, self.read_text_layer(number)) for number in range(start, 4))

    def read_text_layer(self, number: int) -> str:
        if number in self.raises:
            raise self.raises[number]
        return f"page {number}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def skipped(number: int) -> models.Page:
    return models.Page(number, "", (READING_FAILED,))


@pytest.mark.parametrize("start", [1, 2, 3])
def test_pages_that_cannot_be_read_are_empty_and_the_others_follow(start: int) -> None:
    """ING-11"""
    reader = FaultTolerantReader(ThreePages({2: IndexError(), 3: ZeroDivisionError()}))
    assert list(reader.pages(start)) == [models.Page(1, "page 1"), skipped(2), skipped(3)][start - 1 :]


def test_text_layers_and_metadata_that_cannot_be_read_are_empty() -> None:
    """ING-11"""
    reader = FaultTolerantReader(ThreePages({2: IndexError()}))
    assert [reader.read_text_layer(number) for number in (1, 2, 3)] == ["page 1", "", "page 3"]
    assert reader.metadata == models.DocumentMetadata()


def test_errors_that_ibid_raises_itself_pass_through() -> None:
    """ING-11"""
    reader = FaultTolerantReader(ThreePages({2: errors.CorruptDocumentError()}))
    with pytest.raises(errors.CorruptDocumentError):
        list(reader.pages())
