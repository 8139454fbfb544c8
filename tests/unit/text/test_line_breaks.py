from __future__ import annotations

import pytest

from functions.core.text.line_breaks import unwrap


@pytest.mark.parametrize(
    ("text", "page", "unwrapped"),
    [
        ("The har-\nbour is\n deep.", "", "The harbour is deep."),
        ("a well-\nknown town", "It is well-known.", "a well-known town"),
        ("the Baden-\nBaden line", "", "the Baden-Baden line"),
        ("co\u00adopera\u00ad\ntion", "", "cooperation"),
        ("from 3 -\n 5 km", "", "from 3 - 5 km"),
        ("see /var/\nopt and either /\nor", "", "see /var/opt and either / or"),
        ("l\u2019élève\ndit", "", "l\u2019élève dit"),
    ],
    ids=["word", "compound", "name", "soft hyphens", "range", "path", "no hyphen"],
)
def test_text_for_people_has_no_line_breaks(text: str, page: str, unwrapped: str) -> None:
    """CHAT-6"""
    assert unwrap(text, page) == unwrapped
