"""Tenancy: fields that a caller's claims decide, as API Gateway's authorizer passes them.

A path is ``claims.NAME`` for a JSON Web Token, ``lambda.NAME`` for the context of a Lambda authorizer, ``iam.NAME``
for IAM.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from dynamodb_counters._http.problems import ProblemError
from dynamodb_counters._items.escaping import key_text
from dynamodb_counters.errors import InvalidArgumentError

# https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
_PLACES: Final = {"claims": ("jwt", "claims"), "lambda": ("lambda",), "iam": ("iam",)}


def bound_values(tenant: Mapping[str, str], event: Mapping[str, Any]) -> dict[str, str]:
    """The caller's own value of each bound field; a problem of status 403 if the request lacks a claim."""
    bound = {}
    for field, path in tenant.items():
        kind, _, name = path.partition(".")
        found: Any = event.get("requestContext")
        for member in ("authorizer", *_PLACES[kind], name):
            found = found.get(member) if isinstance(found, Mapping) else None
        if not (text := _text(path, found)):
            raise ProblemError(HTTPStatus.FORBIDDEN, f"missing claim {path!r}: expected a string or number")
        bound[field] = text
    return bound


def refusal(values: object, bound: Mapping[str, str]) -> str | None:
    """Why values are not the caller's own, None if they are; what is no mapping is left to other checks."""
    if not isinstance(values, Mapping):
        return None
    for field, own in bound.items():
        if _text(field, values.get(field)) != own:
            return f"invalid {field}: expected the value that the caller's claim holds"
    return None


def filled_in(values: Mapping[str, Any], bound: Mapping[str, str]) -> dict[str, Any]:
    """The values with the caller's own where they leave one out; a problem of status 403 if they name another's."""
    filled = {**bound, **values}
    if (reason := refusal(filled, bound)) is not None:
        raise ProblemError(HTTPStatus.FORBIDDEN, reason)
    return filled


def _text(name: str, value: object) -> str | None:
    """As it stands in a key, where the number 1 and the string "1" are the same."""
    try:
        return key_text(name, value)
    except InvalidArgumentError:
        return None
