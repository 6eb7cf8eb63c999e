"""Requests as API Gateway passes them to a function (payload format 2.0), whatever they hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


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


def _members(value: object) -> dict[str, Any]:
    pairs = value.items() if isinstance(value, Mapping) else ()
    return {name: member for name, member in pairs if isinstance(name, str)}


def _text(value: object, default: str) -> str:
    return value if isinstance(value, str) and value else default
