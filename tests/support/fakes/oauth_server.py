"""Supabase Auth as an OAuth 2.1 server on loopback: discovery, client registration, and codes for tokens with PKCE.

It follows https://supabase.com/docs/guides/auth/oauth-server/token-security: a token has the claim `client_id`. The
page on which a person consents is left out: `consent` does what it does.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.fakes.key_server import EC_KEY, USER, claims, public, sign

Json = dict[str, Any]


class OAuthServer:
    """The state of the server; `visited` are the paths of all requests, in order."""

    def __init__(self) -> None:
        self.url = ""
        self.visited: list[str] = []
        self._challenges: dict[str, str] = {}

    @property
    def issuer(self) -> str:
        return f"{self.url}/auth/v1"

    def consent(self, address: str) -> tuple[str, str]:
        """The code and the state with which a browser comes back after a person has agreed at `address`."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert asked["code_challenge_method"] == "S256"
        code = uuid.uuid4().hex
        self._challenges[code] = asked["code_challenge"]
        return code, asked["state"]

    def answer(self, path: str, form: dict[str, str]) -> tuple[int, Json]:
        if path == "/.well-known/oauth-authorization-server/auth/v1":
            return 200, self._describe()
        if path == "/auth/v1/.well-known/jwks.json":
            return 200, {"keys": [public(EC_KEY, "ec")]}
        if path == "/auth/v1/oauth/clients/register":
            return 201, form | {"client_id": str(uuid.uuid4())}
        if path == "/auth/v1/oauth/token":
            return self._issue(form)
        return 404, {"error": "not_found"}

    def _describe(self) -> Json:
        oauth = f"{self.issuer}/oauth"
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{oauth}/authorize",
            "token_endpoint": f"{oauth}/token",
            "registration_endpoint": f"{oauth}/clients/register",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
        }

    def _issue(self, form: dict[str, str]) -> tuple[int, Json]:
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        if self._challenges.pop(form["code"], "") != base64.urlsafe_b64encode(digest).decode().rstrip("="):
            return 400, {"error": "invalid_grant"}
        token = sign(claims(self.issuer, client_id=form["client_id"], sub=USER), EC_KEY, "ES256", "ec")
        return 200, {"access_token": token, "token_type": "bearer", "expires_in": 60}


class _Handler(BaseHTTPRequestHandler):
    oauth: OAuthServer

    def do_GET(self) -> None:
        self._reply({})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        is_json = self.headers["Content-Type"].startswith("application/json")
        self._reply(json.loads(body) if is_json else {name: values[0] for name, values in parse_qs(body).items()})

    def log_message(self, *_: object) -> None:
        """Silences the request log of http.server."""

    def _reply(self, form: dict[str, str]) -> None:
        path = urlsplit(self.path).path
        self.oauth.visited.append(path)
        status, content = self.oauth.answer(path, form)
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serve_oauth() -> Iterator[OAuthServer]:
    state = OAuthServer()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"oauth": state}))
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
