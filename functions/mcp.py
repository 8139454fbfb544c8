"""HTTP: search and notes as tools for AI assistants (Model Context Protocol)."""

from __future__ import annotations

from mangum import Mangum

import functions.web.mcp_server  # noqa: F401  loads the SDK while the function starts, not while a client waits
from functions.web import routes_mcp
from functions.web.app import create_app

handler = Mangum(create_app(routes_mcp.router), lifespan="off")
