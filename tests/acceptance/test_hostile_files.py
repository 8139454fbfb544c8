"""A file that is made to exhaust the service costs one page or one document, and nobody else notices it."""

from __future__ import annotations

from pathlib import Path

from tests.acceptance.support import inside
from tests.support.hostile_documents import LINES_BOMB, make_operators_pdf, text_page
from tests.support.local_server import LocalServer, Person, problem_of

FIRST = "The lease of the mill begins in March and ends after two years of grinding."
LAST = "Whoever wants to end the lease of the mill earlier must write by registered letter."


def test_the_other_pages_of_a_file_with_a_bomb_are_indexed_and_shown(ada: Person, tmp_path: Path) -> None:
    """LIM-1, LIB-10"""
    document = ada.add(make_operators_pdf(tmp_path / "mill.pdf", text_page(FIRST), LINES_BOMB, text_page(LAST)))
    assert (document["status"], document["health"]["warnings"]) == ("indexed", {"too_complex": [2]})
    assert ada.get("/search", q="registered letter")["hits"][0]["page_start"] == 3
    pages = f"/api/rag/documents/{document['id']}/pages"
    assert problem_of(ada.http.get(f"{pages}/2.png")) == (422, "too_complex")
    assert ada.get(f"/documents/{document['id']}/text", page=2)["pages"][0]["warnings"] == ["too_complex"]
    assert ada.http.get(f"{pages}/3.png").headers["content-type"] == "image/png"


def test_a_file_of_which_no_page_can_be_read_within_the_limits_is_not_tried_again(
    server: LocalServer, ada: Person, tmp_path: Path
) -> None:
    """LIM-1, ING-11: the job of a document that was tried in vain is `dead`."""
    document = ada.add(make_operators_pdf(tmp_path / "bomb.pdf", LINES_BOMB))
    assert (document["status"], document["error_code"]) == ("failed", "too_complex")
    assert document["error"].startswith("Page 1: ")
    assert inside.job_of(server, document["id"])["status"] == "failed"
