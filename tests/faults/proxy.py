"""A TCP address in front of a server, at which connections can be refused, delayed or left without an answer."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Connect = Callable[[], socket.socket]


class Proxy:
    """Forwards connections to what `connect` opens; `delay` holds each piece of an answer back, in seconds."""

    def __init__(self, connect: Connect) -> None:
        self.delay = 0.0
        self._connect = connect
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._refuses = False
        threading.Thread(target=self._accept, daemon=True).start()

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Inside the block every connection is cut, open ones too."""
        self._refuses = True
        self._cut()
        try:
            yield
        finally:
            self._refuses = False

    @contextmanager
    def delaying(self, seconds: float) -> Iterator[None]:
        self.delay = seconds
        try:
            yield
        finally:
            self.delay = 0.0

    def close(self) -> None:
        self._listener.close()
        self._cut()

    def _cut(self) -> None:
        with self._lock:
            for side in self._open:
                with suppress(OSError):
                    side.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with suppress(OSError):  # the listener is closed
            while True:
                outside, _ = self._listener.accept()
                threading.Thread(target=self._forward, args=(outside,), daemon=True).start()

    def _forward(self, outside: socket.socket) -> None:
        with outside, suppress(OSError):
            if self._refuses:
                return
            with self._connect() as inside:
                with self._lock:
                    self._open |= {outside, inside}
                back = threading.Thread(target=self._pump, args=(inside, outside, True), daemon=True)
                back.start()
                self._pump(outside, inside, False)
                back.join()
                with self._lock:
                    self._open -= {outside, inside}

    def _pump(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        with suppress(OSError):  # either side may hang up
            while piece := source.recv(1 << 16):
                if is_answer and self.delay:
                    time.sleep(self.delay)
                target.sendall(piece)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)
