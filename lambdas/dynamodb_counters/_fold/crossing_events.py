"""Crossings as EventBridge has them. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, Final

from dynamodb_counters._declarations.thresholds import DETAIL_TYPE, EVENT_SOURCE
from dynamodb_counters._items.conditions import Image

_TEXTS: Final = ("id", "threshold", "aggregate", "measure", "direction", "at", "sequence")
_NUMBERS: Final = ("level", "old", "new")
_MOST: Final = 10
"""Entries of a request. https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html"""
_INTEGERS: Final = (-(2**63), 2**63 - 1)
"""The integers that PutEvents takes: the same page."""

LASTING: Final = frozenset({"MalformedDetail", "InvalidArgument"})
"""Codes with which EventBridge refuses an entry each time, whatever is repaired: no permission or quota is missing.

https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEventsResultEntry.html
"""


def event_entry(crossing: Image, table_arn: str, bus: str) -> dict[str, Any]:
    """The entry of PutEvents that an item of the outbox is, the same each time."""
    detail = {name: crossing[name]["S"] for name in _TEXTS}
    group = {name: text["S"] for name, text in crossing["group"]["M"].items()}
    numbers = ",".join(f'"{name}":{_json_of(crossing[name]["S"]) if name in crossing else "null"}' for name in _NUMBERS)
    return {
        "Time": detail["at"],
        "Source": EVENT_SOURCE,
        "DetailType": DETAIL_TYPE,
        "Resources": [table_arn],
        "EventBusName": bus,
        "Detail": f"{json.dumps(detail | {'group': group})[:-1]},{numbers}}}",
    }


def _json_of(number: str) -> str:
    """A canonical text of a number, which is JSON with all its digits; beyond 64 bits, in quotes."""
    return number if _INTEGERS[0] <= Decimal(number) <= _INTEGERS[1] else f'"{number}"'


def in_requests(crossings: Iterable[Image]) -> Iterator[list[Image]]:
    """Cut crossings into requests, in order: a group's next one is sent once EventBridge has taken the one before."""
    request: list[Image] = []
    groups: list[object] = []
    for crossing in crossings:
        group = (crossing["threshold"], crossing["aggregate"], crossing["group"])
        if group in groups or len(request) == _MOST:
            yield request
            request, groups = [], []
        request.append(crossing)
        groups.append(group)
    if request:
        yield request
