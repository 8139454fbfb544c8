"""HTTP: ranked passages without a model."""

from __future__ import annotations

from mangum import Mangum

from functions.web import routes_search
from functions.web.app import create_app

handler = Mangum(create_app(routes_search.router), lifespan="off")
