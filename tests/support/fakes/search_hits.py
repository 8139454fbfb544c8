"""Search hits for tests of the steps after the search."""

from __future__ import annotations

from functions.core import models


def make_hit(
    text: str,
    *,
    document: str = "doc",
    index: int = 0,
    page: int = 1,
    offset: int = 0,
    lang: str = "en",
    similarity: float = 0.6,
    coverage: float = 0.4,
    title: str | None = None,
    markdown: str | None = None,
) -> models.SearchHit:
    return models.SearchHit(
        chunk_id=index,
        source="document",
        source_id=document,
        chunk_index=index,
        file_name=f"{document}.pdf",
        title=title,
        file_type="pdf",
        page_start=page,
        page_end=page,
        start_offset=offset,
        end_offset=offset + len(text),
        section_title=title,
        text=text,
        lang=lang,
        score=0.09,
        similarity=similarity,
        coverage=coverage,
        markdown=markdown,
    )
