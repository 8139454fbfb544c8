"""Which characters a reader can see, and which are blank."""

from __future__ import annotations

import pytest

from functions.core.text.visible import is_blank


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t",
        "\0\x07",
        "\u200b\u2060\ufeff",
        "\u202e\u200f",
        "\ud83d",
        "\ufffd \ufffd",
        "\u0301\ufe0f",
        "\u3164\u2800",
        "\u00ad",
    ],
)
def test_invisible_characters_are_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["?", "a", "\0a", "日", "é", "\u200bو", "😀", "5", "\ue000 x"])
def test_one_visible_character_is_not_blank(text: str) -> None:
    assert not is_blank(text)
