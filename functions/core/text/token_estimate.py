"""Estimates token counts where no tokenizer is available."""

from __future__ import annotations

import math


def estimate_tokens(text: str) -> int:
    """A cautiously high estimate: one token for every three UTF-8 bytes.

    Byte-pair vocabularies average 4 bytes per token in English, 3.5 in French and 3 in Chinese.
    """
    return math.ceil(len(text.encode("utf-8", "replace")) / 3)


def cut_text(text: str, max_tokens: int) -> str:
    """The beginning of `text`, at most `max_tokens` long by that estimate."""
    return text.encode("utf-8", "replace")[: 3 * max_tokens].decode("utf-8", "ignore")
