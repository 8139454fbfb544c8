"""HTTP: answers questions with citations, as JSON or as a stream, in our own protocol or in OpenAI's."""

from __future__ import annotations

from mangum import Mangum

from functions.web.app import create_app
from functions.web.routes import chat, completions, health

# uvicorn serves `app`, which streams. Mangum buffers responses, so `handler` suits JSON answers only.
app = create_app(chat.router, completions.router, health.alive)
handler = Mangum(app, lifespan="off")
