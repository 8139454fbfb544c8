"""Questions that ask two things, or for all of something, through the chat function."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from functions.adapters.postgres import search
from tests.handlers.conftest import Caller
from tests.handlers.events import Json

LEASE = "The lease of the mill ends in March 2031. The tenant may renew it once for five years."
HERONS = "Grey herons nest in the alders by the weir. Wardens counted eleven nests in spring."
QUESTION = "When does the lease of the mill end and where do grey herons nest?"


def send(caller: Caller, query: str) -> Json:
    given = caller.call("chat", "POST", "/api/rag/chat", {"query": query})
    assert given.status == 200, given.content
    return dict(given.json)


def test_both_questions_in_one_are_searched_in_one_statement(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """RET-13"""
    caller.add(LEASE.encode(), "lease.txt")
    caller.add(HERONS.encode(), "herons.txt")
    searches = Mock(wraps=search.hybrid_search)
    monkeypatch.setattr(search, "hybrid_search", searches)
    found = {source["file_name"] for source in send(caller, QUESTION)["sources"]}
    [call] = searches.call_args_list
    texts = [text for text, _ in call.args[2].versions]
    assert texts == [QUESTION, "When does the lease of the mill end", "where do grey herons nest?"]
    assert found == {"lease.txt", "herons.txt"}


def test_an_answer_that_counts_says_what_it_was_read_from(caller: Caller) -> None:
    """CHAT-13"""
    caller.add(HERONS.encode(), "herons.txt")
    *_, last = send(caller, "How many nests did the wardens count?")["sections"]
    expected = {"text": "Based on all passages that were searched (1).", "citations": [], "is_remark": True}
    assert {key: last[key] for key in expected} == expected
