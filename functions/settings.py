"""HTTP: reads and changes the settings."""

from __future__ import annotations

from mangum import Mangum

from functions.web.app import create_app
from functions.web.routes import settings

handler = Mangum(create_app(settings.router), lifespan="off")
