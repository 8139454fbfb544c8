"""Supabase Auth on loopback, with the routes that a sign-in page uses.

It follows https://supabase.com/docs/guides/auth/sessions and the errors of https://supabase.com/docs/guides/auth/debugging/error-codes:
a session has an access token (ES256) and a refresh token that works once; an error is `{code, error_code, msg}`.
"""

from __future__ import annotations

import threading
import time
import uuid
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.fakes.json_server import Body, FakeServer, Fault
from tests.support.fakes.key_server import EC_KEY, claims, public, sign

PUBLISHABLE_KEY = "sb_publishable_test"
Json = dict[str, Any]
SHARED = {
    "access-control-allow-origin": "*",
    "access-control-allow-headers": "apikey, authorization, content-type",
}


def refuse(status: int, error_code: str, msg: str) -> Fault:
    return Fault(status, SHARED, {"code": status, "error_code": error_code, "msg": msg})


class FakeAuthServer(FakeServer):
    """Users by e-mail address; `links` are the sent sign-in links, `refreshes` counts renewed sessions."""

    def __init__(self, *, lifetime: int = 3600) -> None:
        super().__init__()
        self.lifetime = lifetime
        self.people: dict[str, Json] = {}
        self.links: dict[str, str] = {}
        self.refreshes = 0
        self._refresh_tokens: dict[str, str] = {}
        self._lock = threading.Lock()

    def invite(self, email: str, password: str = "correct horse") -> str:
        """Adds a user; returns the id."""
        self.people[email] = {"id": str(uuid.uuid4()), "email": email, "password": password}
        return str(self.people[email]["id"])

    def sign_everybody_out(self) -> None:
        """Ends all sessions, as an administrator can: no refresh token works any more."""
        self._refresh_tokens.clear()

    def answer(self, route: str, body: Body) -> Fault:
        address = urlsplit(route.partition(" ")[2])
        query = parse_qs(address.query)
        if route == "GET /auth/v1/.well-known/jwks.json":
            return Fault(body={"keys": [public(EC_KEY, "ec")]})
        if route.startswith("OPTIONS"):
            return Fault(headers=SHARED)
        request = next(request for request in reversed(self.requests) if request["body"] is body)
        if request["headers"].get("apikey") != PUBLISHABLE_KEY:
            return Fault(401, SHARED, {"message": "Invalid API key"})
        if address.path == "/auth/v1/token":
            with self._lock:
                return self._sign_in(query["grant_type"][0], body)
        if address.path == "/auth/v1/otp":
            return self._send_link(query, body)
        assert address.path == "/auth/v1/logout", route
        return Fault(204, SHARED, b"")

    def open_session(self, email: str) -> Json:
        """A new session of a user; every way to sign in returns one."""
        person = self.people[email]
        refresh_token = uuid.uuid4().hex[:12]
        self._refresh_tokens[refresh_token] = email
        now = int(time.time())
        body = claims(f"{self.base_url}/auth/v1", sub=person["id"], email=email, exp=now + self.lifetime)
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

    def _sign_in(self, grant_type: str, body: Body) -> Fault:
        if grant_type == "password":
            person = self.people.get(body["email"])
            if person is None or person["password"] != body["password"]:
                return refuse(400, "invalid_credentials", "Invalid login credentials")
            return Fault(headers=SHARED, body=self.open_session(body["email"]))
        email = self._refresh_tokens.pop(body["refresh_token"], None)
        if email is None:
            return refuse(400, "refresh_token_not_found", "Invalid Refresh Token: Refresh Token Not Found")
        self.refreshes += 1
        return Fault(headers=SHARED, body=self.open_session(email))

    def _send_link(self, query: dict[str, list[str]], body: Body) -> Fault:
        email = body["email"]
        if email not in self.people:
            return refuse(422, "otp_disabled", "Signups not allowed for otp")
        session = self.open_session(email)
        names = ("access_token", "expires_in", "expires_at", "refresh_token", "token_type")
        fragment = "&".join(f"{name}={session[name]}" for name in names)
        self.links[email] = f"{query['redirect_to'][0]}#{fragment}&type=magiclink"
        return Fault(headers=SHARED, body={})
