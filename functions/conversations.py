"""HTTP: conversations, their attached documents and exports, and answers saved as notes."""

from __future__ import annotations

from mangum import Mangum

from functions.web.app import create_app
from functions.web.routes import conversations

handler = Mangum(create_app(conversations.router), lifespan="off")
