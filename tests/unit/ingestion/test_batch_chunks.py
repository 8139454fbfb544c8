"""Chunking a batch: a page that fails costs no more than its own chunks."""

from __future__ import annotations

from typing import Any

import pytest

from functions.core import models
from functions.core.ingestion import batch_chunks
from functions.core.ingestion.chunking import chunker
from functions.core.ingestion.chunking.page_layout import Carry
from functions.core.ingestion.chunking.passages import ChunkSettings
from functions.core.ingestion.jobs import Checkpoint
from functions.core.ingestion.outline import Outline
from tests.unit.ingestion.test_chunking import count_tokens

CARRY = Carry("Costs", (("Year", "Sum"),), (10.0, 90.0), "Table 1", {"PPE": "property, plant and equipment"})


def test_after_a_page_that_fails_the_section_and_the_abbreviations_go_on_and_its_table_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """ING-11"""

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise IndexError("list index out of range")

    monkeypatch.setattr(chunker, "chunk_page", fail)
    page = models.Page(2, "The costs of PPE rose.")
    checkpoint = Checkpoint(1, 3, carry=CARRY, outline=Outline("Report", "en"))
    batch = batch_chunks.chunk_batch([page], checkpoint, ChunkSettings(), count_tokens)
    assert batch == batch_chunks.ChunkedBatch(
        (models.Page(2, "The costs of PPE rose.", warnings=("chunking_failed",)),),
        ((),),
        Carry("Costs", abbreviations={"PPE": "property, plant and equipment"}),
    )
