"""A TCP port in front of a Unix socket, for programs that cannot connect to a Unix socket."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer
from urllib.parse import quote

import psycopg


@contextmanager
def open_bridge(dsn: str) -> Iterator[str]:
    """The same database at an address of 127.0.0.1, without encryption."""
    target = psycopg.conninfo.conninfo_to_dict(dsn)
    path = f"{target['host']}/.s.PGSQL.{target['port']}"
    server = _Bridge(("127.0.0.1", 0), type("Handler", (_Handler,), {"path": path}))
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            port = server.server_address[1]
            yield f"postgresql://{target['user']}:x@127.0.0.1:{port}/{quote(str(target['dbname']))}?sslmode=disable"
        finally:
            server.shutdown()
            thread.join()


class _Bridge(ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False


class _Handler(BaseRequestHandler):
    path: str

    def handle(self) -> None:
        with socket.socket(socket.AF_UNIX) as inside:
            inside.connect(self.path)
            back = threading.Thread(target=_pump, args=(inside, self.request), daemon=True)
            back.start()
            _pump(self.request, inside)
            back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):  # either side may hang up
        while piece := source.recv(1 << 16):
            target.sendall(piece)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
