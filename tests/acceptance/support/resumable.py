"""A minimal TUS 1.0.0 client: create, send and ask_offset are one request each."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Self

import httpx

from functions.core import ports


class ResumableClient:
    """Sends one file to an address for resumable uploads; a refusal raises HTTPStatusError."""

    def __init__(self, url: str, headers: Mapping[str, str], metadata: Mapping[str, str]) -> None:
        self._url = url
        self._metadata = metadata
        self._http = httpx.Client(headers={"tus-resumable": "1.0.0", **headers}, timeout=30)
        self.location = ""
        self.offset = 0

    @classmethod
    def of(cls, resumable: ports.ResumableUpload) -> Self:
        return cls(resumable.url, resumable.headers, resumable.metadata)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def create(self, length: int) -> None:
        pairs = (f"{name} {base64.b64encode(value.encode()).decode()}" for name, value in self._metadata.items())
        headers = {"upload-length": str(length), "upload-metadata": ",".join(pairs)}
        answer = self._http.post(self._url, headers=headers).raise_for_status()
        self.location = answer.headers["location"]

    def send(self, piece: bytes) -> int:
        """The offset after this piece."""
        headers = {"upload-offset": str(self.offset), "content-type": "application/offset+octet-stream"}
        answer = self._http.patch(self.location, content=piece, headers=headers).raise_for_status()
        self.offset = int(answer.headers["upload-offset"])
        return self.offset

    def request(self, method: str, piece: bytes = b"") -> httpx.Response:
        """The response to another request for the upload, whatever its status."""
        headers = {"upload-offset": str(self.offset), "content-type": "application/offset+octet-stream"}
        return self._http.request(method, self.location, content=piece, headers=headers)

    def ask_offset(self) -> int:
        """The number of bytes that have arrived, where the upload resumes."""
        self.offset = int(self._http.head(self.location).raise_for_status().headers["upload-offset"])
        return self.offset
