"""HTTP: ask; streams or returns a cited answer, in our own protocol or in OpenAI's."""

from __future__ import annotations

from mangum import Mangum

from functions.web.app import create_app
from functions.web.routes import chat, completions, health

# `app` is what uvicorn serves where answers stream; Mangum buffers, so `handler` suits JSON answers.
app = create_app(chat.router, completions.router, health.alive)
handler = Mangum(app, lifespan="off")
