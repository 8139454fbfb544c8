"""HTTP: ranked passages without a model."""

from __future__ import annotations

from mangum import Mangum

from functions.web.app import create_app
from functions.web.routes import search

handler = Mangum(create_app(search.router), lifespan="off")
