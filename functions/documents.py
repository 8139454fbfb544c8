"""HTTP: uploads, lists, reads, moves and deletes documents."""

from __future__ import annotations

from mangum import Mangum

from functions.web.app import create_app
from functions.web.routes import documents

handler = Mangum(create_app(documents.router), lifespan="off")
