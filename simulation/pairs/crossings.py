"""The outbox of thresholds as it must be, from the stream's records alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from dynamodb_counters import Threshold
from dynamodb_counters._assumptions import RUN_OPEN_AFTER
from simulation.pairs.declared import thresholds_of
from simulation.pairs.truth import Truth


class Crossed(NamedTuple):
    """A line that a change has crossed, once per level."""

    threshold: str
    sequence: str
    level: Decimal
    direction: str
    old: Decimal
    new: Decimal


def crossed(record: Mapping[str, Any], thresholds: Iterable[Threshold]) -> list[Crossed]:
    """Return the lines that one record of a group's item or page crosses, as thresholds of its aggregate judge."""
    if record["eventName"] == "REMOVE" or _is_half(record) or _is_baseline(record):
        return []
    images = record["dynamodb"]
    crossings = list[Crossed]()
    for threshold in thresholds:
        old, new = (_groups(images.get(name) or {}, threshold.measure) for name in ("OldImage", "NewImage"))
        for text, value in new.items():
            crossings += _of(threshold, str(int(images["SequenceNumber"])), old.get(text, Decimal(0)), value)
    return crossings


def line(item: Mapping[str, Any]) -> Crossed:
    """Return the same of an item of the outbox."""
    numbers = (Decimal(item.get(name, {"S": "0"})["S"]) for name in ("old", "new"))
    level, sequence = Decimal(item["level"]["S"]), str(int(item["sequence"]["S"]))
    return Crossed(item["threshold"]["S"], sequence, level, item["direction"]["S"], *numbers)


def _of(threshold: Threshold, sequence: str, old: Decimal, new: Decimal) -> Iterator[Crossed]:
    if old.is_nan() or new.is_nan():
        return
    crossings = list[Crossed]()
    for level in map(Decimal, threshold.at):
        was = old >= level
        if was == (new >= level):
            continue
        direction = "down" if was else "up"
        if threshold.direction in (direction, "both"):
            crossings.append(Crossed(threshold.name, sequence, level, direction, old, new))
    if threshold.burst == "highest" and crossings:
        crossings = [crossings[-1] if crossings[0].direction == "up" else crossings[0]]
    yield from crossings


def _groups(image: Mapping[str, Any], measure: str) -> dict[str, Decimal]:
    """Numbers of the measure by the group's text; an item has one group, a page the numbers of its first measure."""
    if not image.get("sk", {}).get("S", "").startswith("PAGE#"):
        return {"": _number(image[measure])} if measure in image else {"": Decimal(0)}
    return {name[1:]: _number(value) for name, value in image.items() if name.startswith("=")}


def _number(value: Mapping[str, Any]) -> Decimal:
    """Return a number; what has spoiled it is none, and crosses nothing."""
    return Decimal(value.get("N", "NaN"))


def _is_baseline(record: Mapping[str, Any]) -> bool:
    """Return whether a backfill has added what was there before."""
    images = record["dynamodb"]
    return bool((images.get("OldImage") or {}).get("_b") != images["NewImage"].get("_b"))


def _is_half(record: Mapping[str, Any]) -> bool:
    """Return whether this is half of a page that has split."""
    images = record["dynamodb"]
    old, new = images.get("OldImage"), images["NewImage"]
    if not new["sk"]["S"].startswith("PAGE#") or "_level" not in new:
        return False
    if old is None:
        return bool(new["_v"]["N"] != "1")
    return bool(old.get("_level", {"N": "0"}) != new["_level"])


def wrong(truth: Truth) -> list[str]:
    """Crossings that the outbox lacks, or has once too often."""
    there, due, possible = Counter(map(line, truth.items_of("_crossing"))), Counter[Crossed](), Counter[Crossed]()
    for position, record in truth.history:
        name = (record["dynamodb"].get("NewImage") or {}).get("_type", {}).get("S", "")
        if thresholds := thresholds_of(name):
            # While a name was emptied, or a threshold was registered, it depends on the delivery.
            possible.update(crossed(record, thresholds))
            due.update(crossed(record, _watching(truth, name, position.created)))
    return [f"lacks the crossing {entry}" for entry in due - there] + [f"has the {entry}" for entry in there - possible]


def _watching(truth: Truth, name: str, created: float) -> Iterator[Threshold]:
    watched = truth.entries.get(name)
    if watched is None or watched.state != "complete":
        return
    # Numbers of a name that is being filled are partial.
    begin = watched.at + RUN_OPEN_AFTER if watched.run else 0
    for entry in truth.thresholds:
        if entry.watches == name and created >= max(begin, entry.since):
            yield entry.declaration
