"""Creates, lists, renames and deletes notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query

from functions.adapters.postgres import notebooks, users
from functions.core import errors
from functions.core.text.storable import clean_text
from functions.web.deps import CurrentUser, ServicesDep, read_id
from functions.web.discarding import discard
from functions.web.schemas import library as schemas
from functions.web.schemas.operations import NotebookReceipt

router = APIRouter(prefix="/api/rag/notebooks")

Limit = Annotated[int, Query(ge=1, le=100)]
Cursor = Annotated[str | None, Query(max_length=500)]
TitleFilter = Annotated[str | None, Query(max_length=255)]


@router.post("", status_code=201)
def create_notebook(body: schemas.NotebookTitle, user: CurrentUser, services: ServicesDep) -> schemas.Notebook:
    settings = services.policy().settings
    with services.database.as_user(user) as connection:
        users.take_upload(connection, settings, 0)
        row = notebooks.insert(connection, user, body.title)
    return schemas.Notebook.model_validate(row)


@router.get("")
def list_notebooks(
    user: CurrentUser, services: ServicesDep, title: TitleFilter = None, limit: Limit = 50, cursor: Cursor = None
) -> schemas.NotebookPage:
    with services.database.as_user(user) as connection:
        rows, next_cursor = notebooks.list_page(
            connection, title=clean_text(title) if title else None, limit=limit, cursor=cursor
        )
    items = [schemas.Notebook.model_validate(row) for row in rows]
    return schemas.NotebookPage(items=items, next_cursor=next_cursor)


@router.get("/{notebook_id}")
def get_notebook(notebook_id: str, user: CurrentUser, services: ServicesDep) -> schemas.Notebook:
    with services.database.as_user(user) as connection:
        return schemas.Notebook.model_validate(notebooks.find(connection, read_id(notebook_id, "notebook")))


@router.patch("/{notebook_id}", operation_id="notebooks_rename_notebook")
def change_notebook(
    notebook_id: str, body: schemas.NotebookChanges, user: CurrentUser, services: ServicesDep
) -> schemas.Notebook:
    """Changes the title, how answers are written, and by which of the allowed models (null: the usual one)."""
    changes = body.model_dump(exclude_unset=True)
    _check_model(changes.get("chat_model"), services.policy().settings.allowed_models)
    with services.database.as_user(user) as connection:
        row = notebooks.update(connection, read_id(notebook_id, "notebook"), changes)
    return schemas.Notebook.model_validate(row)


def _check_model(name: str | None, allowed: Sequence[str]) -> None:
    """Raises InvalidInputError for a model that administrators have not allowed."""
    if name is not None and name not in allowed:
        choice = (
            f"Choose one of {', '.join(allowed)}." if allowed else "Administrators have not allowed any other model."
        )
        raise errors.InvalidInputError(f"A notebook cannot have this language model. {choice}")


@router.delete("/{notebook_id}", response_model=NotebookReceipt)
def delete_notebook(
    notebook_id: str, user: CurrentUser, services: ServicesDep, contents: Literal["keep", "delete"] = "keep"
) -> dict[str, Any]:
    """Deletes a notebook; with `contents=delete` also its notes and documents, rows before stored files."""
    checked_id = read_id(notebook_id, "notebook")
    removed, moved = {}, {}
    objects: int | None = 0
    with services.database.as_user(user) as connection:
        notebooks.lock(connection, checked_id)
        if contents == "delete":
            removed = notebooks.delete_contents(connection, checked_id)
        else:
            moved = notebooks.move_contents_out(connection, checked_id)
        notebooks.delete(connection, checked_id)
    if contents == "delete":
        objects = discard(services.objects, removed.pop("object_paths"))
        removed["objects"] = objects or 0
    return {"notebook_id": checked_id, "removed": removed, "moved": moved, "files_pending": objects is None}
