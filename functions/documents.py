"""HTTP: upload, finalize, follow, read and delete documents."""

from __future__ import annotations

from mangum import Mangum

from functions.web import routes_documents
from functions.web.app import create_app

handler = Mangum(create_app(routes_documents.router), lifespan="off")
