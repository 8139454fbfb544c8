"""The AWS command line, as far as a deployment uses it: calls SSM at AWS_ENDPOINT_URL_SSM with a file as its input."""

from __future__ import annotations

import argparse
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

ACTIONS = {"get-parameters": "GetParameters", "put-parameter": "PutParameter"}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("service", choices=["ssm"])
    parser.add_argument("operation", choices=ACTIONS)
    parser.add_argument("--region", required=True)
    parser.add_argument("--output", choices=["json"])
    parser.add_argument("--cli-input-json", required=True)
    options = parser.parse_args()
    body = Path(options.cli_input_json.removeprefix("file://")).read_bytes()
    headers = {"X-Amz-Target": f"AmazonSSM.{ACTIONS[options.operation]}", "Content-Type": "application/x-amz-json-1.1"}
    request = AWSRequest("POST", f"{os.environ['AWS_ENDPOINT_URL_SSM']}/", headers, body)
    credentials = Credentials(os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"])
    SigV4Auth(credentials, options.service, options.region).add_auth(request)
    try:
        with urllib.request.urlopen(urllib.request.Request(request.url, body, dict(request.headers))) as answer:
            print(answer.read().decode())
    except urllib.error.HTTPError as error:
        print(f"\nAn error occurred: {error.read().decode()}", file=sys.stderr)
        return 254
    return 0


if __name__ == "__main__":
    sys.exit(main())
