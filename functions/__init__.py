import gc
import os

if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    # What a cold start imports never becomes garbage, and is looked through a hundred times all the same.
    gc.set_threshold(20_000, 10, 10)
