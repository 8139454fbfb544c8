"""Embeds many texts in batches and checks the vectors, so that a bad text affects no other."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from functions.core import errors

if TYPE_CHECKING:  # numpy costs 100 ms at import and most handlers never touch a vector
    from functions.core.ports import Embedder, Matrix, Vectors

MAX_BATCH_TOKENS = 200_000  # the OpenAI API accepts 300,000 tokens a request; counts by other tokenizers are estimates


@dataclass(frozen=True, slots=True)
class EmbeddingFailure:
    """The model refused text `index` even by itself. `code` and `message` are those of the error."""

    index: int
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class EmbeddedBatch:
    """Row i of `vectors` belongs to text `indices[i]`; every text is in exactly one batch, as a row or a failure."""

    indices: tuple[int, ...]
    vectors: Matrix
    failures: tuple[EmbeddingFailure, ...] = ()


def embed_chunks(
    embedder: Embedder,
    texts: Sequence[str],
    *,
    batch_size: int,
    max_batch_tokens: int = MAX_BATCH_TOKENS,
    token_counts: Sequence[int] | None = None,
    concurrency: int = 1,
) -> Iterator[EmbeddedBatch]:
    """Yields batches in order of their first text; equal texts are embedded once, in the batch of the first of them.

    `token_counts` saves counting if they are known. At most `concurrency` batches are running or waiting to be taken.
    Raises errors that are retryable, and ModelRejectedError if the model refuses each text of a batch of two or more:
    then the model is at fault, not the texts.
    """
    places: dict[str, list[int]] = {}
    for index, text in enumerate(texts):
        places.setdefault(text, []).append(index)
    firsts = [indices[0] for indices in places.values()]
    counts = [token_counts[i] if token_counts else embedder.count_tokens(texts[i]) for i in firsts]
    groups = [
        [places[texts[firsts[position]]] for position in group]
        for group in group_by_size(counts, batch_size=batch_size, max_batch_tokens=max_batch_tokens)
    ]
    if concurrency <= 1:
        return (_embed_group(embedder, texts, group) for group in groups)
    return _embed_side_by_side(embedder, texts, groups, concurrency)


def group_by_size(counts: Iterable[int], *, batch_size: int, max_batch_tokens: int) -> list[list[int]]:
    """Groups consecutive positions up to `batch_size` and `max_batch_tokens`; a larger count is a group of its own."""
    groups: list[list[int]] = []
    total = 0
    for position, count in enumerate(counts):
        if groups and len(groups[-1]) < batch_size and total + count <= max_batch_tokens:
            groups[-1].append(position)
            total += count
        else:
            groups.append([position])
            total = count
    return groups


def check_vectors(vectors: Vectors, count: int, dimensions: int) -> Matrix:
    """`vectors` as float32; raises ModelRejectedError unless they are `count` finite, nonzero rows of `dimensions`."""
    import numpy as np

    try:
        checked: Matrix = np.asarray(vectors, np.float32)
    except (TypeError, ValueError) as exc:
        raise errors.ModelRejectedError("The embedding model returned something other than vectors.") from exc
    if checked.shape != (count, dimensions):
        raise errors.ModelRejectedError(
            f"The embedding model returned an array of shape {checked.shape} where {(count, dimensions)} was expected.",
            expected_dimensions=dimensions,
        )
    if not np.isfinite(checked).all():
        raise errors.ModelRejectedError("The embedding model returned a vector with values that are not finite.")
    if not checked.any(axis=1).all():
        raise errors.ModelRejectedError("The embedding model returned a vector of zeros, which has no direction.")
    return checked


def _embed_side_by_side(
    embedder: Embedder, texts: Sequence[str], groups: list[list[list[int]]], concurrency: int
) -> Iterator[EmbeddedBatch]:
    pending: deque[Future[EmbeddedBatch]] = deque()
    with ThreadPoolExecutor(concurrency, thread_name_prefix="embed") as pool:
        try:
            for group in groups:
                if len(pending) == concurrency:
                    yield pending.popleft().result()
                pending.append(pool.submit(_embed_group, embedder, texts, group))
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def _embed_group(embedder: Embedder, texts: Sequence[str], group: list[list[int]]) -> EmbeddedBatch:
    """`group` lists, for each distinct text, all indices at which it occurs."""
    try:
        vectors = _embed_checked(embedder, [texts[indices[0]] for indices in group])
        return _spread(group, vectors, ())
    except errors.IbidError as error:
        if error.retryable or (isinstance(error, errors.ModelRejectedError) and error.concerns_every_text):
            raise
        return _embed_one_by_one(embedder, texts, group, error)


def _embed_one_by_one(
    embedder: Embedder, texts: Sequence[str], group: list[list[int]], error: errors.IbidError
) -> EmbeddedBatch:
    import numpy as np

    good: list[list[int]] = []
    rows: list[Matrix] = []
    failures: list[EmbeddingFailure] = []
    for indices in group:
        try:
            if len(group) == 1:
                raise error
            rows.append(_embed_checked(embedder, [texts[indices[0]]]))
            good.append(indices)
        except errors.IbidError as refusal:
            if refusal.retryable:
                raise
            failures.extend(EmbeddingFailure(index, refusal.code, refusal.message) for index in indices)
    if len(group) > 1 and not good:
        raise error
    vectors = np.concatenate(rows) if rows else np.empty((0, embedder.dimensions), np.float32)
    return _spread(good, vectors, tuple(failures))


def _embed_checked(embedder: Embedder, texts: list[str]) -> Matrix:
    return check_vectors(embedder.embed(texts), len(texts), embedder.dimensions)


def _spread(group: list[list[int]], vectors: Matrix, failures: tuple[EmbeddingFailure, ...]) -> EmbeddedBatch:
    rows = [row for row, indices in enumerate(group) for _ in indices]
    flat = tuple(index for indices in group for index in indices)
    return EmbeddedBatch(flat, vectors if len(rows) == len(group) else vectors[rows], failures)
