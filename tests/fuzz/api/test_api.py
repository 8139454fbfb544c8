"""Generated requests get the answers that the OpenAPI document describes, and nobody sees what belongs to another."""

from __future__ import annotations

import pytest

from tests.fuzz.api.__main__ import run
from tests.fuzz.api.run import Findings

EXAMPLES = 2
# A laptop refuses these to every caller, or to every caller without its secret.
REFUSED = {
    "GET /.well-known/oauth-protected-resource",
    "GET /.well-known/oauth-protected-resource/mcp",
    "GET /api/cron/retention",
}
# These need a state or a value that is hardly ever drawn; `test_openapi.py` calls them.
RARELY_POSSIBLE = {
    "DELETE /api/rag/conversations/{conversation_id}/documents/{document_id}",
    "DELETE /api/rag/conversations/{conversation_id}/messages/{message_id}/rating",
    "DELETE /api/rag/embedding-servers/{server_id}",
    "PATCH /api/rag/notes/{note_id}",
    "POST /api/rag/documents/{document_id}/translate",
    "POST /api/rag/embedding-servers/reindexing/{action}",
    "POST /api/rag/embedding-servers/{server_id}/reindex",
}


@pytest.fixture(scope="module")
def findings() -> Findings:
    return run(EXAMPLES)


def test_every_answer_is_as_the_document_describes_it_and_shows_nothing_of_others(findings: Findings) -> None:
    """API-1, SEC-2, SEC-3, SEC-6; `make fuzz-api` is the long form."""
    assert findings.faults == {}


def test_generated_requests_succeed_at_other_operations(findings: Findings) -> None:
    """Otherwise refusals alone would have been checked."""
    refused = {label for label, statuses in findings.statuses.items() if min(statuses) >= 300}
    assert REFUSED <= refused <= REFUSED | RARELY_POSSIBLE
