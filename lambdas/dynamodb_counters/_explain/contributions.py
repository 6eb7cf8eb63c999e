"""What images contribute to the groups that are asked for, line by line: folded as the aggregator folds them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from dynamodb_counters._commit.intake import held_by
from dynamodb_counters._control.run_items import item_digest
from dynamodb_counters._control.run_logs import Held, folded_alone, sums_of
from dynamodb_counters._declarations import Aggregate, Count, Declaration, Event, Window
from dynamodb_counters._declarations.generations import base_name
from dynamodb_counters._explain.asked import Asked
from dynamodb_counters._explain.lines import Kind, Line
from dynamodb_counters._fold.contributions import UNFOLDABLE
from dynamodb_counters._fold.deltas import Folded
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.item_layout import GroupKey, ItemLayout, group_of_item
from dynamodb_counters._fold.origins import Origins
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import inserted
from dynamodb_counters._items.attributes import Image, reader, text_reader
from dynamodb_counters._items.chunks import decode_chunk
from dynamodb_counters._items.discard_marks import is_discarded, stored_marks
from dynamodb_counters._items.event_times import event_seconds
from dynamodb_counters._items.table_schema import CHUNK, PACK_SUFFIX, PK, SK, TYPE
from dynamodb_counters._quarantine.quarantine_items import REASON, UNREADABLE
from dynamodb_counters._timeline.times import utc

_FILTERED: Final = "its declaration's `where` leaves it out"
_NOTHING: Final = "it adds 0"
_TAKEN_BACK: Final = "it was retracted, or a later version has replaced it"
_BEFORE: Final = "it was retracted before it came"
_DISCARDED: Final = "it was discarded from the quarantine"
WAITS: Final = "waits in the quarantine: {}"


class Found(NamedTuple):
    """A line, the item it is of, and the group it adds to."""

    item: str
    group: GroupKey
    line: Line


class Contributing:
    """The lines of a table's images, as of a moment by which nothing is early."""

    def __init__(self, asked: Asked, origins: Origins, now: float) -> None:
        self.asked, self._origins, self._now = asked, origins, now
        declared = asked.declaration
        self.names = frozenset((declared.name,))
        # Nothing is late or early: nothing tells by now when it came. What was early waits in the quarantine.
        self.plan = Plan((_timeless(declared), *_below(declared)))
        self._probes = {_NOTHING: Plan((_counting(declared), *_below(declared)))}
        if declared.where is not None:
            self._probes[_FILTERED] = Plan((replace(_counting(declared), where=None), *_below(declared)))
        source = declared.source
        over = source if isinstance(source, Aggregate) else None
        self.pages = ItemLayout(over).pages if over is not None and not over._longest else None
        """How an item of the source holds many groups, each of which counts on its own."""
        time = asked.time() or (source.packed.time if isinstance(source, Event) and source.packed else None)
        self._find_time = None if time is None or over is not None else reader(time)

    def lines(self, image: Image, keys: Image, *, is_foreign: bool | None, marks: Iterable[str] = ()) -> list[Found]:
        """Of an item; `marks` are those that it has or gets."""
        if not self.plan.sources(image, is_foreign=is_foreign):
            return []
        held = Held(keys, is_foreign, "")
        is_out = is_discarded(self.asked.declaration.name, image, (*stored_marks(image), *marks))
        try:
            return [each for row, sign in self._rows(image) for each in self._of_row(row, sign, held, is_out=is_out)]
        except UNFOLDABLE:
            return []

    def waiting(self, entry: Image) -> list[Found]:
        """What an entry of the quarantine would add, taken away."""
        try:
            change = held_by(entry, inserted({}, self._now), self._origins)
            folded = fold(self.plan, [change])
        except UNREADABLE:
            return []
        reason = WAITS.format(entry.get(REASON, {}).get("S", ""))
        key = {PK: entry[PK]["S"], SK: entry[SK]["S"]}
        return [
            Found(
                item_digest({PK: entry[PK], SK: entry[SK]}),
                group,
                self._line("waiting", group, adds, key, reason=reason),
            )
            for group, adds in self._added(folded, -1)
        ]

    def _rows(self, image: Image) -> Iterator[tuple[Image, str]]:
        source = self.asked.declaration.source
        if isinstance(source, Event) and image.get(TYPE, {}).get("S") == source.name + PACK_SUFFIX:
            for row in decode_chunk(image[CHUNK]).all_rows():
                yield {**row.values, TYPE: {"S": source.name}}, row.sign
        elif self.pages is not None:
            yield from ((group, "+") for group in self.pages.groups(image))
        else:
            yield image, "+"

    def _of_row(self, row: Image, sign: str, held: Held, *, is_out: bool) -> Iterator[Found]:
        if self.pages is not None:
            held = replace(held, keys={PK: row[PK], SK: row[SK]})
        item = item_digest(held.keys, is_foreign=bool(held.is_foreign))
        folded = folded_alone(self.plan, self.names, row, self._now, held)
        counts = list(self._added(folded, -1 if sign == "-" else 1)) if sign != "0" and not is_out else []
        key, time = self._key(row, held.keys), self._time(row)
        for group, adds in counts:
            kind: Kind = "counted" if sign == "+" else "taken back"
            yield Found(item, group, self._line(kind, group, adds, key, time, _TAKEN_BACK if sign == "-" else ""))
        if not counts:
            reason = _DISCARDED if is_out else _BEFORE if sign == "0" else ""
            if folded.unfoldable and not reason:
                reason = f"it cannot be counted: {folded.unfoldable[0].reason}"
            for told, probe in self._probes.items():
                for _, group in sums_of(folded_alone(probe, self.names, row, self._now, held)):
                    if self.asked.holds(group):
                        yield Found(item, group, self._line("left out", group, {}, key, time, reason or told))
                        return

    def _added(self, folded: Folded, sign: int) -> Iterator[tuple[GroupKey, Mapping[str, Any]]]:
        for (name, group), numbers in sums_of(folded).items():
            if name in self.names and self.asked.holds(group):
                adds = self.asked.counted(group, {name: sign * number for name, number in numbers.items()})
                if adds:
                    yield group, adds

    def _line(
        self, kind: Kind, group: GroupKey, adds: Any, key: Mapping[str, str], time: str = "", reason: str = ""
    ) -> Line:
        source = base_name(self.asked.declaration.source.name)
        return Line(kind, adds, source, key, time, self.group_of(group), reason)

    def group_of(self, group: GroupKey) -> dict[str, str]:
        """A group as lines name it: not at all if it is the only one."""
        return {} if self.asked.is_one else self.asked.layout.values(group)

    def _key(self, row: Image, keys: Image) -> dict[str, str]:
        source: Any = self.asked.declaration.source
        if isinstance(source, Aggregate) and (group := group_of_item(source, row)) is not None:
            return dict(zip(source.fields, group, strict=True))
        names = source.fields if isinstance(source, Event) else ()
        if names and all(name in row for name in names):
            return {name: text_reader(name, literal=True)(row) for name in names}
        return {name: next(iter(map(str, value.values()))) for name, value in keys.items()}

    def _time(self, row: Image) -> str:
        try:
            value = None if self._find_time is None else self._find_time(row)
            return "" if value is None else utc(event_seconds(value)).isoformat()
        except UNFOLDABLE:
            return ""


def _below(declared: Declaration) -> tuple[Aggregate, ...]:
    """The aggregates that it counts the groups of, which a plan must know."""
    source = declared.source
    return (source, *_below(source)) if isinstance(source, Aggregate) else ()


def _timeless(declared: Declaration) -> Any:
    free: dict[str, Any] = {"retention": None, "_carries": None}
    if isinstance(declared, Window):
        free |= {"future_tolerance": None, "tiers": tuple(tier.name for tier in declared._kept_tiers)}
    return replace(declared, **free)


def _counting(declared: Declaration) -> Any:
    """Counts what a declaration groups, whatever it adds."""
    free = _timeless(declared)
    if isinstance(free, Window):
        return replace(free, measure=Count())
    return replace(free, measures={"items": Count()}, ranking=None, _thresholds=())
