"""HTTP: notebooks and notes."""

from __future__ import annotations

from mangum import Mangum

from functions.web import routes_notebooks, routes_notes
from functions.web.app import create_app

handler = Mangum(create_app(routes_notebooks.router, routes_notes.router), lifespan="off")
