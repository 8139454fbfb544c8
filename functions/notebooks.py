"""HTTP: notebooks and notes."""

from __future__ import annotations

from mangum import Mangum

from functions.web.app import create_app
from functions.web.routes import notebooks, notes

handler = Mangum(create_app(notebooks.router, notes.router), lifespan="off")
