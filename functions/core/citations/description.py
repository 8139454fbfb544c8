"""The JSON form of sections and citations, as it is saved and sent to clients.

The API keeps two older field names beside the present ones: `source_ids` for `segment_ids`, and `document_id` for
`source_id`, which is the id of a note where `source` is "note". Saved messages have both names too, because clients of
Supabase read those rows without the API.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from functions.core import models


def describe_section(section: models.CitedSection) -> dict[str, Any]:
    return {**asdict(section), "source_ids": section.segment_ids}


def describe_citation(citation: models.Citation) -> dict[str, Any]:
    return {**asdict(citation), "document_id": citation.source_id}
