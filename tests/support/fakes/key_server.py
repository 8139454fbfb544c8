"""The JWKS address of a Supabase project on loopback; it can be down, slow, or send malformed replies."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

USER = "3f0d1a52-5a0e-4f3a-9d5e-8a3b7f1c2d4e"
EC_KEY = ec.generate_private_key(ec.SECP256R1())
RSA_KEY = rsa.generate_private_key(65537, 2048)


@dataclass
class KeyServer:
    """The keys to serve, or a reply to send instead.

    `raw` replaces the whole HTTP reply, `visits` counts requests, `found_anywhere` serves the keys under every path.
    """

    url: str = ""
    keys: list[Any] = field(default_factory=list)
    visits: int = 0
    status: int = 200
    body: bytes | None = None
    delay: float = 0.0
    raw: bytes | None = None
    location: str | None = None
    found_anywhere: bool = False

    @property
    def issuer(self) -> str:
        return f"{self.url}/auth/v1"

    def recover(self) -> None:
        self.status, self.body, self.delay, self.raw, self.location = 200, None, 0.0, None, None


class _Handler(BaseHTTPRequestHandler):
    state: KeyServer

    def do_GET(self) -> None:
        state = self.state
        state.visits += 1
        time.sleep(state.delay)
        if state.raw is not None:
            self.wfile.write(state.raw)
            return
        is_found = state.found_anywhere or self.path.endswith(("/.well-known/jwks.json", "/"))
        body = json.dumps({"keys": state.keys}).encode() if state.body is None else state.body
        self.send_response(state.status if is_found else 404)
        if state.location is not None:
            self.send_header("location", state.location)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Silences the request log of http.server."""


@contextmanager
def serve_keys(*keys: Any) -> Iterator[KeyServer]:
    """Serves `keys`, by default the public parts of an ES256 key `ec` and an RS256 key `rsa`."""
    state = KeyServer(keys=list(keys) or [public(EC_KEY, "ec"), public(RSA_KEY, "rsa")])
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"state": state}))
    server.daemon_threads = True
    with server:
        state.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def serve_drops() -> Iterator[str]:
    """An address whose reply never ends: it sends one byte every 0.05 seconds."""
    stopping = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            while not stopping.wait(0.05):
                try:
                    self.wfile.write(b" ")
                except OSError:  # the client closed the connection
                    return

        def log_message(self, *_: Any) -> None:
            """Silences the request log of http.server."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        stopping.set()
        server.shutdown()
        thread.join()


def public(key: Any, kid: str) -> dict[str, Any]:
    """The public part as an entry of a key set."""
    kind = jwt.algorithms.ECAlgorithm if isinstance(key, ec.EllipticCurvePrivateKey) else jwt.algorithms.RSAAlgorithm
    algorithm = "ES256" if kind is jwt.algorithms.ECAlgorithm else "RS256"
    return {**kind.to_jwk(key.public_key(), as_dict=True), "kid": kid, "alg": algorithm, "use": "sig"}


def claims(issuer: str, **changes: Any) -> dict[str, Any]:
    """The claims of a Supabase token, with changes; None leaves a claim out."""
    now = int(time.time())
    standard = {
        "iss": issuer,
        "aud": "authenticated",
        "role": "authenticated",
        "sub": USER,
        "iat": now,
        "exp": now + 60,
    }
    return {name: value for name, value in {**standard, **changes}.items() if value is not None}


def sign(body: dict[str, Any], key: Any, algorithm: str, kid: str | None = None) -> str:
    return jwt.encode(body, key, algorithm=algorithm, headers={"kid": kid} if kid else None)


def confuse(body: dict[str, Any], key: Any, kid: str) -> str:
    """A forged token, signed with HS256 and the public key as the secret; PyJWT itself refuses to create it."""
    pem = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    header = json.dumps({"alg": "HS256", "kid": kid, "typ": "JWT"}).encode()
    message = b".".join(map(jwt.utils.base64url_encode, (header, json.dumps(body).encode())))
    hs256 = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    return (message + b"." + jwt.utils.base64url_encode(hs256.sign(message, pem))).decode()
