"""Supabase Storage on loopback, with the part of version 1.11 that our adapter, its clients and our trigger use.

    with storage_server.run(dsn) as server:
        store = storage_supabase.connect(server.url, KEY, "documents")

With a database it writes `storage.objects` as the real one does, under the role `service_role`: one INSERT when all
bytes are stored, one UPDATE with a new version when they are overwritten, a DELETE when they are removed; direct
deletes are refused. Without a database it keeps the objects in memory. An upload without `upsert` checks that its path
is free when it starts and not again when it ends, so several concurrent uploads all succeed.
"""

from __future__ import annotations

import email.parser
import json
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import jwt
import psycopg

from tests.support.fakes import storage_uploads
from tests.support.fakes.storage_refusals import (
    BAD_KEY,
    DUPLICATE,
    KEY,
    NO_BUCKET,
    NO_OBJECT,
    TOO_LARGE,
    Refusal,
    Reply,
    refuse,
)

UPLOAD_SECONDS = 7200
_SIGNING_SECRET = "the secret of the signed links of the storage"

Json = dict[str, Any]


_PROTECTION = """
create or replace function storage.protect_delete() returns trigger language plpgsql as $$
begin
    if coalesce(current_setting('storage.allow_delete_query', true), 'false') <> 'true' then
        raise exception 'Direct deletion from storage tables is not allowed. Use the Storage API instead.'
            using errcode = '42501';
    end if;
    return null;
end $$;
create or replace trigger protect_objects_delete before delete on storage.objects
    for each statement execute function storage.protect_delete();
"""


@dataclass
class Stored:
    """An object; `version` changes whenever its bytes are stored."""

    content: bytes
    mime_type: str
    version: str = ""
    owner_id: str | None = None
    created: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass
class StorageServer:
    """The objects by path, the received requests, the limits of the bucket; a `failure` answers every request."""

    dsn: str | None = None
    url: str = ""
    bucket: str = "documents"
    objects: dict[str, Stored] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    failure: Reply | None = None
    max_bytes: int = 100 * 1024 * 1024
    mime_types: tuple[str, ...] | None = None
    started: int = 0
    """Uploads that were accepted, whether or not their bytes have arrived."""
    elapsed: float = 0.0
    """Seconds to add to the clock, so that signed links expire."""
    uploads: storage_uploads.Uploads = field(default_factory=storage_uploads.Uploads)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def now(self) -> float:
        return time.time() + self.elapsed

    def sign(self, path: str, scope: str, seconds: float, **claims: Any) -> str:
        body = {"url": f"{self.bucket}/{path}", "scope": scope, "exp": self.now() + seconds, **claims}
        return jwt.encode(body, _SIGNING_SECRET, algorithm="HS256")

    def verify(self, token: str, path: str, scope: str) -> Json:
        try:
            claims: Json = jwt.decode(token, _SIGNING_SECRET, algorithms=["HS256"], options={"verify_exp": False})
        except jwt.PyJWTError as exc:
            raise Refusal("400", "InvalidJWT", "Invalid Compact JWS") from exc
        if claims["exp"] < self.now():
            raise Refusal("400", "InvalidJWT", '"exp" claim timestamp check failed')
        if claims["url"] != f"{self.bucket}/{path}" or claims["scope"] != scope:
            raise Refusal("400", "InvalidSignature", "The url do not match the signature")
        return claims

    def begin(self, path: str, *, upsert: bool) -> None:
        """Checks an upload before its first byte is read."""
        if path in self.objects and not upsert:
            raise Refusal(*DUPLICATE)
        with self.lock:
            self.started += 1

    def check_limits(self, size: int, mime_type: str) -> None:
        if size > self.max_bytes:
            raise Refusal(*TOO_LARGE)
        if self.mime_types is not None and mime_type not in self.mime_types:
            raise Refusal("415", "invalid_mime_type", f"mime type {mime_type} is not supported")

    def complete(self, path: str, content: bytes, mime_type: str, owner_id: str | None = None) -> None:
        """Completes an upload: writes the row first, then stores the object."""
        stored = Stored(content, mime_type, str(uuid.uuid4()), owner_id)
        if self.dsn is not None:
            try:
                _write_row(self.dsn, self.bucket, path, stored)
            except psycopg.Error as exc:
                raise Refusal("500", "DatabaseError", str(exc)) from exc
        self.objects[path] = stored

    def remove(self, paths: list[str]) -> list[Json]:
        removed = [path for path in paths if self.objects.pop(path, None) is not None]
        if self.dsn is not None and removed:
            with psycopg.connect(self.dsn) as connection:
                connection.execute("set local role service_role")
                connection.execute("set local storage.allow_delete_query = 'true'")
                connection.execute(
                    "delete from storage.objects where bucket_id = %s and name = any(%s)", (self.bucket, removed)
                )
        return [{"name": path, "bucket_id": self.bucket} for path in removed]


def _write_row(dsn: str, bucket: str, path: str, stored: Stored) -> None:
    size = len(stored.content)
    metadata = {
        "eTag": f'"{uuid.uuid4().hex}"',
        "size": size,
        "mimetype": stored.mime_type,
        "cacheControl": "max-age=3600",
        "lastModified": stored.created.isoformat(),
        "contentLength": size,
        "httpStatusCode": 200,
    }
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "select set_config('role', 'service_role', true), set_config('request.jwt.claims', %s, true)",
            ('{"role": "service_role"}',),
        )
        connection.execute(
            "insert into storage.objects (bucket_id, name, version, owner_id, metadata) values (%s, %s, %s, %s, %s)"
            " on conflict (bucket_id, name) do update set version = excluded.version, metadata = excluded.metadata,"
            " owner_id = excluded.owner_id, updated_at = now()",
            (bucket, path, stored.version, stored.owner_id, json.dumps(metadata)),
        )


@contextmanager
def run(dsn: str | None = None) -> Iterator[StorageServer]:
    state = StorageServer(dsn)
    if dsn is not None:
        with psycopg.connect(dsn) as connection:
            connection.execute(_PROTECTION.encode())
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


class _Handler(BaseHTTPRequestHandler):
    state: StorageServer

    def do_POST(self) -> None:
        self._answer()

    do_PUT = do_GET = do_HEAD = do_DELETE = do_PATCH = do_POST

    def log_message(self, *_: Any) -> None:
        """Silences the request log of http.server."""

    def _answer(self) -> None:
        address = urlsplit(self.path)
        path = unquote(address.path).removeprefix("/storage/v1/")
        self.state.requests.append(f"{self.command} {path.removeprefix('object/')}")
        try:
            if self.state.failure is not None:
                reply = self.state.failure
            elif path.startswith("upload/resumable"):
                self._answer_resumable(path)
                return
            else:
                reply = self._serve(path.removeprefix("object/"), parse_qs(address.query))
        except Refusal as exc:
            reply = refuse(*exc.args)
        except storage_uploads.CutOffError:
            self.close_connection = True  # no client is left to answer
            return
        self._send(*reply)

    def _answer_resumable(self, path: str) -> None:
        status, headers = storage_uploads.serve(self.state, self.command, path, self.headers, self.rfile)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", "0")
        self.end_headers()

    def _send(self, status: int, answer: Any) -> None:
        is_file = isinstance(answer, Stored)
        payload = answer.content if is_file else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", answer.mime_type if is_file else "application/json")
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def _serve(self, path: str, query: dict[str, list[str]]) -> Reply:
        state = self.state
        operation, _, name = f"/{path}".rpartition(f"/{state.bucket}")
        operation, name = operation.lstrip("/"), name.lstrip("/")
        if "token" in query:
            return self._serve_signed(f"{self.command} {operation}", name, query["token"][0])
        if self.headers.get("apikey") != KEY:
            self._read_body()
            raise Refusal(*BAD_KEY)
        if f"/{state.bucket}" not in f"/{path}":
            self._read_body()
            raise Refusal(*NO_BUCKET)
        return self._serve_owner(f"{self.command} {operation}".strip(), name)

    def _serve_owner(self, route: str, name: str) -> Reply:
        """Serves requests with the secret key."""
        state = self.state
        upsert = self.headers.get("x-upsert") == "true"
        if route == "POST" or route == "PUT":
            return self._receive(name, upsert=upsert or route == "PUT", owner_id=None)
        body = self._read_body()
        if route == "POST upload/sign":
            token = state.sign(name, "upload", UPLOAD_SECONDS, upsert=upsert)
            return 200, {"url": f"/object/upload/sign/{state.bucket}/{name}?token={token}", "token": token}
        if route == "DELETE":
            return 200, state.remove(json.loads(body)["prefixes"])
        if name not in state.objects:
            raise Refusal(*NO_OBJECT)
        stored = state.objects[name]
        if route == "POST sign":
            token = state.sign(name, "download", float(json.loads(body)["expiresIn"]))
            return 200, {"signedURL": f"/object/sign/{state.bucket}/{name}?token={token}"}
        if route == "GET info":
            facts = {"name": name, "version": stored.version, "size": len(stored.content)}
            return 200, facts | {"content_type": stored.mime_type, "created_at": stored.created.isoformat()}
        return (200, stored) if route == "GET" else refuse("404", "not_found", f"no route {route}")

    def _serve_signed(self, route: str, name: str, token: str) -> Reply:
        if route == "PUT upload/sign":
            claims = self.state.verify(token, name, "upload")
            return self._receive(name, upsert=claims["upsert"], owner_id=claims.get("owner"))
        self.state.verify(token, name, "download")
        if name not in self.state.objects:
            raise Refusal(*NO_OBJECT)
        return 200, self.state.objects[name]

    def _receive(self, name: str, *, upsert: bool, owner_id: str | None) -> Reply:
        try:
            self.state.begin(name, upsert=upsert)
        except Refusal:
            self._read_body()
            raise
        content, mime_type = self._read_body(), self.headers.get("content-type") or "application/octet-stream"
        if mime_type.startswith("multipart/form-data"):
            content, mime_type = _read_form(content, mime_type)
        self.state.check_limits(len(content), mime_type)
        self.state.complete(name, content, mime_type, owner_id)
        return 200, {"Key": f"{self.state.bucket}/{name}"}

    def _read_body(self) -> bytes:
        return storage_uploads.read_whole(self.headers, self.rfile)


def _read_form(body: bytes, content_type: str) -> tuple[bytes, str]:
    """The file of a form, as the `supabase` client sends it."""
    message = email.parser.BytesParser().parsebytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + body)
    part = next(part for part in message.walk() if part.get_filename())
    return bytes(part.get_payload(decode=True)), part.get_content_type()
