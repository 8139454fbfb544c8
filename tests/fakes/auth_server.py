"""Supabase Auth on loopback, as far as a page that signs people in needs it.

Follows https://supabase.com/docs/guides/auth/sessions and the errors of https://supabase.com/docs/guides/auth/debugging/error-codes:
a session of an access token (ES256) and a refresh token that works once; errors as `{code, error_code, msg}`.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from tests.fakes.key_server import EC_KEY, claims, public, sign

PUBLISHABLE_KEY = "sb_publishable_test"
Json = dict[str, Any]


class Refusal(Exception):
    def __init__(self, status: int, error_code: str, msg: str) -> None:
        self.status = status
        self.body = {"code": status, "error_code": error_code, "msg": msg}


class FakeAuthServer:
    """People by address; `links` are those sent by e-mail, `refreshes` counts renewed sessions."""

    def __init__(self, *, lifetime: int = 3600) -> None:
        self.lifetime = lifetime
        self.people: dict[str, Json] = {}
        self.links: dict[str, str] = {}
        self.refreshes = 0
        self._refresh_tokens: dict[str, str] = {}
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"fake": self}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def invite(self, email: str, password: str = "correct horse") -> str:
        """Makes somebody known; returns the id."""
        self.people[email] = {"id": str(uuid.uuid4()), "email": email, "password": password}
        return str(self.people[email]["id"])

    def sign_everybody_out(self) -> None:
        """What an administrator does: sessions can no longer be renewed."""
        self._refresh_tokens.clear()

    def answer(self, route: str, query: Json, body: Json) -> Json:
        if route == "POST /auth/v1/token":
            with self._lock:
                return self._sign_in(query["grant_type"][0], body)
        if route == "POST /auth/v1/otp":
            return self._send_link(query, body)
        if route == "POST /auth/v1/logout":
            return {}
        raise Refusal(404, "not_found", "no such address")

    def open_session(self, email: str) -> Json:
        """A new session of somebody, as every way to sign in ends."""
        person = self.people[email]
        refresh_token = uuid.uuid4().hex[:12]
        self._refresh_tokens[refresh_token] = email
        now = int(time.time())
        body = claims(f"{self.url}/auth/v1", sub=person["id"], email=email, exp=now + self.lifetime)
        return {
            "access_token": sign(body, EC_KEY, "ES256", "ec"),
            "token_type": "bearer",
            "expires_in": self.lifetime,
            "expires_at": now + self.lifetime,
            "refresh_token": refresh_token,
            "user": {
                "id": person["id"],
                "aud": "authenticated",
                "role": "authenticated",
                "email": email,
                "app_metadata": {},
                "user_metadata": {},
                "created_at": "2026-01-01T00:00:00Z",
            },
        }

    def _sign_in(self, grant_type: str, body: Json) -> Json:
        if grant_type == "password":
            person = self.people.get(body["email"])
            if person is None or person["password"] != body["password"]:
                raise Refusal(400, "invalid_credentials", "Invalid login credentials")
            return self.open_session(body["email"])
        email = self._refresh_tokens.pop(body["refresh_token"], None)
        if email is None:
            raise Refusal(400, "refresh_token_not_found", "Invalid Refresh Token: Refresh Token Not Found")
        self.refreshes += 1
        return self.open_session(email)

    def _send_link(self, query: Json, body: Json) -> Json:
        email = body["email"]
        if email not in self.people:
            raise Refusal(422, "otp_disabled", "Signups not allowed for otp")
        session = self.open_session(email)
        kept = ("access_token", "expires_in", "expires_at", "refresh_token", "token_type")
        given = "&".join(f"{name}={session[name]}" for name in kept)
        self.links[email] = f"{query['redirect_to'][0]}#{given}&type=magiclink"
        return {}


class _Handler(BaseHTTPRequestHandler):
    fake: FakeAuthServer

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def do_OPTIONS(self) -> None:
        self._send(200, {})

    def do_GET(self) -> None:
        self._send(200, {"keys": [public(EC_KEY, "ec")]})

    def do_POST(self) -> None:
        address = urlsplit(self.path)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or "{}")
        if self.headers["apikey"] != PUBLISHABLE_KEY:
            self._send(401, {"message": "Invalid API key"})
            return
        try:
            self._send(200, self.fake.answer(f"POST {address.path}", parse_qs(address.query), body))
        except Refusal as refusal:
            self._send(refusal.status, refusal.body)

    def _send(self, status: int, body: Json) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.send_header("access-control-allow-origin", "*")
        self.send_header("access-control-allow-headers", "apikey, authorization, content-type")
        self.end_headers()
        self.wfile.write(content)
