"""Whether this process is a Lambda function, and which."""

from __future__ import annotations

import os


def find_function_name() -> str | None:
    """None anywhere but on Lambda."""
    return os.environ.get("AWS_LAMBDA_FUNCTION_NAME")
