"""HTTP: the web page, /health, /ready."""

from __future__ import annotations

from mangum import Mangum

from functions.web.app import create_app
from functions.web.routes import health, page

page.page_files()  # while a container starts it has a whole processor, which the first request has not
handler = Mangum(create_app(page.router, health.alive, health.router), lifespan="off")
