"""Changes files at random, so that parsers meet what nobody would write."""

from __future__ import annotations

import io
import random
import re
import zipfile
import zlib
from collections.abc import Callable

_STREAM = re.compile(rb"stream\r?\n(.*?)\r?\nendstream", re.DOTALL)
_NUMBER = re.compile(rb"\d+")
_NUMBERS = (b"0", b"-1", b"1", b"65535", b"2147483647", b"4294967296", b"99999999999999999999", b"1e38")
_TOKENS = (b"<<", b">>", b"[", b"]", b"/Kids", b"/Parent", b"/Contents", b"q ", b"Q ", b"Do ", b"endobj", b"R ", b"\0")

Mutate = Callable[[bytes, random.Random], bytes]


def flip_bytes(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.choice((1, 4, 30))):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def change_numbers(content: bytes, chance: random.Random) -> bytes:
    """Replaces one of 20 numbers by one from the edge of what a parser can hold."""
    share = chance.choice((0.002, 0.05))
    return _NUMBER.sub(lambda m: chance.choice(_NUMBERS) if chance.random() < share else m.group(), content)


def move_piece(content: bytes, chance: random.Random) -> bytes:
    """Cuts a piece out and inserts it, several times perhaps, somewhere else."""
    start, place = (chance.randrange(len(content)) for _ in range(2))
    piece = content[start : start + chance.randrange(1, 400)] * chance.choice((1, 2, 50))
    return content[:place] + piece + content[place:]


def insert_token(content: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(content))
    return content[:place] + chance.choice(_TOKENS) * chance.choice((1, 3, 2000)) + content[place:]


def cut_off(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(1, len(content) + 1)]


PLAIN: tuple[Mutate, ...] = (flip_bytes, change_numbers, move_piece, insert_token, cut_off)


def mutate_pdf(content: bytes, chance: random.Random) -> bytes:
    """A PDF changed in its structure, or in the operators of one of its compressed streams."""
    streams = list(_STREAM.finditer(content))
    if streams and chance.random() < 0.5:
        chosen = chance.choice(streams)
        try:
            inner = zlib.decompress(chosen[1])
        except zlib.error:
            inner = b""
        if inner:
            changed = zlib.compress(chance.choice(PLAIN)(inner, chance))
            return content[: chosen.start(1)] + changed + content[chosen.end(1) :]
    return chance.choice(PLAIN)(content, chance)


def mutate_docx(content: bytes, chance: random.Random) -> bytes:
    """A DOCX with one part changed, or with bytes of the archive itself."""
    if chance.random() < 0.2:
        return chance.choice(PLAIN)(content, chance)
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as copy:
        parts = {name: archive.read(name) for name in dict.fromkeys(archive.namelist())}
        chosen = chance.choice([name for name, part in parts.items() if part])
        for name, part in parts.items():
            copy.writestr(name, mutate_xml(part, chance) if name == chosen else part)
    return changed.getvalue()


def mutate_xml(part: bytes, chance: random.Random) -> bytes:
    """Moves, repeats or nests whole elements, so that the part can still be parsed; sometimes changes its bytes."""
    elements = list(re.finditer(rb"<(w:\w+)[^<>]*/>|<(w:\w+)[^<>]*>[^<>]*</\2>", part))
    if not elements or chance.random() < 0.3:
        return chance.choice(PLAIN)(part, chance)
    chosen, place = chance.choice(elements), chance.choice(elements).start()
    piece = chosen.group() * chance.choice((1, 3, 300))
    if chance.random() < 0.3:
        depth = chance.choice((2, 50, 500))
        piece = b"<w:tbl><w:tr><w:tc>" * depth + piece + b"</w:tc></w:tr></w:tbl>" * depth
    return change_numbers(part[:place] + piece + part[place:], chance)
