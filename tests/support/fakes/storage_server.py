"""Supabase Storage on loopback, with the part of version 1.70 that our adapter, its clients and our trigger use.

    with storage_server.run(dsn) as server:
        store = storage_supabase.connect(server.url, KEY, "documents")

With a database it writes `storage.objects` as the real one does, under the role `service_role`: one INSERT when all
bytes are stored, one UPDATE with a new version when they are overwritten, a DELETE when they are removed; direct
deletes are refused. Before that it tries the row twice, at signing and before the bytes, with version '1', and rolls it
back; so triggers run three times. Each write names its route in the setting `storage.operation`. Without a database it
keeps the objects in memory. An upload without `upsert` checks that its path is free when it starts and not again when
it ends, so several concurrent uploads all succeed. Connections are kept alive.
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
    BAD_TOKEN,
    DUPLICATE,
    EXPIRED,
    KEY,
    NO_BUCKET,
    NO_OBJECT,
    NO_RELATION,
    NO_RIGHT,
    OTHER_URL,
    PUBLISHABLE_KEY,
    TOO_LARGE,
    Refusal,
    Reply,
    of_database,
    refuse,
    wrong_type,
)

UPLOAD_SECONDS = 7200
_SIGNED_PUT = "storage.object.upload_signed"
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
    has_no_bucket: bool = False
    is_public: bool = False
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
            raise Refusal(*BAD_TOKEN) from exc
        if claims["exp"] < self.now():
            raise Refusal(*EXPIRED)
        if claims["url"] != f"{self.bucket}/{path}" or claims["scope"] != scope:
            raise Refusal(*OTHER_URL)
        return claims

    def begin(self, path: str, *, upsert: bool, operation: str) -> None:
        """Checks an upload before its first byte is read."""
        self.try_row(path, upsert=upsert, operation=operation)
        with self.lock:
            self.started += 1

    def try_row(self, path: str, *, upsert: bool, operation: str) -> None:
        """Checks the right to write an object, by writing its row and rolling that back."""
        if self.has_no_bucket:
            raise Refusal(*NO_RELATION)
        if path in self.objects and not upsert:
            raise Refusal(*DUPLICATE)
        if self.dsn is not None:
            with _database_errors(), psycopg.connect(self.dsn) as connection:
                _act(connection, operation)
                connection.execute(_UPSERT, (self.bucket, path, "1", None, None))
                connection.rollback()

    def check_limits(self, size: int | None, mime_type: str) -> None:
        """`size` is what the request announces; one that announces nothing passes."""
        if size is not None and size > self.max_bytes:
            raise Refusal(*TOO_LARGE)
        if self.mime_types is not None and mime_type not in self.mime_types:
            raise wrong_type(mime_type)

    def complete(self, path: str, content: bytes, mime_type: str, operation: str, owner_id: str | None = None) -> None:
        """Completes an upload: writes the row, then stores the object; if the row is refused, the old one stays."""
        stored = Stored(content, mime_type, str(uuid.uuid4()), owner_id)
        if self.dsn is not None:
            with _database_errors():
                _write_row(self.dsn, self.bucket, path, stored, operation)
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


_UPSERT = """
insert into storage.objects (bucket_id, name, version, owner_id, metadata) values (%s, %s, %s, %s, %s)
on conflict (bucket_id, name) do update set version = excluded.version, metadata = excluded.metadata,
    owner_id = excluded.owner_id, updated_at = now()
"""


@contextmanager
def _database_errors() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as exc:
        raise of_database(exc) from exc


def _act(connection: psycopg.Connection, operation: str) -> None:
    connection.execute(
        "select set_config('role', 'service_role', true), set_config('request.jwt.claims', %s, true),"
        " set_config('storage.operation', %s, true)",
        ('{"role": "service_role"}', operation),
    )


def _write_row(dsn: str, bucket: str, path: str, stored: Stored, operation: str) -> None:
    size = len(stored.content)
    metadata = {
        "eTag": f'"{uuid.uuid4().hex}"',
        "size": size,
        "mimetype": stored.mime_type,
        "cacheControl": "no-cache" if operation == _SIGNED_PUT else "max-age=3600",
        "lastModified": stored.created.isoformat(),
        "contentLength": size,
        "httpStatusCode": 200,
    }
    with psycopg.connect(dsn) as connection:
        _act(connection, operation)
        connection.execute(_UPSERT, (bucket, path, stored.version, stored.owner_id, json.dumps(metadata)))


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
    protocol_version = "HTTP/1.1"
    state: StorageServer
    _body: bytes | None

    def do_POST(self) -> None:
        self._body = None
        try:
            self._answer()
            self._read_body()  # what is left of it would be taken for the next request
        except storage_uploads.CutOffError:
            self.close_connection = True  # no client is left to answer

    do_PUT = do_GET = do_HEAD = do_DELETE = do_PATCH = do_POST

    def log_message(self, *_: Any) -> None:
        """Silences the request log of http.server."""

    def _answer(self) -> None:
        address = urlsplit(self.path)
        path = unquote(address.path).removeprefix("/storage/v1/")
        self.state.requests.append(f"{self.command} {path.removeprefix('object/')}")
        if path.startswith("upload/resumable") and self.state.failure is None:
            status, headers, text = storage_uploads.serve(self.state, self.command, path, self.headers, self._read_body)
            self._send(status, text.encode(), {"content-type": "text/plain"} | headers)
            return
        try:
            status, answer = self.state.failure or self._serve(path, parse_qs(address.query))
        except Refusal as exc:
            status, answer = refuse(*exc.args)
        if isinstance(answer, Stored):
            self._send(status, answer.content, {"content-type": answer.mime_type})
        else:
            self._send(status, json.dumps(answer).encode(), {"content-type": "application/json"})

    def _send(self, status: int, payload: bytes, headers: dict[str, str]) -> None:
        self._read_body()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("content-length", str(len(payload)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(payload)

    def _serve(self, path: str, query: dict[str, list[str]]) -> Reply:
        state = self.state
        if path.startswith("bucket/"):
            return self._serve_bucket(path.removeprefix("bucket/"))
        operation, _, name = f"/{path.removeprefix('object/')}".rpartition(f"/{state.bucket}")
        route, name = f"{self.command} {operation.lstrip('/')}".strip(), name.lstrip("/")
        if "token" in query:
            return self._serve_signed(route, name, query["token"][0])
        key = self.headers.get("apikey")
        if route == "GET info" and key not in (KEY, PUBLISHABLE_KEY):
            raise Refusal(*NO_BUCKET)  # without a valid key, only public buckets are looked at
        if key == PUBLISHABLE_KEY:
            raise Refusal(*(NO_RIGHT if route == "POST upload/sign" else NO_OBJECT))
        if key != KEY:
            raise Refusal(*BAD_KEY)
        return self._serve_owner(route, name)

    def _serve_bucket(self, name: str) -> Reply:
        state = self.state
        if self.headers.get("apikey") not in (KEY, PUBLISHABLE_KEY):
            raise Refusal(*BAD_KEY)
        if name != state.bucket or state.has_no_bucket or self.headers.get("apikey") == PUBLISHABLE_KEY:
            raise Refusal(*NO_BUCKET)
        now = datetime.now(UTC).isoformat()
        facts = {"id": name, "name": name, "owner": "", "public": state.is_public, "created_at": now, "updated_at": now}
        return 200, facts | {"file_size_limit": state.max_bytes, "allowed_mime_types": state.mime_types}

    def _serve_owner(self, route: str, name: str) -> Reply:
        """Serves requests with the secret key."""
        state = self.state
        upsert = self.headers.get("x-upsert") == "true"
        if route == "POST" or route == "PUT":
            operation = "storage.object.upload_update" if route == "PUT" else "storage.object.upload"
            return self._receive(name, upsert=upsert or route == "PUT", operation=operation)
        body = self._read_body()
        if route == "POST upload/sign":
            state.try_row(name, upsert=upsert, operation="storage.object.sign_upload_url")
            token = state.sign(name, "upload", UPLOAD_SECONDS, upsert=upsert)
            return 200, {"url": f"/object/upload/sign/{state.bucket}/{name}?token={token}", "token": token}
        if route == "DELETE":
            return 200, state.remove(json.loads(body)["prefixes"])
        if name not in state.objects or state.has_no_bucket:
            raise Refusal(*NO_OBJECT)
        stored = state.objects[name]
        if route == "POST sign":
            token = state.sign(name, "download", float(json.loads(body)["expiresIn"]))
            return 200, {"signedURL": f"/object/sign/{state.bucket}/{name}?token={token}"}
        if route == "GET info":
            facts = {"name": name, "version": stored.version, "size": len(stored.content)}
            return 200, facts | {"content_type": stored.mime_type, "created_at": stored.created.isoformat()}
        return (200, stored) if route == "GET" else refuse("404", "not_found", f"no route {route}", "NoSuchKey")

    def _serve_signed(self, route: str, name: str, token: str) -> Reply:
        if route == "PUT upload/sign":
            claims = self.state.verify(token, name, "upload")
            return self._receive(name, upsert=claims["upsert"], operation=_SIGNED_PUT, owner_id=claims.get("owner"))
        self.state.verify(token, name, "download")
        if name not in self.state.objects:
            raise Refusal(*NO_OBJECT)
        return 200, self.state.objects[name]

    def _receive(self, name: str, *, upsert: bool, operation: str, owner_id: str | None = None) -> Reply:
        self.state.begin(name, upsert=upsert, operation=operation)
        length = self.headers.get("content-length")
        content, mime_type = self._read_body(), self.headers.get("content-type") or "application/octet-stream"
        if mime_type.startswith("multipart/form-data"):
            content, mime_type = _read_form(content, mime_type)
        self.state.check_limits(None if length is None else int(length), mime_type)
        self.state.complete(name, content, mime_type, operation, owner_id)
        return 200, {"Key": f"{self.state.bucket}/{name}"}

    def _read_body(self) -> bytes:
        """The whole body, of the announced length or in chunks. Raises CutOffError."""
        if self._body is None:
            if "chunked" in self.headers.get("transfer-encoding", ""):
                self._body = self._read_chunks()
            else:
                length = int(self.headers.get("content-length") or 0)
                self._body = self.rfile.read(length)
                if len(self._body) < length:
                    raise storage_uploads.CutOffError(self._body)
        return self._body

    def _read_chunks(self) -> bytes:
        body = bytearray()
        while size := int(self.rfile.readline().strip() or b"0", 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return bytes(body)


def _read_form(body: bytes, content_type: str) -> tuple[bytes, str]:
    """The file of a form, as the `supabase` client sends it."""
    message = email.parser.BytesParser().parsebytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + body)
    part = next(part for part in message.walk() if part.get_filename())
    return bytes(part.get_payload(decode=True)), part.get_content_type()
