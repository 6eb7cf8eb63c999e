"""Crossings: lines that the change of a group's item crosses, also as EventBridge has them. Pure.

A crossing is alike in every delivery of a record. It is judged by the group's own record, old and new image
in hand, and not by what the fold adds: written after the update, it would be lost by a crash between the two; written
before, it might never come true.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from typing import Any, Final

from dynamodb_counters._declarations import Aggregate
from dynamodb_counters._declarations.composites import DETAIL_TYPE, EVENT_SOURCE, Threshold
from dynamodb_counters._declarations.groups import values_of
from dynamodb_counters._fold.layouts import is_split
from dynamodb_counters._fold.plan import FOLD_ERRORS, Plan
from dynamodb_counters._fold.records import NEW, OLD, Change, padded
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.conversions import EXACT, Number, format_number, read_number
from dynamodb_counters._items.schema import CROSSING, CROSSING_PREFIX, PK, SK, TYPE, typed_values

_NOTHING: Final[Image] = {}
_TEXTS: Final = ("id", "threshold", "aggregate", "measure", "direction", "at", "sequence")
_NUMBERS: Final = ("level", "old", "new")
_MOST: Final = 10
"""Entries of a request. https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html"""
_INTEGERS: Final = (-(2**63), 2**63 - 1)  # The integers that PutEvents takes: the same page.

# EventBridge refuses an entry with these each time, whatever is repaired: no permission or quota is missing.
# https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEventsResultEntry.html
LASTING: Final = frozenset({"MalformedDetail", "InvalidArgument"})


def crossings(plan: Plan, changes: Iterable[Change], skipped: Counter[str]) -> list[Image]:
    """Return the outbox's items of the lines that changes cross, in order; count the thresholds of spoiled groups."""
    if not plan.armed:
        return []
    with localcontext(EXACT):
        return [crossing for change in changes for crossing in _of_change(plan, change, skipped)]


def _of_change(plan: Plan, change: Change, skipped: Counter[str]) -> Iterator[Image]:
    images = change.record["dynamodb"]
    new, old = images.get(NEW), images.get(OLD)
    if new is None or change.is_foreign or change.delta is not None or change.failure or is_split(old, new):
        return
    layout = plan.armed.get(new.get(TYPE, _NOTHING).get("S", ""))
    # A record that was redriven counted for the others when it was delivered.
    if layout is None or change.sequence != padded(images["SequenceNumber"]):
        return
    aggregate = layout.declaration
    assert isinstance(aggregate, Aggregate)
    before = {image[SK]["S"]: image for image in (() if old is None else layout.images(old, new))}
    for group in layout.images(new, old):
        for threshold in aggregate._thresholds:
            if (change.created or 0) >= plan.armed_since.get(threshold.name, 0):
                old_group = before.get(group[SK]["S"], _NOTHING)
                yield from _of_group(aggregate, threshold, old_group, group, change, skipped=skipped)


def _of_group(
    aggregate: Aggregate, threshold: Threshold, old: Image, new: Image, change: Change, *, skipped: Counter[str]
) -> Iterator[Image]:
    try:
        before, after = _value(aggregate, threshold, old), _value(aggregate, threshold, new)
        if not (crossed := [level for level in threshold.at if _is_above(before, level) != _is_above(after, level)]):
            return
        group = values_of(aggregate, new)
    except FOLD_ERRORS:
        group = None
    if group is None:
        skipped[threshold.name] += 1  # No counting has written an item like this.
        return
    direction = "up" if _is_above(after, crossed[0]) else "down"  # All in one direction, as there is one value.
    if threshold.direction not in (direction, "both"):
        return
    crossed = crossed if direction == "up" else crossed[::-1]
    digest = hashlib.sha256(json.dumps([aggregate.name, sorted(group.items())]).encode()).hexdigest()[:32]
    moment = datetime.fromtimestamp(change.created or 0, UTC).isoformat(timespec="seconds").removesuffix("+00:00") + "Z"
    # The record's id takes the place of a count of crossings: it is one per change, also in shards whose sequence
    # numbers are alike, and needs no state.
    event = () if threshold.once else (change.record.get("eventID") or change.sequence,)
    begin = "once" if threshold.once else moment
    for level in crossed[-1:] if threshold.burst == "highest" else crossed:
        sk = "#".join([begin, digest, format_number(level), direction, *event])
        event_id = hashlib.sha256(f"{threshold.name}#{sk}".encode()).hexdigest()[:32]
        keys = {PK: f"{CROSSING_PREFIX}{threshold.name}#{digest[0]}", SK: sk, TYPE: CROSSING, "id": event_id}
        names = {"threshold": threshold.name, "aggregate": aggregate.name}
        texts = {"measure": threshold.measure, "direction": direction, "at": moment, "sequence": change.sequence}
        # As texts: an average may be too small for a number of DynamoDB.
        numbers = {"level": level, "old": before, "new": after}
        texts |= {name: format_number(number) for name, number in numbers.items() if number is not None}
        yield typed_values({**keys, **names}) | {"group": {"M": typed_values(group)}} | typed_values(texts)


def _value(aggregate: Aggregate, threshold: Threshold, image: Image) -> Any:
    name, measure = threshold.measure, aggregate.measures[threshold.measure]
    return measure._read(name, {attribute: read_number(image, attribute) for attribute in measure._attributes(name)})


def _is_above(value: Number | None, level: Number) -> bool:
    return value is not None and value >= level


def event_entry(crossing: Image, table_arn: str, bus: str) -> dict[str, Any]:
    """Return the entry of PutEvents that an item of the outbox is, the same each time."""
    detail = {name: crossing[name]["S"] for name in _TEXTS}
    group = {name: text["S"] for name, text in crossing["group"]["M"].items()}
    numbers = ",".join(f'"{name}":{_json_of(crossing[name]["S"]) if name in crossing else "null"}' for name in _NUMBERS)
    own = {"Source": EVENT_SOURCE, "DetailType": DETAIL_TYPE, "Resources": [table_arn], "EventBusName": bus}
    return {"Time": detail["at"], **own, "Detail": f"{json.dumps(detail | {'group': group})[:-1]},{numbers}}}"}


def crossing_details(crossings: Iterable[Image]) -> list[dict[str, Any]]:
    """Return details of events that items of the outbox are, in order: as a number passes levels, several at once."""

    def order(detail: dict[str, Any]) -> Any:
        level = Decimal(detail["level"])
        return detail["at"], detail["sequence"], level if detail["direction"] == "up" else -level

    details = (json.loads(event_entry(crossing, "", "")["Detail"], parse_float=Decimal) for crossing in crossings)
    return sorted(details, key=order)


def _json_of(number: str) -> str:
    """Return a canonical text of a number, which is JSON with all its digits; beyond 64 bits, in quotes."""
    return number if _INTEGERS[0] <= Decimal(number) <= _INTEGERS[1] else f'"{number}"'


def in_requests(crossings: Iterable[Image]) -> Iterator[list[Image]]:
    """Cut crossings into requests, in order: a group's next one is sent once EventBridge has taken the one before."""
    request, groups = list[Image](), list[object]()
    for crossing in crossings:
        group = (crossing["threshold"], crossing["aggregate"], crossing["group"])
        if group in groups or len(request) == _MOST:
            yield request
            request, groups = [], []
        request.append(crossing)
        groups.append(group)
    if request:
        yield request
