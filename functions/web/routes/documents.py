"""Uploads, lists, reads, moves and deletes documents."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urljoin
from uuid import UUID, uuid4

import anyio.to_thread
from fastapi import APIRouter, Query, Request, Response

from functions.adapters.postgres import documents, users
from functions.core import errors, models, ports
from functions.core.citations import occurrences
from functions.core.extraction import file_types, scratch
from functions.core.text.storable import clean_text
from functions.runtime.services import Services
from functions.web.deps import CurrentUser, ServicesDep, read_id
from functions.web.discarding import discard
from functions.web.polling import MAX_WAIT_SECONDS, read_until
from functions.web.schemas import operations, requests

router = APIRouter(prefix="/api/rag/documents")

TEXT_PAGES = 20
MAX_MATCHES = 200
MAX_SECTIONS = 500
_FINAL = ("indexed", "failed")
DOWNLOAD_SECONDS = 300

Limit = Annotated[int, Query(ge=1, le=100)]


class PageImage(Response):
    media_type = "image/png"


@router.post("", status_code=201, responses={200: {"model": requests.UploadTicket}, 404: {}, 409: {}, 415: {}, 422: {}})
def create_document(
    body: requests.NewDocument, user: CurrentUser, services: ServicesDep, request: Request, response: Response
) -> requests.UploadTicket:
    settings = services.policy().settings
    file_type = file_types.check_upload(body.file_name, body.mime_type, body.size, settings.max_file_bytes)
    document_id = uuid4()
    path = f"{user.id}/{document_id}/original.{file_type}"
    with services.database.as_user(user) as connection:
        duplicate = documents.find_duplicate(connection, body.sha256, body.size) if body.sha256 else None
        if duplicate is not None:
            response.status_code = 200
            return requests.UploadTicket(document=requests.Document.of(duplicate), upload=None, duplicate=True)
        users.take_upload(connection, settings, body.size)
        row = documents.insert(
            connection,
            {
                "id": document_id,
                "owner_id": user.id,
                "notebook_id": body.notebook_id,
                "note_id": body.note_id,
                "file_name": clean_name(body.file_name),
                "file_type": file_type,
                "mime_type": body.mime_type,
                "size_bytes": body.size,
                "sha256": body.sha256,
                "object_path": path,
            },
        )
    upload = _describe_upload(services.objects.sign_upload(path), body.size, str(request.base_url))
    return requests.UploadTicket(document=requests.Document.of(row), upload=upload, duplicate=False)


@router.get("")
def list_documents(
    user: CurrentUser,
    services: ServicesDep,
    status: Annotated[list[models.DocumentStatus], Query()] = [],  # noqa: B006 - a default that FastAPI copies
    file_type: Annotated[str | None, Query(max_length=20)] = None,
    lang: Annotated[str | None, Query(max_length=10)] = None,
    author: Annotated[str | None, Query(max_length=300)] = None,
    added_from: date | None = None,
    added_to: date | None = None,
    notebook_id: UUID | None = None,
    note_id: UUID | None = None,
    title: Annotated[str | None, Query(max_length=255)] = None,
    trashed: bool = False,
    versions: Literal["current", "all"] = "current",
    limit: Limit = 50,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
) -> requests.DocumentPage:
    """Newest first, without older versions by default; with `trashed` those in the trash instead of the others.

    Attachments of a trashed note are listed only with its `note_id`. `status` may be repeated.
    """
    listing = documents.Listing(
        statuses=status,
        file_type=file_type,
        lang=lang,
        author=clean_text(author) if author else None,
        added_from=added_from,
        added_to=added_to,
        notebook_id=notebook_id,
        note_id=note_id,
        title=clean_text(title) if title else None,
        trashed=trashed,
        all_versions=versions == "all",
    )
    with services.database.as_user(user) as connection:
        rows, next_cursor = documents.list_page(connection, listing, limit=limit, cursor=cursor)
    return requests.DocumentPage(items=[requests.Document.of(row) for row in rows], next_cursor=next_cursor)


@router.get("/{document_id}")
async def get_document(
    document_id: str,
    user: CurrentUser,
    services: ServicesDep,
    wait: Annotated[int, Query(ge=0, le=MAX_WAIT_SECONDS)] = 0,
    since: str | None = None,
) -> requests.Document:
    """With `wait`, responds when the document has changed after `since` (default: now), or after `wait` seconds.

    Without `since`, responds at once if the document is `indexed` or `failed`.
    """
    find = partial(_find, services, user, document_id)
    row = await anyio.to_thread.run_sync(find)
    if wait and (since is not None or row["status"] not in _FINAL):
        seen = since or _read_stamp(row)
        row = await read_until(find, lambda found: _read_stamp(found) != seen, wait)
    return requests.Document.of(row)


def _read_stamp(row: dict[str, Any]) -> str:
    """When the document last changed, as the response says it."""
    return str(requests.Document.of(row).model_dump(mode="json")["updated_at"])


@router.patch("/{document_id}", responses={409: {}})
def update_document(
    document_id: str, body: requests.DocumentChanges, user: CurrentUser, services: ServicesDep
) -> requests.Document:
    """Moves a document into a notebook or attaches it to a note; null takes it out again."""
    changes = body.model_dump(exclude_unset=True)
    with services.database.as_user(user) as connection:
        row = documents.find(connection, read_id(document_id, "document"))
        if changes:
            row = documents.update(connection, str(row["id"]), changes)
    return requests.Document.of(row)


@router.post("/{document_id}/finalize", responses={409: {}})
def finalize_document(document_id: str, user: CurrentUser, services: ServicesDep) -> requests.Document:
    """Starts the ingestion if no storage trigger has; repeating it changes nothing."""
    return _request_ingestion(services, user, document_id, only_if="awaiting_upload")


@router.post("/{document_id}/retry", operation_id="documents_retry", responses={409: {}})
@router.post("/{document_id}/reindex", responses={409: {}})
def request_ingestion(document_id: str, user: CurrentUser, services: ServicesDep) -> requests.Document:
    """Ingests the stored file again; the old passages remain searchable until the new ones replace them."""
    return _request_ingestion(services, user, document_id)


@router.post("/{document_id}/translate", responses={409: {}})
def request_translation(document_id: str, user: CurrentUser, services: ServicesDep) -> requests.Document:
    """Tries a translation again that failed; passages that are translated stay so. The document is ready meanwhile."""
    settings = services.policy().settings
    with services.database.as_user(user) as connection:
        row = documents.find(connection, read_id(document_id, "document"))
        if settings.translate_documents == "off" or services.translator is None:
            raise errors.ConflictError(
                "Documents are not translated here. An administrator can set TRANSLATION_MODEL and translate_documents."
            )
        users.take_indexing(connection, settings)
        generation = documents.request_translation(connection, str(row["id"]))
        if generation is None:
            raise errors.ConflictError("The document has no translation yet. It begins a minute after the indexing.")
        row["health"] = documents.read_health(connection, row)
    services.nudge_translator(generation)
    return requests.Document.of(row)


@router.post("/{document_id}/trash")
def trash_document(document_id: str, user: CurrentUser, services: ServicesDep) -> requests.Document:
    """Moves a document to the trash, which hides it from lists and searches; repeating this changes nothing."""
    with services.database.as_user(user) as connection:
        return requests.Document.of(documents.set_trashed(connection, read_id(document_id, "document"), True))


@router.post("/{document_id}/restore")
def restore_document(document_id: str, user: CurrentUser, services: ServicesDep) -> requests.Document:
    """Takes a document out of the trash, still indexed; repeating this changes nothing."""
    with services.database.as_user(user) as connection:
        return requests.Document.of(documents.set_trashed(connection, read_id(document_id, "document"), False))


@router.delete("/{document_id}", response_model=operations.DocumentReceipt)
def delete_document(document_id: str, user: CurrentUser, services: ServicesDep) -> dict[str, Any]:
    """Deletes the rows before the stored files, so that after a crash only files remain, which the sweeper removes."""
    checked_id = read_id(document_id, "document")
    with services.database.as_user(user) as connection:
        receipt = documents.delete_document(connection, checked_id)
    objects = discard(services.objects, receipt.pop("object_paths"))
    return {"document_id": checked_id, "removed": receipt | {"objects": objects or 0}, "files_pending": objects is None}


@router.get("/{document_id}/text", response_model=operations.DocumentText)
def get_text(
    document_id: str, user: CurrentUser, services: ServicesDep, page: Annotated[int | None, Query(ge=1)] = None
) -> dict[str, Any]:
    """The stored text to which the offsets of citations refer: one page, or the first TEXT_PAGES pages."""
    with services.database.as_user(user) as connection:
        row = documents.find(connection, read_id(document_id, "document"))
        pages = documents.read_pages(connection, row, page or 1, page or TEXT_PAGES)
    if page is not None and not pages:
        raise errors.NotFoundError("There is no such page.")
    items = [
        {"page": p["page_number"], "text": p["text"], "warnings": p["warnings"], "ocr_confidence": p["ocr_confidence"]}
        for p in pages
    ]
    return {"document_id": str(row["id"]), "page_count": row["page_count"], "pages": items}


@router.get("/{document_id}/outline")
def get_outline(document_id: str, user: CurrentUser, services: ServicesDep) -> operations.DocumentOutline:
    """The sections in which the passages of the document are, in their order."""
    with services.database.as_user(user) as connection:
        row = documents.find(connection, read_id(document_id, "document"))
        sections = documents.read_outline(connection, row, MAX_SECTIONS)
    return operations.DocumentOutline.model_validate({"document_id": str(row["id"]), "sections": sections})


@router.get("/{document_id}/find")
def find_in_document(
    document_id: str, user: CurrentUser, services: ServicesDep, q: Annotated[str, Query(max_length=300)] = ""
) -> operations.DocumentMatches:
    """The places where the stored text has these words, whatever their case, accents and line breaks."""
    with services.database.as_user(user) as connection:
        row = documents.find(connection, read_id(document_id, "document"))
        pages = documents.find_pages(connection, row, clean_text(q), MAX_MATCHES)
    found = (
        {"page": page["page_number"], "start": start, "end": end}
        for page in pages
        for start, end in occurrences.find_occurrences(q, page["text"])
    )
    matches = list(islice(found, MAX_MATCHES + 1))
    return operations.DocumentMatches.model_validate(
        {"document_id": str(row["id"]), "matches": matches[:MAX_MATCHES], "has_more": len(matches) > MAX_MATCHES}
    )


@router.get("/{document_id}/pages/{number}.png", response_class=PageImage, responses={409: {}, 422: {}})
def get_page_image(
    document_id: str,
    number: int,
    user: CurrentUser,
    services: ServicesDep,
    start: Annotated[int | None, Query(ge=0)] = None,
    end: Annotated[int | None, Query(ge=0)] = None,
    scale: Annotated[float, Query(ge=0.2, le=4)] = 1.5,
) -> Response:
    """An image of the page, with the text from `start` to `end` highlighted."""
    with services.database.as_user(user) as connection:
        row = documents.find(connection, read_id(document_id, "document"))
        if not 1 <= number <= (row["page_count"] or number):
            raise errors.NotFoundError("There is no such page.")
        words = documents.read_words(connection, row, number)
    if row["file_type"] != "pdf":
        raise errors.NotFoundError("Only pages of PDF files can be shown as images. Use the text of this document.")
    users.take_request(services.database, user, services.policy().settings)
    with scratch.open_folder() as folder:
        path = Path(folder) / "original.pdf"
        services.objects.download(row["object_path"], path)
        image = services.page_drawer.draw(path, number, start=start, end=end, scale=scale, words=words)
    return PageImage(image, headers={"Cache-Control": "private, max-age=300"})


@router.get("/{document_id}/download", response_model=operations.Download, responses={409: {}})
def get_download(document_id: str, user: CurrentUser, services: ServicesDep, request: Request) -> dict[str, Any]:
    row = _find(services, user, document_id)
    if row["status"] == "awaiting_upload":
        raise errors.ConflictError("The file has not arrived yet. Send it to the upload URL first.")
    url = services.objects.sign_download(row["object_path"], row["file_name"], DOWNLOAD_SECONDS)
    return {"url": urljoin(str(request.base_url), url), "expires_in": DOWNLOAD_SECONDS}


def clean_name(name: str) -> str:
    """A file name for display, without path or control characters; zero-width joiners stay, because emoji need them."""
    last = " ".join(name.replace("\\", "/").rsplit("/", 1)[-1].split())
    return "".join(c for c in last if c.isprintable() or c == "\u200d").strip() or "document"


def _describe_upload(signed: ports.SignedUpload, size: int, base_url: str) -> requests.Upload:
    upload = requests.Upload(
        url=urljoin(base_url, signed.url), method=signed.method, headers=signed.headers, expires_in=signed.expires_in
    )
    if signed.resumable is not None and size > signed.resumable.chunk_size:
        upload.resumable = requests.ResumableUpload(**asdict(signed.resumable))
    return upload


def _request_ingestion(
    services: Services, user: models.User, document_id: str, only_if: str | None = None
) -> requests.Document:
    settings = services.policy().settings
    with services.database.as_user(user) as connection:
        if only_if is None:  # its upload counted the first indexing
            users.take_indexing(connection, settings)
        documents.lock(connection, read_id(document_id, "document"))
        row = documents.find(connection, read_id(document_id, "document"))
        if only_if is not None and row["status"] != only_if:
            return requests.Document.of(row)
        job_id = documents.request_ingest_job(connection, str(row["id"]))
        row = documents.find(connection, str(row["id"]))
    if job_id is None:
        raise errors.ConflictError(row["error"] or "The file has not arrived yet. Send it to the upload URL first.")
    services.nudge_worker(job_id)
    return requests.Document.of(row)


def _find(services: Services, user: models.User, document_id: str) -> dict[str, Any]:
    with services.database.as_user(user) as connection:
        row = documents.find(connection, read_id(document_id, "document"))
        row["health"] = documents.read_health(connection, row)
    return row
