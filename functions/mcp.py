"""HTTP: search and notes as tools for AI assistants (Model Context Protocol)."""

from __future__ import annotations

from mangum import Mangum

import functions.web.mcp_server  # noqa: F401  loads the SDK while the function starts, not while a client waits
from functions.web.app import create_app
from functions.web.routes import mcp

handler = Mangum(create_app(mcp.router), lifespan="off")
