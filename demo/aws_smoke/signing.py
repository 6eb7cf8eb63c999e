"""Requests to an HTTP API with IAM authorization, signed with the caller's credentials."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

_SECONDS = 60


@dataclass(frozen=True)
class SignedApi:
    """An API and the region that its requests are signed for."""

    url: str
    region: str

    def get(self, path: str, **parameters: str) -> tuple[int, Any]:
        query = f"?{urlencode(parameters)}" if parameters else ""
        return self._send("GET", path + query, None)

    def post(self, path: str, document: Any) -> tuple[int, Any]:
        """Post a document; text is sent as it is."""
        body = document if isinstance(document, str) else json.dumps(document)
        return self._send("POST", path, body.encode())

    def unsigned(self, path: str) -> int:
        """The status of an unsigned request."""
        return _answer(urllib.request.Request(self.url + path))[0]  # noqa: S310

    def _send(self, method: str, path: str, body: bytes | None) -> tuple[int, Any]:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        request = AWSRequest(method, self.url + path, headers, body)
        credentials = boto3.session.Session().get_credentials()
        assert credentials is not None
        SigV4Auth(credentials.get_frozen_credentials(), "execute-api", self.region).add_auth(request)
        signed = request.prepare()
        # The address is the API's own.
        return _answer(urllib.request.Request(signed.url, body, dict(signed.headers.items()), method=method))  # noqa: S310


def _answer(request: urllib.request.Request) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as response:  # noqa: S310
            return response.status, _document(response.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, _document(error.read())


def _document(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode(errors="replace")
