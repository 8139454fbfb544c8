"""HTTP: the web page, /health, /ready."""

from __future__ import annotations

from mangum import Mangum

from functions.web import routes_health, routes_page
from functions.web.app import create_app

handler = Mangum(create_app(routes_page.router, routes_health.alive, routes_health.router), lifespan="off")
