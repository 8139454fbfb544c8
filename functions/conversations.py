"""HTTP: conversations, with their documents, their exports, and answers that become notes."""

from __future__ import annotations

from mangum import Mangum

from functions.web import routes_conversations
from functions.web.app import create_app

handler = Mangum(create_app(routes_conversations.router), lifespan="off")
