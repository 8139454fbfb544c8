"""HTTP: ask; streams or returns a cited answer, in our own protocol or in OpenAI's."""

from __future__ import annotations

from mangum import Mangum

from functions.web import routes_chat, routes_completions, routes_health
from functions.web.app import create_app

# `app` is what uvicorn serves where answers stream; Mangum buffers, so `handler` suits JSON answers.
app = create_app(routes_chat.router, routes_completions.router, routes_health.alive)
handler = Mangum(app, lifespan="off")
