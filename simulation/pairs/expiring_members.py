"""A schedule of a `Distinct` whose members expire: days pass, TTL deletes.

Every number must be what the records say that were created in time. Members that the aggregator quarantined as
uncertain may be counted or not, and no member twice.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from dynamodb_counters import Counters, Distinct, Event
from dynamodb_counters._fold.records import padded
from dynamodb_counters._timeline.tiers import DAY, HOUR
from simulation.memory.memory_stream import Record
from simulation.pairs.backend import MemoryBackend
from simulation.pairs.days import Days
from simulation.pairs.deliveries import drawn
from simulation.pairs.function import Function

LATE: Final = "late contribution"
EXPIRED: Final = "member expired"

VIEW: Final = Event("view", pk="VIEW#{id}", sk="VIEW", version="version")
_RETENTION: Final = 2
VISITORS: Final = Distinct(
    "visitors",
    VIEW,
    pk="SITE#{site}",
    sk="VISITORS#{at:day}",
    member="client",
    retention=timedelta(days=_RETENTION),
)

PAGED: Final = Distinct(
    "visitors", VIEW, by=("at:day", "site"), member="client", retention=timedelta(days=_RETENTION), pages=True
)

_Member = tuple[str, str, str]
"""Site, day, client."""


class ExpiringMembers(Days):
    """One schedule of members."""

    steps = 90
    backlog = 20 * HOUR

    def __init__(self, seed: int, *, pages: bool = False) -> None:
        super().__init__(seed, MemoryBackend)
        self._visitors = PAGED if pages else VISITORS
        rng, backend = self._random, self._backend
        self._counters = Counters(backend.name, client=backend.client, clock=self._clock)
        vars(self._counters._table)["threads"] = 1
        self._sleepy = rng.random() < 0.5
        settings = replace(drawn(rng, math.inf), retention_seconds=math.inf)
        self._begin(Function(backend, rng, self._faults, self._visitors._parts), settings)
        self._events: list[dict[str, Any]] = []

    # Events

    def _write(self) -> None:
        rng = self._random
        if self._events and rng.random() < 0.35:
            event = rng.choice(self._events)
            if rng.random() < 0.4:
                self._counters.retract(VIEW, event)
                return
            if rng.random() < 0.6:
                # Else it is sent once more.
                event |= self._values() | {"version": event["version"] + 1}
        else:
            event = {"id": f"{len(self._events)}", **self._values(), "version": 1}
            self._events.append(event)
        self._counters.accept(VIEW, event)

    def _values(self) -> dict[str, Any]:
        at = self._clock() - self._random.choice((0, 0, HOUR, DAY, 2 * DAY, 3 * DAY, 4 * DAY))
        return {
            "site": self._random.choice("ab"),
            "client": self._random.choice(("ann", "bob", "eve")),
            "at": datetime.fromtimestamp(at, UTC).isoformat(),
        }

    def _pass(self) -> None:
        """Sleep long once all is counted."""
        if self._sleepy and self._random.random() < 0.3:
            self._settle()
            self._clock.advance(2 * DAY)
        super()._pass()

    def _trouble(self) -> Sequence[Callable[[], object]]:
        return [self._deliveries.time_out]

    def _count(self) -> None:
        super()._count()
        if self._random.random() < 0.7:
            gone = self._backend.expire(self._random.choice((1, 5, 10**6)))
            self._reached[EXPIRED] += sum(item["_type"]["S"] == self._visitors._parts[0].name for item in gone)

    def _step(self) -> None:
        if (ended := self._deliveries.step()) is not None:
            self._reached[LATE] += ended.sandbox.report.late if ended.error is None else 0

    # Checks

    def _wrong(self) -> Iterator[str]:
        counts: Counter[_Member] = Counter()
        records: dict[tuple[str, str], Record] = {}
        for shard, record in self._backend.history():
            records[shard, padded(record["dynamodb"]["SequenceNumber"])] = record
            for member, number in _members_of(record, in_time=True):
                counts[member] += number
        uncertain: set[_Member] = set()
        # An entry that has expired with its group was in quarantine all the same.
        entries = {entry["sk"]["S"]: entry for entry in _entries(records.values())}
        for entry in entries.values():
            shard, sequence = entry["sk"]["S"].split("#")[:2]
            uncertain |= {member for member, _ in _members_of(records[shard, sequence], in_time=False)}
        for site, day in sorted({(site, day) for site, day, _ in (*counts, *uncertain)}):
            here = {member for member in (*counts, *uncertain) if member[:2] == (site, day)}
            certain, told = sum(counts[member] >= 1 for member in here - uncertain), len(here & uncertain)
            # A member that came and went may have only one of both in quarantine.
            least, most = certain - told, certain + told
            found = self._counters.get(self._visitors.total, {"site": site, "at:day": day}).measures["distinct"]
            if not least <= found <= most:
                yield f"{site} {day}: {found} visitors, expected {least} to {most}"


def _entries(records: Iterable[Record]) -> Iterator[Mapping[str, Any]]:
    """Entries that were in quarantine at any time."""
    images = (record["dynamodb"].get("NewImage") or {} for record in records)
    return (image for image in images if image.get("_type", {}).get("S") == "quarantine")


def _members_of(record: Record, *, in_time: bool) -> Iterator[tuple[_Member, int]]:
    """The members that a record is about, and what it adds to each, spelled out."""
    change = record["dynamodb"]
    for name, sign in (("NewImage", 1), ("OldImage", -1)):
        image = change.get(name) or {}
        kind = image.get("_type", {}).get("S")
        if kind == VIEW.name:
            day = datetime.fromisoformat(image["at"]["S"]).date()
            end = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() + DAY
            if not in_time or change["ApproximateCreationDateTime"] < end + _RETENTION * DAY:
                yield (image["site"]["S"], day.isoformat(), image["client"]["S"]), sign
        elif kind == VISITORS._parts[0].name and not in_time:
            other = change.get("OldImage" if sign > 0 else "NewImage") or {}
            yield from ((member, sign) for member in _members_in(image, other))


def _members_in(image: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[_Member]:
    """The member of an item, or those of a page that differ from another image of it."""
    parts = image["sk"]["S"].split("#")
    if parts[0] == "PAGE":
        day = image["pk"]["S"].split("#")[1]
        changed = [name for name, value in image.items() if name.startswith("=") and value != other.get(name)]
        yield from ((site, day, client) for site, client in (name[1:].split("#") for name in changed))
    elif parts[0] == "VISITORS":
        yield image["pk"]["S"].removeprefix("SITE#"), parts[1], parts[3]
    else:
        # A group of a page, as the quarantine holds it.
        yield parts[1], image["pk"]["S"].split("#")[1], parts[3]
