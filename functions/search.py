"""HTTP: ranks passages for a query, without a language model."""

from __future__ import annotations

from mangum import Mangum

from functions.web.app import create_app
from functions.web.routes import search

handler = Mangum(create_app(search.router), lifespan="off")
