"""The program of a child process: carries out one request after the other until its parent closes the connection.

`python -m functions.core.extraction.child_program DESCRIPTOR MEMORY PROCESSOR_SECONDS`; see `child_process`.
"""

from __future__ import annotations

import math
import os
import re
import resource
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from functions.core import errors, models, ports
from functions.core.extraction import file_types
from functions.core.extraction.documents import ExtractedDocument, open_document

READY: Final = "ready"
RESULT: Final = "result"
ERROR: Final = "error"
IMAGE: Final = "image"
"""The kinds of messages to the parent; it answers an image with a RecognizedPage or an exception."""

_OUT_OF_MEMORY = 70  # an exit status that nothing else uses


@dataclass(frozen=True, slots=True)
class ParentRecognizer:
    """A `TextRecognizer` that asks the parent."""

    connection: Connection

    def recognize(self, png: bytes, *, timeout: float) -> ports.RecognizedPage:
        self.connection.send((IMAGE, (png, timeout)))
        answer = self.connection.recv()
        if isinstance(answer, Exception):
            raise answer
        page: ports.RecognizedPage = answer
        return page


class Operations:
    """What the parent may request, by name, of one open document at a time."""

    def __init__(self, connection: Connection) -> None:
        self._recognizer = ParentRecognizer(connection)
        self._document: ExtractedDocument | None = None

    def open_document(self, path: Path, file_type: models.FileType, max_pages: int, reads_images: bool) -> int:
        """Checks the content of a file and opens it; returns the number of its pages."""
        file_types.check_content(path, file_type)
        recognizer = self._recognizer if reads_images else None
        self._document = open_document(path, file_type, max_pages=max_pages, recognizer=recognizer)
        return self._document.page_count

    def read_page(self, number: int) -> models.Page | None:
        assert self._document is not None
        return next(self._document.pages(number), None)

    def read_text_layer(self, number: int) -> str:
        assert self._document is not None
        return self._document.read_text_layer(number)

    def read_metadata(self) -> models.DocumentMetadata:
        assert self._document is not None
        return self._document.metadata

    def close_document(self) -> int:
        """Returns the most memory that this process has ever used, in bytes."""
        if self._document is not None:
            self._document.__exit__(None, None, None)
            self._document = None
        return read_peak_memory()

    def draw_page(self, path: Path, number: int, options: dict[str, Any]) -> bytes:
        """A page as PNG, with the `options` of `page_images.render_page`."""
        from functions.core.extraction.pdf import page_images

        return page_images.render_page(path, number, **options)


def main() -> None:
    descriptor, memory, processor_seconds = map(int, sys.argv[1:])
    limit_memory(memory)
    with Connection(descriptor) as connection, suppress(EOFError, ConnectionError):  # the parent has ended
        operations = Operations(connection)
        connection.send((READY, None))
        while True:
            name, arguments = connection.recv()
            limit_processor_time(processor_seconds)
            connection.send(carry_out(getattr(operations, name), arguments))


def carry_out(operation: Any, arguments: tuple[Any, ...]) -> tuple[str, Any]:
    """The message with the result of an operation or its exception, with the traceback for the parent's log."""
    try:
        return RESULT, operation(*arguments)
    except MemoryError:
        os._exit(_OUT_OF_MEMORY)  # there may be too little memory left for anything else
    except errors.IbidError as exc:
        return ERROR, exc
    except Exception as exc:
        error = exc if type(exc).__module__ == "builtins" else RuntimeError(repr(exc)[:300])
        error.add_note(traceback.format_exc())
        return ERROR, error


def limit_memory(memory: int) -> None:
    """Limits the address space, in bytes; an allocation beyond it ends PDFium or raises MemoryError."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(ValueError, OSError):  # not on macOS
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def limit_processor_time(seconds: int) -> None:
    """Ends this process when it has used this many more seconds of processor time."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(usage.ru_utime + usage.ru_stime) + seconds, hard))


def read_peak_memory() -> int:
    """The most memory that this process has ever used, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # Linux's getrusage counts what the parent had used when it started this process
        peak = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        return int(peak[1]) << 10 if peak else 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
