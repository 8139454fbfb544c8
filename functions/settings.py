"""HTTP: the settings, the usage, the embedding model of the library, and API keys."""

from __future__ import annotations

from mangum import Mangum

from functions.web.app import create_app
from functions.web.routes import embedding_servers, keys, settings

handler = Mangum(
    create_app(settings.router, settings.usage_router, embedding_servers.router, keys.router), lifespan="off"
)
