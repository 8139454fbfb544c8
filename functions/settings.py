"""HTTP: read and change the settings."""

from __future__ import annotations

from mangum import Mangum

from functions.web import routes_settings
from functions.web.app import create_app

handler = Mangum(create_app(routes_settings.router), lifespan="off")
