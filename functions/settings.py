"""HTTP: reads and changes the settings, and the embedding model of the library."""

from __future__ import annotations

from mangum import Mangum

from functions.web.app import create_app
from functions.web.routes import embedding_servers, settings

handler = Mangum(create_app(settings.router, embedding_servers.router), lifespan="off")
