#!/bin/sh
# The entry point of the streaming chat function: the Lambda Web Adapter starts it, waits until the port is open, and
# forwards requests to it.
export PYTHONPATH="$LAMBDA_TASK_ROOT:$LAMBDA_RUNTIME_DIR"
exec python -m uvicorn functions.chat:app --host 127.0.0.1 --port "$AWS_LWA_PORT" --no-access-log --lifespan off
