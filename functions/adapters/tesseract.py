"""Reads page images with the Tesseract program: one process per image, so that a crash or a hang costs one page.

Tesseract writes its words as TSV, block by block: a block is a column, a caption or a table.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby

from functions.core import errors, models, ports

_COLUMNS = 12
_PAGE, _WORD = "1", "5"  # values of the column `level`
_START_SECONDS = 10.0

# Confidences (0 to 100) below which a block, a word or a page counts as noise: clean print has 90 or more, bad
# print 65.
_MIN_BLOCK = 40  # the mean of a block
_MIN_SYMBOL = 70  # a word without letters or digits
_MIN_SHORT_WORD = 35  # a word of one or two letters or digits
_MIN_WORD = 10
_MIN_PAGE = 50  # at least one word of a page must have it
_LETTERS_OF_LONG_WORD = 3
_RULES = "|¦"  # Tesseract reads the ruling lines of a table as these, alone or as part of a word

_log = logging.getLogger(__name__)

PageSize = tuple[int, int]
"""Width and height of an image in pixels."""


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of the report: the ids of its block, paragraph and line, its box in pixels, its confidence (0 to 100)."""

    block: str
    paragraph: str
    line: str
    box: tuple[int, int, int, int]
    confidence: float
    text: str


@dataclass(frozen=True, slots=True)
class Tesseract:
    """An installed Tesseract: the path of the program, and the languages as its option `-l` takes them ("eng+fra")."""

    program: str
    languages: str

    def recognize(self, png: bytes, *, timeout: float) -> ports.RecognizedPage:
        """The text of horizontal and vertical lines in reading order, without what looks like noise.

        The confidence of a page is the mean of its words, weighted by their characters. Raises RecognitionError.
        """
        size, words = _read_tsv(self._run(png, timeout))
        return _compose(size, _drop_noise(words))

    def _run(self, png: bytes, timeout: float) -> str:
        command = [self.program, "stdin", "stdout", "-l", self.languages, "--psm", "3", "tsv"]
        # A second thread makes Tesseract slower and takes a core from other work.
        environment = os.environ | {"OMP_THREAD_LIMIT": "1"}
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                process_group=0,  # `program` may be a wrapper script: killing the group kills its children too
            )
        except OSError as exc:
            raise errors.RecognitionError("Tesseract could not be started. Check its installation.") from exc
        with process:
            try:
                output, stderr = process.communicate(png, timeout)
            except BaseException as exc:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                if isinstance(exc, subprocess.TimeoutExpired):
                    raise errors.RecognitionError("Tesseract took too long.", seconds=timeout) from exc
                raise
        if process.returncode != 0:
            _log.warning("tesseract failed (%d): %s", process.returncode, stderr[-300:].decode(errors="replace"))
            raise errors.RecognitionError("Tesseract could not read the image.", exit_code=process.returncode)
        return output.decode("utf-8", errors="replace")


def find_tesseract(languages: str = "eng+fra") -> Tesseract | None:
    """The installed Tesseract with those of `languages` that it has; None without the program or a language."""
    program = shutil.which("tesseract")
    if program is None:
        return None
    try:
        command = [program, "--list-langs"]
        listing = subprocess.run(command, capture_output=True, timeout=_START_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as exc:
        _log.warning("tesseract is installed but does not work: %s", exc)
        return None
    installed = set(listing.stdout.decode(errors="replace").split())
    usable = [language for language in languages.split("+") if language in installed]
    if not usable:
        _log.warning("tesseract has none of the languages %s; install one of them or change OCR_LANGUAGES", languages)
        return None
    return Tesseract(program, "+".join(usable))


def _read_tsv(output: str) -> tuple[PageSize, list[_Word]]:
    """The size of the image in pixels and its words, in the order of the report."""
    size: PageSize = (1, 1)
    words: list[_Word] = []
    for line in output.split("\n"):
        row = line.rstrip("\r").split("\t", _COLUMNS - 1)
        if len(row) < _COLUMNS:
            continue
        left, top, width, height = row[6:10]
        if row[0] == _PAGE:
            size = max(1, int(width)), max(1, int(height))
        elif row[0] == _WORD and (text := row[11].strip().strip(_RULES)):
            box = int(left), int(top), int(left) + int(width), int(top) + int(height)
            words.append(_Word(row[2], row[3], row[4], box, max(0.0, float(row[10])), text))
    return size, words


def _drop_noise(words: Sequence[_Word]) -> list[_Word]:
    """Drops words that are probably noise: Tesseract reads letters into pictures, table rules and specks too."""
    kept: list[_Word] = []
    for _, group in groupby(words, key=lambda word: word.block):
        block = list(group)
        if _mean_confidence(block) >= _MIN_BLOCK:
            kept += filter(_is_confident, block)
    has_text = any(word.confidence >= _MIN_PAGE and sum(map(str.isalnum, word.text)) > 1 for word in kept)
    return kept if has_text else []


def _is_confident(word: _Word) -> bool:
    letters = sum(map(str.isalnum, word.text))
    threshold = _MIN_SYMBOL if letters == 0 else _MIN_SHORT_WORD if letters < _LETTERS_OF_LONG_WORD else _MIN_WORD
    return word.confidence >= threshold


def _mean_confidence(words: Iterable[_Word]) -> float:
    weighted = [(word.confidence * len(word.text), len(word.text)) for word in words]
    return sum(value for value, _ in weighted) / max(1, sum(length for _, length in weighted))


def _compose(size: PageSize, words: Sequence[_Word]) -> ports.RecognizedPage:
    """Joins words with spaces, lines with line breaks and paragraphs with empty lines."""
    text = ""
    placed: list[models.RecognizedWord] = []
    for separator, word in zip(_separators(words), words, strict=True):
        start = len(text) + len(separator)
        text += separator + word.text
        placed.append(models.RecognizedWord(start, len(text), *_fractions(word.box, size)))
    return ports.RecognizedPage(text, models.Recognition(round(_mean_confidence(words), 1), tuple(placed)))


def _separators(words: Sequence[_Word]) -> Iterator[str]:
    """The separator before each word."""
    last: _Word | None = None
    for word in words:
        if last is None:
            yield ""
        elif (word.block, word.paragraph) != (last.block, last.paragraph):
            yield "\n\n"
        else:
            yield " " if word.line == last.line else "\n"
        last = word


def _fractions(box: tuple[int, int, int, int], size: PageSize) -> tuple[float, float, float, float]:
    left, top, right, bottom = (
        round(min(1.0, side / whole), 5) for side, whole in zip(box, (*size, *size), strict=True)
    )
    return left, top, right, bottom
