"""Powertools responses: JSON, problem details, and conditional ones with an ETag."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools.event_handler import Response

from dynamodb_counters._http.lossless_json import write_json
from dynamodb_counters._http.problems import PROBLEM_JSON, ProblemError

JSON: Final = "application/json"
NO_STORE: Final = "no-store"


def json_response(body: Mapping[str, Any], status: HTTPStatus = HTTPStatus.OK) -> Response[str]:
    return Response(status, JSON, write_json(body), {"Cache-Control": NO_STORE})


def etag_response(text: str, content_type: str, headers: Mapping[str, str], if_none_match: str | None) -> Response[str]:
    """Respond with an ``ETag``; 304 without a body if the request's ``If-None-Match`` lists it."""
    etag = f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
    all_headers = {**headers, "ETag": etag}
    if if_none_match is not None and etag in (tag.strip() for tag in if_none_match.split(",")):
        return Response(HTTPStatus.NOT_MODIFIED, content_type, "", all_headers)
    return Response(HTTPStatus.OK, content_type, text, all_headers)


def problem_response(error: ProblemError) -> Response[str]:
    headers = {"Cache-Control": NO_STORE}
    if error.status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = "1"
    return Response(error.status, PROBLEM_JSON, write_json(error.body), headers)
