"""Attributes as people type them and CSVs hold them, by the types that their event declares."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.event_attributes import Attribute
from dynamodb_counters._http.lossless_json import write_json

NUMBER: Final = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d{1,3})?")
_ANY: Final = "…"


def typed(event: Event, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values; texts are numbers or truth values where these are declared. Others are left to be refused.

    >>> typed(Event("view", key="url", attributes={"url": str, "ms": int}), {"url": "1", "ms": "1"})
    {'url': '1', 'ms': Decimal('1')}
    """
    declared = event._declared_attributes or {}
    return {name: _typed(declared.get(name), value) for name, value in values.items()}


def _typed(declared: Attribute | None, value: Any) -> Any:
    if declared is None or not isinstance(value, str):
        return value
    if declared.type in (int, Decimal) and NUMBER.fullmatch(value):
        return Decimal(value)
    return value == "true" if declared.type is bool and value in ("true", "false") else value


def example(name: str, declared: Attribute | None, now: str) -> str:
    """An attribute as one types it: a text after `=`, anything else as JSON after `:=`.

    >>> example("ms", Attribute(int, minimum=5), ""), example("plan", Attribute(str, one_of=["free"]), "")
    ('ms:=5', 'plan=free')
    """
    value = _ANY if declared is None else _example(declared, now)
    shown = f"{name}={value}" if isinstance(value, str) else f"{name}:={write_json(value)}"
    return shown if value == _ANY else shlex.quote(shown)


def _example(declared: Attribute, now: str) -> Any:
    if declared.one_of:
        return declared.one_of[0]
    if declared.type in (int, Decimal):
        return next((limit for limit in (declared.minimum, declared.maximum) if limit is not None), 1)
    if declared.type is dict:
        return {name: _example(each, now) for name, each in (declared.attributes or {}).items() if each.required}
    times = {"date-time": now, "date": now[:10]}
    return {bool: True, list: []}.get(declared.type, times.get(declared.format or "", _ANY))
