"""Keeps a child process that reads files within limits of memory and time, which hold whatever a file says.

What a file makes a parser do cannot be known before the file is parsed: 160 kB of a PDF may hold six million lines.
So the operating system limits the child, and its parent, which has the secrets and the job, never runs a parser.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import weakref
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from functions.core import errors, ports
from functions.core.extraction import child_program

_START_SECONDS = 60.0
# Somebody else ended the process, such as a system that is short of memory.
_ENDED_FROM_OUTSIDE = (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGHUP)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a child process may use.

    `memory` is its address space in bytes (macOS does not enforce it; there, the limits of time end what grows).
    `processor_seconds` and `seconds`, by the clock, are for one request, without OCR, which has a limit of its own.
    """

    memory: int = 1 << 30
    processor_seconds: int = 20
    seconds: float = 40.0


class ChildProcess:
    """A child process, which is started by the first request and again by the first one after its end."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._end: weakref.finalize[..., ChildProcess] | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def request(self, operation: str, *arguments: Any, recognizer: ports.TextRecognizer | None = None) -> Any:
        """What the method `operation` of `child_program.Operations` returns or raises.

        Raises TooComplexError if the child reached a limit or crashed; it is not running then. `recognizer` reads
        images here, because it has limits of its own.
        """
        connection = self._connection if self._connection and self.is_running else self._start()
        try:
            connection.send((operation, arguments))
            kind, answer = self._receive(connection, self.limits.seconds)
            while kind == child_program.IMAGE:
                connection.send(_recognize(recognizer, *answer))
                kind, answer = self._receive(connection, self.limits.seconds)
        except (EOFError, ConnectionError):
            raise self._explain_end() from None
        except BaseException:  # the answer to this request would be taken for that to the next one
            self.close()
            raise
        if kind == child_program.ERROR:
            raise answer
        return answer

    def close(self) -> None:
        """Ends the child, whatever it is doing."""
        if self._end is not None and self._connection is not None:
            self._connection.close()
            self._end()
        self._process = self._connection = self._end = None

    def _start(self) -> Connection:
        self.close()
        ours, theirs = multiprocessing.Pipe()
        limits = [str(self.limits.memory), str(self.limits.processor_seconds)]
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", child_program.__name__, str(theirs.fileno()), *limits],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # PDFium's last words; exceptions of the child are raised here
                env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
                pass_fds=[theirs.fileno()],
                process_group=0,  # Ctrl-C is for the parent, which decides when it stops
            )
        self._connection, self._end = ours, weakref.finalize(self, _end, self._process)
        try:
            self._receive(ours, _START_SECONDS)
        except (EOFError, ConnectionError):
            self.close()
            raise errors.UnavailableError("The process that reads files could not be started.") from None
        return ours

    def _receive(self, connection: Connection, seconds: float) -> tuple[str, Any]:
        """The next message of the child; raises EOFError if it has ended or sends nothing in time."""
        if not connection.poll(seconds):
            self.close()
            raise EOFError
        message: tuple[str, Any] = connection.recv()
        return message

    def _explain_end(self) -> errors.IbidError:
        process = self._process
        if process is None:
            _log.warning("the process that reads files was ended because its time was up")
            return errors.TooComplexError()
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_START_SECONDS)
        status = process.poll()
        self.close()
        _log.warning("the process that reads files ended", extra={"exit_status": status})
        if status in _ENDED_FROM_OUTSIDE:
            return errors.UnavailableError("The document could not be read because memory failed.")
        return errors.TooComplexError()


def _recognize(recognizer: ports.TextRecognizer | None, png: bytes, timeout: float) -> Any:
    assert recognizer is not None
    try:
        return recognizer.recognize(png, timeout=timeout)
    except errors.IbidError as exc:
        return exc


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
