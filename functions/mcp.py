"""HTTP: offers search and notes to AI assistants as tools (Model Context Protocol)."""

from __future__ import annotations

from mangum import Mangum

import functions.web.mcp_server  # noqa: F401  loads the SDK at the start of the function instead of in the first request
from functions.web.app import create_app
from functions.web.routes import mcp

handler = Mangum(create_app(mcp.router), lifespan="off")
