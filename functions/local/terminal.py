"""The commands that add files and ask questions from a terminal; they also work while the server runs."""

from __future__ import annotations

import argparse
import mimetypes
import sys
import textwrap
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from functions.adapters import auth
from functions.adapters.laptop import object_rows
from functions.adapters.laptop.object_store import LocalObjectStore
from functions.adapters.postgres import documents
from functions.core import api_keys, errors, models
from functions.core.extraction import file_types
from functions.core.ingestion.worker import hash_file
from functions.core.text.storable import clean_text
from functions.local.server.routes import LOCAL_USER
from functions.local.server.serve import open_services
from functions.runtime import asking
from functions.runtime.config import Config
from functions.runtime.services import Services
from functions.web.deps import authenticate, check_scope
from functions.web.routes.keys import create_key
from functions.web.schemas.keys import NewKey

TOKEN_SECONDS = 30 * 24 * 3600
BAR_WIDTH = 30


def run(config: Config, options: argparse.Namespace) -> int:
    """Runs `ingest`, `ask`, `token` or `key`; returns the exit code."""
    if options.command == "token":
        return _print_token(Services(config), options.user, options.admin)
    log_level = {} if "log_level" in config.model_fields_set else {"log_level": "WARNING"}
    with open_services(config.model_copy(update=log_level)) as services:
        if options.command == "key":
            return _print_key(services, options)
        user = find_user(services, "ask" if options.command == "ask" else "write")
        if options.command == "ask":
            return _ask(services, user, options.question)
        return max(_ingest(services, user, Path(name)) for name in options.files)


def local_user() -> models.User:
    """The user of this machine, an administrator."""
    user_id = auth.local_user_id(LOCAL_USER)
    return models.User(user_id, is_admin=True, claims={"sub": user_id, "app_metadata": {"role": "admin"}})


def find_user(services: Services, scope: api_keys.Scope) -> models.User:
    """The owner of the API key in the environment, which must have the scope; without a key, the local user."""
    key = services.config.ibid_api_key
    return local_user() if key is None else check_scope(authenticate(services, key.get_secret_value()), scope)


def _print_key(services: Services, options: argparse.Namespace) -> int:
    if not services.is_local:
        raise errors.ConflictError("SUPABASE_URL is set, so a key belongs to a person there. Send POST /api/rag/keys.")
    body = NewKey(name=options.name, scopes=options.scope, expires_in_days=options.days)
    created = create_key(body, local_user(), services)
    print(created.key)
    return 0


def _print_token(services: Services, name: str, admin: bool) -> int:
    if not services.is_local:
        raise errors.ConflictError("SUPABASE_URL is set, so Supabase Auth issues the tokens. Sign in on the page.")
    if not name.strip():
        raise errors.InvalidInputError("The user name is empty. Give one, for example --user ada.")
    user_id = auth.local_user_id(name)
    print(auth.issue_local_token(services.local_secret, user_id, name, admin=admin, lifetime=TOKEN_SECONDS))
    return 0


def _ingest(services: Services, user: models.User, path: Path) -> int:
    try:
        row, is_duplicate = add_file(services, user, path)
    except errors.IbidError as exc:
        print(f"{path.name}: {exc.message}", file=sys.stderr)
        return 1
    if is_duplicate:
        print(f"{path.name}: already in your library")
        return 0
    document_id = row["id"]
    row = _follow(services, user, str(document_id), path.name)
    if row["id"] != document_id:
        print(f"{path.name}: already in your library, as {row['file_name']}")
        return 0
    if row["status"] != "indexed":
        print(f"{path.name}: {row['error']} ({row['error_code']})", file=sys.stderr)
        return 1
    print(f"{path.name}: indexed, {row['page_count']} pages, {row['chunk_count']} passages")
    return 0


def add_file(services: Services, user: models.User, path: Path) -> tuple[dict[str, Any], bool]:
    """Stores a file unless the library has the same bytes; returns the document, and whether it is a duplicate."""
    if not path.is_file():
        raise errors.InvalidInputError("There is no file at this path. Check the path.")
    store = services.objects
    if not isinstance(store, LocalObjectStore):
        raise errors.ConflictError(
            "SUPABASE_URL is set, and this command adds files to a local library only. Upload the file on the page."
        )
    size, digest = path.stat().st_size, hash_file(path)
    mime_type = mimetypes.guess_type(path.name)[0]
    limit = services.policy().settings.max_file_bytes
    file_type = file_types.check_upload(path.name, mime_type, size, limit)
    document_id = uuid4()
    object_path = f"{user.id}/{document_id}/original.{file_type}"
    with services.database.as_user(user) as connection:
        duplicate = documents.find_duplicate(connection, digest, size)
        if duplicate is not None:
            return duplicate, True
        values = {
            "id": document_id,
            "owner_id": user.id,
            "notebook_id": None,
            "note_id": None,
            "file_name": clean_text(path.name)[:255],
            "file_type": file_type,
            "mime_type": mime_type,
            "size_bytes": size,
            "sha256": digest,
            "object_path": object_path,
        }
        row = documents.insert(connection, values)
    with path.open("rb") as file:
        pieces = iter(lambda: file.read(1 << 20), b"")
        record = partial(object_rows.record, services.database)
        store.put(object_path, pieces, max_bytes=limit, mime_type=mime_type, record=record)
    return row, False


def _follow(services: Services, user: models.User, document_id: str, name: str) -> dict[str, Any]:
    """Works through the job queue until the document is done, and draws a progress bar.

    The worker of a running server may do some of the work.
    """
    done = threading.Event()
    thread = threading.Thread(target=process_queue, args=(services, done), daemon=True)
    thread.start()
    try:
        while True:
            with services.database.as_user(user) as connection:
                row = documents.find(connection, document_id)
            _draw_progress(name, row)
            if row["status"] in ("indexed", "failed"):
                return row
            if not thread.is_alive():
                raise errors.UnavailableError(
                    "The worker stopped because of the error printed above. Correct it and start again."
                )
            time.sleep(0.2)
    finally:
        done.set()
        thread.join(timeout=30)
        if sys.stderr.isatty():
            print(file=sys.stderr)


def process_queue(services: Services, done: threading.Event) -> None:
    """Works through the job queue until `done` is set."""
    while not done.is_set():
        if services.make_worker().ingest_next() is None:
            done.wait(0.2)


def _draw_progress(name: str, row: dict[str, Any]) -> None:
    if not sys.stderr.isatty():
        return
    total = row["page_count"] or 0
    share = row["pages_done"] / total if total else 0.0
    bar = "█" * round(share * BAR_WIDTH)
    line = f"\r{name[:40]:40} [{bar:{BAR_WIDTH}}] {row['pages_done']}/{total or '?'} {row['stage'] or row['status']:24}"
    print(line, end="", file=sys.stderr, flush=True)


def _ask(services: Services, user: models.User, question: str) -> int:
    text = question.strip()
    if not text:
        raise errors.InvalidInputError("The question is empty. Give one in quotation marks.")
    answered: asking.Answered | None = None
    for event in asking.ask(services, user, asking.Question(text)):
        if isinstance(event, asking.TextDelta) and sys.stderr.isatty():
            print(event.text, end="", file=sys.stderr, flush=True)
        elif isinstance(event, asking.Answered):
            answered = event
    assert answered is not None
    if sys.stderr.isatty():
        print("\n", file=sys.stderr)
    print(textwrap.fill(answered.answer.answer, 100, replace_whitespace=False))
    for source in answered.answer.sources:
        unit = "page" if source.file_type == "pdf" else "part"
        facts = f"{source.check}, {source.support} support"
        print(f"\n[{source.number}] {source.file_name}, {unit} {source.page_start} ({facts})")
        print(textwrap.indent(textwrap.fill(f"“{source.quote}”", 96), "    "))
    if answered.failure is not None:
        print(f"\nibid: {answered.failure.message}", file=sys.stderr)
    return 0 if answered.answer.status == "complete" else 2
