"""Histories of a watched group and of its outbox, as steps of docs/spec/Thresholds.tla."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from dynamodb_counters._control.deployment_items import Era
from dynamodb_counters._control.run_items import generation_of
from dynamodb_counters._control.statuses import read_statuses
from dynamodb_counters._declarations import Aggregate
from dynamodb_counters._declarations.generations import generation_number
from dynamodb_counters._fold.records import NEW
from dynamodb_counters._items.attributes import limit_of
from dynamodb_counters._items.table_schema import BASELINE, LIMIT, PK, SK
from dynamodb_counters._items.watermarks import sequence_of
from dynamodb_counters.testing._dynamodb.memory_stream import Record
from simulation.specification.recorder import Event, Recording
from simulation.specification.tally_history import (
    GROUP_NAME,
    Item,
    TallyHistory,
    created_at,
    held,
    images_of,
    sequence_in,
    type_of,
)
from simulation.specification.tally_schedule import MEASURE, SALE
from simulation.specification.traces import slots

_SCALE: Final = 2
"""Makes integers of shares of limits, as long as these are halves."""
_ABOUT: Final = ("sequence", "level", "direction")
_WAYS: Final = {"up": (1,), "down": (-1,), "both": (1, -1)}

Step = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ThresholdTrace:
    """History of a watched group in one schedule.

    Each generation has the shard of its item and the generation that it carries, each era the generations that it
    folds and its threshold; both are counted from 0, shards and processes from 1.
    """

    seed: int
    shards: int
    processes: int
    generations: list[tuple[int, int | None]]
    eras: list[Step]
    log: list[Step]


class ThresholdHistory(TallyHistory):
    """Numbers for the shards, records, eras and outbox items of one schedule, too."""

    def __init__(self, items: Iterable[Item], recording: Recording) -> None:
        super().__init__(items, recording.written)
        self._recording = recording
        self._slots = slots([event for event in recording.events if "process" in event])
        self._of_group: dict[str, list[str]] = {}
        """Sequence numbers of the group's records, by shard."""
        self._shard_of: dict[int, str] = {}
        for shard, record in recording.written:
            if (number := self._watched(record)) is not None:
                self._of_group.setdefault(shard, []).append(sequence_in(record))
                self._shard_of[number] = shard
        self._places = {shard: place for place, shard in enumerate(self._of_group, 1)}
        self._cuts_of = {shard: self._cuts(shard) for shard in self._of_group}
        self._eras: list[Era] = []
        self._era_now: Era | None = None
        self._taken: dict[int, int] = {}
        self._texts: dict[Hashable, int] = {}
        self._busy: set[int] = set()
        self._reads = 0

    def threshold_trace(self, seed: int) -> ThresholdTrace:
        log = [*self._steps(), {"op": "over"}]
        before = [self._generation(number)[1] for number in self._numbers]
        homes = [self._places.get(self._shard_of.get(number, ""), 1) for number in self._numbers]
        return ThresholdTrace(
            seed,
            max(len(self._places), 1),
            max(self._slots.values(), default=1),
            [*zip(homes, before, strict=True)],
            [self._era(era) for era in self._eras],
            log,
        )

    def _steps(self) -> Iterator[Step]:
        done = 0
        for event in [*self._recording.events, {"op": "", "written": len(self._recording.written)}]:
            for shard, record in self._recording.written[done : event["written"]]:
                yield from self._change(shard, record)
            done = event["written"]
            if event["op"].startswith("put "):
                yield self._put(event)
            elif event["op"] == "notified":
                yield self._notified(event)
            elif event.get("shard") in self._places or event["op"] == "end":
                yield from self._delivery(event, event["op"], self._slots[event["process"]])

    # The group

    def _watched(self, record: Record) -> int | None:
        """Number of the generation whose item has changed."""
        name = type_of(record)
        number = generation_number(name) if name not in ("", SALE.name) else None
        return number if number in self._declared else None

    def _change(self, shard: str, record: Record) -> Iterator[Step]:
        old, new = images_of(record)
        number = self._watched(record)
        if number is not None:
            era = self._history.at(created_at(record), sequence_in(record), self._cuts_of[shard])
            if era != self._era_now:
                self._era_now = era
                self._eras += [] if era in self._eras else [era]
                yield {"op": "era", "era": self._eras.index(era)}
            places = {"generation": self._numbers.index(number), "carried": self._carried_through(number, new)}
            yield {"op": _kind(old, new), **places, "old": _image(old), "new": _image(new)}
        elif type_of(record) == "" and (status := read_statuses(new).get(GROUP_NAME)) and status.reads != self._reads:
            self._reads = status.reads
            yield {"op": "switch", "generation": self._numbers.index(self._reads)}

    def _carried_through(self, number: int, new: Item) -> int:
        """How many records of the group, in the shard of the generation before, a generation has folded by now."""
        before = self._declared[number]._carries
        if before is None or (shard := self._shard_of.get(generation_number(before.name), "")) not in self._places:
            return 0
        cut = next(cut for run, cut in self._cuts_of[shard].items() if generation_of(run) == number)
        records = self._of_group[shard]
        seen = [sequence_of(new[name]) for name, marked in self._marks.items() if marked == shard and name in new]
        known = self._taken.get(number, bisect_left(records, cut))
        self._taken[number] = max([known, *(bisect_right(records, each) for each in seen)])
        return self._taken[number]

    def _era(self, era: Era) -> Step:
        folded = {generation_number(each.name): each for each in self._folded_in(era)}
        known = sorted(folded.keys() & self._declared.keys())
        first = folded[known[0]]
        assert isinstance(first, Aggregate)
        [threshold] = first._thresholds
        return {
            "folds": {self._numbers.index(number) for number in known},
            "levels": {_scaled(level) for level in threshold.at},
            "ofLimit": threshold.of is not None,
            "directions": {*_WAYS[threshold.direction]},
            "burst": threshold.burst,
            "once": threshold.once,
        }

    # Batches of its records, and the outbox

    def _delivery(self, event: Event, op: str, process: int) -> Iterator[Step]:
        step: Step = {"op": op, "process": process}
        if op in ("move sent", "move landed"):
            if event.get("accepted", True):
                yield {**step, "shard": self._places[event["shard"]], "through": self._reached(event, "through")}
        elif op == "begin" and event["first"] is not None:
            first, last = self._before(event), self._reached(event, "last")
            if first < last:
                self._busy.add(process)
                yield {**step, "shard": self._places[event["shard"]], "begin": first, "last": last}
        elif process not in self._busy:
            return
        elif op == "judged":
            yield {**step, "begin": self._before(event), "last": self._reached(event, "last")}
        elif op == "part":
            yield {**step, "op": "commit"}
        elif op == "end":
            self._busy.remove(process)
            yield {**step, "finished": event["how"] == "finished"}

    def _before(self, event: Event) -> int:
        return bisect_left(self._of_group[event["shard"]], event["first"])

    def _reached(self, event: Event, name: str) -> int:
        return bisect_right(self._of_group[event["shard"]], event[name])

    def _put(self, event: Event) -> Step:
        item = event["item"]
        number = int(item["generation"]["N"])
        records = self._of_group.get(self._shard_of.get(number, ""), [])
        crossing = {
            "generation": self._numbers.index(number) if number in self._numbers else None,
            "record": records.index(item["sequence"]["S"]) + 1 if item["sequence"]["S"] in records else 0,
            "level": _scaled(item["level"]["S"]),
            "direction": _WAYS[item["direction"]["S"]][0],
        }
        step: Step = {"op": event["op"], "process": self._slots[event["process"]], "crossing": crossing}
        return {**step, "key": self._key_of(item), "id": self._text(item["id"]["S"]), "accepted": event.get("accepted")}

    def _notified(self, event: Event) -> Step:
        batch = {record["dynamodb"]["SequenceNumber"]: record["dynamodb"][NEW] for record in event["records"]}
        items = [self._key_of(item) for item in batch.values()]
        # Not by the id, which is to be compared.
        keys = {
            _about(*(item[name]["S"] for name in _ABOUT)): key for item, key in zip(batch.values(), items, strict=True)
        }
        taken = [
            {"key": keys[_about(*(detail[name] for name in _ABOUT))], "id": self._text(detail["id"])}
            for detail in event["taken"]
        ]
        through = len(batch) if event["failed"] is None else [*batch].index(event["failed"])
        return {"op": "notified", "items": items, "taken": taken, "through": through, "heard": event["is_heard"]}

    def _key_of(self, item: Item) -> int:
        return self._text((item[PK]["S"], item[SK]["S"]))

    def _text(self, text: Hashable) -> int:
        return self._texts.setdefault(text, len(self._texts) + 1)


def _kind(old: Item, new: Item) -> str:
    if new.get(LIMIT) != old.get(LIMIT):
        return "limit"
    return "base" if new.get(BASELINE) != old.get(BASELINE) else "fold"


def _image(item: Item) -> Step | None:
    if not item:
        return None
    limit = limit_of(item)
    return {"value": _SCALE * held(item, MEASURE), "limit": None if limit is None else int(limit), "own": LIMIT in item}


def _scaled(level: object) -> int:
    return int(_SCALE * Decimal(str(level)))


def _about(sequence: Any, level: Any, direction: Any) -> Hashable:
    return sequence, Decimal(str(level)), direction
