"""Sample files to upload, and lookups behind the API: jobs in the database, files in the storage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from functions.adapters.postgres.jobs import JobStore
from functions.core.ingestion import jobs
from tests.support import documents
from tests.support.local_server import Json, LocalServer, Person

PAGES = ("The turbine turns at 3000 revolutions per minute.", "In winter the turbine is heated by steam.")
BLOCKS = ("# Heating", "The heat pump uses four kilowatts of power.")
HOUR = 3600

Make = Callable[[Path], Path]


def make_text(path: Path) -> Path:
    path.write_text("# Boiler\n\nThe boiler burns wood chips in winter.\n", encoding="utf-8")
    return path


MAKERS: dict[str, Make] = {
    "pdf": lambda folder: documents.make_pdf(folder / "report.pdf", *PAGES),
    "docx": lambda folder: documents.make_docx(folder / "report.docx", *BLOCKS),
    "txt": lambda folder: make_text(folder / "report.txt"),
    "md": lambda folder: make_text(folder / "report.md"),
}
UNREADABLE: dict[str, tuple[str, Make]] = {
    "encrypted": ("encrypted", lambda folder: documents.make_pdf(folder / "x.pdf", "secret", password="1234")),
    "corrupt": ("corrupt", lambda folder: cut(documents.make_docx(folder / "x.docx", *BLOCKS))),
    "no-text": ("no_text", lambda folder: documents.make_picture_pdf(folder / "x.pdf")),
    "blank": ("empty", lambda folder: write(folder / "x.txt", b" \n\t\n")),
    "other-content": ("unsupported_type", lambda folder: write(folder / "x.pdf", documents.PNG_HEADER + b"0" * 99)),
}


def cut(path: Path) -> Path:
    return write(path, path.read_bytes()[:-400])


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def job_of(server: LocalServer, document_id: str) -> Json:
    with server.services.database.as_worker() as connection:
        row = connection.execute(
            "select * from rag.ingest_jobs where document_id = %s order by id desc limit 1", (document_id,)
        ).fetchone()
    assert row is not None
    return row


def count_jobs(server: LocalServer, person: Person) -> int:
    with server.services.database.as_worker() as connection:
        row = connection.execute(
            "select count(*) as n from rag.ingest_jobs where owner_id = %s", (person.id,)
        ).fetchone()
    assert row is not None
    return int(row["n"])


def claim(server: LocalServer, document_id: str) -> jobs.Job:
    job = JobStore(server.services.database).claim_ingest_job(job_of(server, document_id)["id"], HOUR)
    assert job is not None
    return job


def stored_files(server: LocalServer, person: Person) -> list[str]:
    folder = server.services.config.home / "storage" / "documents" / person.id
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
