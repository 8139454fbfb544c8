import gc
import os

if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    # Imported objects never become garbage, but with the default thresholds a cold start scans them a hundred times.
    gc.set_threshold(20_000, 10, 10)
