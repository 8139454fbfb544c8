"""Embeds the passages of a text from the embeddings of its tokens, so that each vector reflects the context.

Late chunking, Günther et al. 2024, https://arxiv.org/abs/2409.04701: the model reads the longest window it accepts, and
the vector of a passage is the mean over its tokens in that window. It suits models that use mean pooling themselves.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from functions.core import models

if TYPE_CHECKING:  # numpy costs 100 ms at import and most handlers never touch a vector
    import numpy as np
    import numpy.typing as npt

    from functions.core.ports import Matrix, TokenEmbedder

_CHARACTERS_PER_TOKEN = 8  # an upper bound for any language, where the search for the end of a window begins
_NEAR = 4  # a word border is near within this part of a window; texts without spaces are cut anywhere

_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class _Share:
    """The part [start, end) of span `span` that is pooled from one window."""

    span: int
    start: int
    end: int


def embed_late(embedder: TokenEmbedder, text: str, spans: Sequence[models.Offsets], prefix: str = "") -> Matrix:
    """Unit vectors of text[start:end], one row a span; spans may overlap and come in any order.

    A text that is too long for the model is read in windows that overlap by half. A span is pooled from the window in
    which it lies most centrally; a span that fits into no window is pooled over several, each token from one of them. A
    span without tokens is embedded by itself. `prefix` stands before each window, and its tokens are not pooled. Only
    one window is in memory at a time. Raises what the embedder raises, and ValueError for a span outside the text.
    """
    import numpy as np

    if any(not 0 <= start <= end <= len(text) for start, end in spans):
        raise ValueError("a span is not part of the text")
    limit = max(1, embedder.max_input_tokens - embedder.count_tokens(prefix))
    windows = plan_windows(text, limit, embedder.count_tokens)
    sums = np.zeros((len(spans), embedder.dimensions), np.float64)
    for (left, right), shares in zip(windows, _share_out(spans, windows), strict=True):
        if shares:
            (tokens,) = embedder.embed_tokens([prefix + text[left:right]])
            middles = np.array(tokens.offsets, np.int64).reshape(-1, 2).sum(axis=1) + 2 * (left - len(prefix))
            middles[middles < 2 * left] = -1  # of the prefix
            for share in shares:
                sums[share.span] += _sum_within(tokens.vectors, middles, share)
    return _unit_vectors(embedder, [prefix + text[start:end] for start, end in spans], sums)


def plan_windows(text: str, limit: int, count_tokens: Callable[[str], int]) -> list[models.Offsets]:
    """Windows that cover `text` in order, none of more than `limit` tokens; each begins halfway through the last one.

    They begin and end at words if possible, because a word cut in two has other tokens.
    """
    borders = [match.start() for match in _WORD.finditer(text)]
    windows: list[models.Offsets] = []
    start = 0
    while start < len(text) or not windows:
        end = _window_end(text, start, limit, count_tokens, borders)
        windows.append((start, end))
        if end == len(text):
            break
        start = _window_start(borders, start, end)
    return windows


def _window_end(text: str, start: int, limit: int, count_tokens: Callable[[str], int], borders: Sequence[int]) -> int:
    """The end of the longest window from `start` within `limit` tokens, at a word if one is near; never empty."""

    def tokens_to(end: int) -> int:
        return count_tokens(text[start:end])

    reach = _CHARACTERS_PER_TOKEN * limit
    while start + reach < len(text) and tokens_to(start + reach) <= limit:
        reach *= 2
    last = min(start + reach, len(text))
    if last == len(text) and tokens_to(last) <= limit:
        return last
    fitting = bisect.bisect_right(range(start + 1, last), limit, key=tokens_to)
    end = start + max(1, fitting)
    index = bisect.bisect_right(borders, end)
    is_near = index > 0 and end - borders[index - 1] < (end - start) // _NEAR
    return borders[index - 1] if is_near and tokens_to(borders[index - 1]) <= limit else end


def _window_start(borders: Sequence[int], start: int, end: int) -> int:
    """Where the window after [start, end) begins: at a word near the middle, or else in the middle."""
    middle = start + (end - start + 1) // 2
    index = bisect.bisect_left(borders, middle)
    is_near = index < len(borders) and borders[index] - middle < (end - start) // _NEAR
    return borders[index] if is_near else middle


def _share_out(spans: Sequence[models.Offsets], windows: Sequence[models.Offsets]) -> list[list[_Share]]:
    """For each window, the shares of spans that are pooled from it."""
    shares: list[list[_Share]] = [[] for _ in windows]
    for index, (start, end) in enumerate(spans):
        for window, left, right in _find_places(start, end, windows):
            shares[window].append(_Share(index, left, right))
    return shares


def _find_places(start: int, end: int, windows: Sequence[models.Offsets]) -> Iterator[tuple[int, int, int]]:
    """(window, start, end) of the parts of a span: a single one if a window contains it, else parts that tile it."""
    margins = [(min(start - left, right - end), -index) for index, (left, right) in enumerate(windows)]
    margin, index = max(margins)
    if margin >= 0:
        yield -index, start, end
        return
    cuts = [(following[0] + window[1]) // 2 for window, following in itertools.pairwise(windows)]
    for window, (left, right) in enumerate(zip([0, *cuts], [*cuts, windows[-1][1]], strict=True)):
        if max(left, start) < min(right, end):
            yield window, max(left, start), min(right, end)


def _sum_within(vectors: Matrix, middles: npt.NDArray[np.int64], share: _Share) -> npt.NDArray[np.float64]:
    """The sum over the tokens whose middle lies in the share; some models count the space before a word as its start.

    `middles` are doubled so that they are whole numbers.
    """
    import numpy as np

    inside = (middles >= 2 * share.start) & (middles < 2 * share.end)
    total: npt.NDArray[np.float64] = vectors[inside].sum(axis=0, dtype=np.float64)
    return total


def _unit_vectors(embedder: TokenEmbedder, texts: Sequence[str], sums: npt.NDArray[np.float64]) -> Matrix:
    """The sums as unit vectors: a sum has the direction of its mean, so tokens need not be counted."""
    import numpy as np

    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    vectors = (sums / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    empty: list[int] = np.flatnonzero(lengths[:, 0] == 0).tolist()
    if empty:
        vectors[empty] = np.asarray(embedder.embed([texts[index] for index in empty]))
    return vectors
