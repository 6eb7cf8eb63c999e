"""Requests as API Gateway passes them to a function (payload format 2.0), their bodies, and their callers' claims.

The path of a claim is ``claims.NAME`` for a JSON Web Token, ``lambda.NAME`` for the context of a Lambda authorizer,
``iam.NAME`` for IAM; a tenant's fields are bound to such claims.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from dynamodb_counters._http.lossless_json import read_json
from dynamodb_counters._http.problems import ProblemError, bad_request
from dynamodb_counters._items.conversions import key_text
from dynamodb_counters.errors import InvalidArgumentError

# Browsers send beacons, and bodies without an explicit type, as plain text.
JSON_TYPES: Final = ("application/json", "text/plain")

MAX_BODY_BYTES: Final = 1_000_000
"""Unless an ingest says otherwise; as much as a line of a file of events may have."""

MAX_VALUES: Final = 50_000
"""Values in a document, numbers and texts as well as what encloses them: each costs time, however few its bytes."""

# https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
_PLACES: Final = {"claims": ("jwt", "claims"), "lambda": ("lambda",), "iam": ("iam",)}


def well_formed(event: object) -> dict[str, Any]:
    """The event with every member that is read of the type it should have: others are as if they were missing."""
    given, context = _members(event), _members(_members(event).get("requestContext"))
    http, headers = _members(context.get("http")), _members(given.get("headers"))
    method, stage = _text(http.get("method"), "GET"), _text(context.get("stage"), "$default")
    return {
        **given,
        "rawPath": _text(given.get("rawPath"), "/"),
        "rawQueryString": _text(given.get("rawQueryString"), ""),
        "headers": {name: value for name, value in headers.items() if isinstance(value, str)},
        "requestContext": {**context, "stage": stage, "http": {**http, "method": method}},
    }


def headers_of(event: Mapping[str, Any]) -> dict[str, str]:
    """The headers by their names in lower case."""
    return {name.lower(): value for name, value in event["headers"].items()}


def media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def body_text(event: Mapping[str, Any], max_bytes: int, content_types: Sequence[str] = JSON_TYPES) -> str:
    if (content_type := media_type(headers_of(event))) not in content_types:
        detail = f"invalid Content-Type {content_type!r:.80}: expected {' or '.join(content_types)}"
        raise ProblemError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail)
    body = event.get("body", "")
    try:
        if not isinstance(body, str):
            raise ValueError("no text")
        data = b64decode(body, validate=True) if event.get("isBase64Encoded") else body.encode()
        text = data.decode()
    except ValueError:  # Errors of base64 and of Unicode, too.
        raise bad_request("the body is not valid UTF-8") from None
    if len(data) > max_bytes:
        raise ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body has {len(data)} bytes; limit: {max_bytes}")
    return text


def parse_body(text: str) -> Any:
    try:
        return read_json(text, max_values=MAX_VALUES)
    except ValueError as error:
        raise bad_request(f"the body is not valid JSON within the limits: {error}") from None


def bound_values(tenant: Mapping[str, str], event: Mapping[str, Any]) -> dict[str, str]:
    """The caller's own value of each bound field; a problem of status 403 if the request lacks a claim."""
    bound = {}
    for field, path in tenant.items():
        kind, _, name = path.partition(".")
        found: Any = event.get("requestContext")
        for member in ("authorizer", *_PLACES[kind], name):
            found = found.get(member) if isinstance(found, Mapping) else None
        if not (text := _claimed(path, found)):
            raise ProblemError(HTTPStatus.FORBIDDEN, f"missing claim {path!r}: expected a string or number")
        bound[field] = text
    return bound


def require_own(values: object, bound: Mapping[str, str]) -> None:
    """Refuse values that are not the caller's own, by status 403; what is no mapping is left to other checks."""
    for field, own in bound.items():
        if isinstance(values, Mapping) and _claimed(field, values.get(field)) != own:
            detail = f"invalid {field}: expected the value that the caller's claim holds"
            raise ProblemError(HTTPStatus.FORBIDDEN, detail)


def filled_in(values: Mapping[str, Any], bound: Mapping[str, str]) -> dict[str, Any]:
    """The values with the caller's own where they leave one out."""
    filled = {**bound, **values}
    require_own(filled, bound)
    return filled


def _claimed(name: str, value: object) -> str | None:
    """As it stands in a key, where the number 1 and the string "1" are the same."""
    try:
        return key_text(name, value)
    except InvalidArgumentError:
        return None


def _members(value: object) -> dict[str, Any]:
    pairs = value.items() if isinstance(value, Mapping) else ()
    return {name: member for name, member in pairs if isinstance(name, str)}


def _text(value: object, default: str) -> str:
    return value if isinstance(value, str) and value else default
