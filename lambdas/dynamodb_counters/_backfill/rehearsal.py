"""A rehearsal: what changed declarations would have counted and what those in use have, from the same items at one cut.

Each side is what a backfill of it would fill: a generation with the tally of the one that is read. Both fold the same
images, so no group is read, and lag is no difference. No aggregator knows what is not deployed, so none logs for the
run: it reads the stream itself after the scan. Aggregates over others count groups as they come to at the cut.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal, localcontext
from heapq import nlargest
from itertools import chain, groupby, islice
from typing import Any, ClassVar, Final, TypeAlias

from dynamodb_counters._assumptions import LINEAGE_KEPT
from dynamodb_counters._backfill.baseline import Totals, baselines, withheld
from dynamodb_counters._backfill.opening import opening
from dynamodb_counters._backfill.runner import Runner
from dynamodb_counters._backfill.scan import page_values
from dynamodb_counters._backfill.state import COMPARING, COMPLETE, DRAINING, Progress, State
from dynamodb_counters._changes.meaning import same_meaning
from dynamodb_counters._control.control import Control, read_control
from dynamodb_counters._control.deployment_items import deployment_id
from dynamodb_counters._control.deployments import last_declarations
from dynamodb_counters._control.run_items import Run, ScannedItem, pack_scanned, run_item, scan_key
from dynamodb_counters._control.run_logs import Held, RunLogs, folded_alone, sums_of
from dynamodb_counters._declarations import Aggregate, Declaration, Event, Items, Window
from dynamodb_counters._declarations.codec import without_attributes
from dynamodb_counters._declarations.generations import base_name, generation, generation_number, read_name, root_of
from dynamodb_counters._fold.deltas import Delta, item_of
from dynamodb_counters._fold.expiry import begin_of
from dynamodb_counters._fold.item_layout import GroupRef
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import Change
from dynamodb_counters._items.decimals import EXACT, Number
from dynamodb_counters._quarantine.quarantine import RETENTION, Quarantine
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import TOTAL
from dynamodb_counters.errors import BackfillError

_OLD: Final = 999_998
"""The generation of one side, and the next one is that of the other: no table reaches these."""
_AT_A_TIME: Final = 1000
_ITEMS_OF_PAGE: Final = 50
_AFTER_SCAN: Final = 10**7
"""The number of the first page with what groups contribute."""

Changed: TypeAlias = tuple[str, Mapping[str, str], str, Number | None, Number | None, Number]
"""A number of a group: declaration, values, attribute, as it was counted, as it would have been, the difference."""


@dataclass(slots=True, kw_only=True)
class Rehearsal(Runner):
    """Rehearses what is `declared` in place of what a table counts.

    Groups with a time in their key are compared if they begin at `begin` or later.
    """

    declared: tuple[Declaration, ...]
    begin: float = -math.inf
    most: int = 20
    open_after: float = 0.0
    largest: list[Changed] = field(default_factory=list)
    totals: dict[tuple[str, str], list[Number | None]] = field(default_factory=dict)
    compared: int = 0
    differing: int = 0
    uncounted: int = 0
    """Images that not all of these declarations can count."""
    _begins: str = field(init=False)

    _dropped: ClassVar[str] = "run {} is void: it has taken 20 hours, and streams forget after 24"

    def __post_init__(self) -> None:
        super(Rehearsal, self).__post_init__()
        self._by, self.names = _plan_of(self.table, self.declared)
        self._begins = f"0r{deployment_id(tuple(one.layout.declaration for one in self._by.programs.values()))[:8]}"
        if not f"{self.run}{self._begins}".startswith(self._begins):
            raise BackfillError(f"invalid run={self.run!r}: expected one of the same declarations")

    def _try_to_open(self, seen: Control, opened: float) -> State:
        del seen
        run = Run(f"{self._begins}{secrets.token_hex(4)}", "rehearse", self._since(opened), tuple(self.names))
        state = self._state(run, opened)
        self.table.client.put_item(TableName=self.table.name, Item=self._item(state))
        self._put(run, -1, 0, {"closed": json.dumps(sorted(state.lineage.parents.keys() - state.lineage.open))})
        return state

    def _put(self, run: Run, segment: int, page: int, values: dict[str, Any]) -> None:
        item = run_item(scan_key(run.id, segment, page), values, self.table.clock())
        self.table.client.put_item(TableName=self.table.name, Item=item)

    def _plan(self, state: State) -> Plan:
        del state
        return self._by

    def _is_logged(self, state: State) -> bool:
        return self.now() < state.run.since + LINEAGE_KEPT

    def _wait_for_log(self, state: State, has_passed: Callable[[str], bool]) -> Iterator[Progress]:
        """Log what the stream shows, as aggregators do for other runs."""
        logs, quarantine = RunLogs(self.table), Quarantine(self.table, RETENTION)
        closed = json.loads(self.table.read_item(scan_key(state.run.id, -1, 0))["closed"]["S"])
        read, past = dict[str, str](), set[str]()

        def has_logged(shard: str) -> bool:
            parents = state.lineage.parents
            if parents.get(shard) in past:
                # It may show an item as its parent changed it after all that was read of that.
                past.add(shard)
            if shard in past or shard in closed or shard not in parents:
                return shard in past
            is_foreign, records = self.feeds.is_foreign(shard), iter(self.feeds.records(shard, read.get(shard)))
            while part := [Change(record, is_foreign=is_foreign) for record in islice(records, _AT_A_TIME)]:
                cut = logs.cut(state.run.id, state.run.since, shard, part)
                logs.write(state.run, self._by, shard, part, cut, quarantine=quarantine)
                read[shard] = part[-1].record["dynamodb"]["SequenceNumber"]
                if (part[-1].created or 0.0) > state.ended_at + self.feeds.clocks:
                    past.add(shard)
                    return True
            past.update([shard] if has_passed(shard) else ())
            return shard in past

        return super(Rehearsal, self)._wait_for_log(state, has_logged)

    def _finish(self, state: State) -> Iterator[Progress]:
        self._enter(state, DRAINING, COMPARING)
        pages, counted = self._pages(state), [one.layout.declaration for one in self._by.programs.values()]
        names = frozenset(one.name for one in counted if generation_number(one.name) >= _OLD)
        left = {one.source.name for one in counted if one.name in names} & names
        number = _AFTER_SCAN
        while left:
            # Those that look at none of the others have all their groups by now.
            ready = {one.name for one in counted if one.name in left and one.source.name not in left}
            for _, _, sums in baselines(pages, 0, 1, self._place):
                items = self._derived(state, {ref: sums[ref] for ref in sums if ref[0] in ready}, names)
                while rows := list(islice(items, _ITEMS_OF_PAGE)):
                    # A process that was left behind in the scan takes it for the last page of its segment.
                    self._put(state.run, 0, number, page_values(number, pack_scanned(rows)))
                    number += 1
                    yield self._progress(state, 0, 0)
            left -= ready
        for _, _, sums in baselines(pages, 0, 1, self._place):
            yield self._progress(state, self.compared, self.compared + len(sums))
            with localcontext(EXACT):
                found = chain(self.largest, self._changes(sums))
                self.largest = nlargest(self.most, found, key=lambda one: abs(Decimal(one[-1])))
        self.uncounted = sum(1 for _ in withheld(pages))
        self._enter(state, COMPARING, COMPLETE)

    def _derived(self, state: State, sums: Totals, names: frozenset[str]) -> Iterator[ScannedItem]:
        """Contributions of groups as if they were items of the table."""
        held = Held({}, self.feeds.is_foreign(""), self.table.name)
        for _, refs in groupby(sorted(sums, key=self._page), self._page):
            image: dict[str, Any] = {}
            for ref in refs:
                image |= item_of(Delta(self._layout(ref), ref[1], "", "", sums[ref]))
            yield ScannedItem("", sums_of(folded_alone(self._by, names, image, state.run.since, held)))

    def _page(self, ref: GroupRef) -> tuple[Any, ...]:
        """The same for groups that are looked at together."""
        pages = self._layout(ref).pages
        return ref[0], *(ref[1][:-1] if pages is not None and pages.is_whole else ref[1])

    def _place(self, ref: GroupRef) -> str:
        """The same for what is compared, or looked at together."""
        fields = self._layout(ref).values(ref[1])
        return repr((base_name(ref[0]), sorted(islice(fields.items(), len(self._page(ref)) - 1))))

    def _changes(self, sums: Totals) -> Iterator[Changed]:
        pairs: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[dict[str, Number], dict[str, Number]]] = {}
        for ref, numbers in sums.items():
            layout, side = self._layout(ref), generation_number(ref[0]) - _OLD
            declaration, begin = layout.declaration, begin_of(layout.declaration, ref[1])
            if begin is not None and begin < self.begin:
                continue
            window = declaration if isinstance(declaration, Window) else None
            attributes = declaration._attributes if window is None else window.measure._attributes(TOTAL)
            found = {attribute: numbers.get(attribute, 0) for attribute in attributes}
            key = base_name(ref[0]), tuple(sorted(layout.values(ref[1]).items()))
            pairs.setdefault(key, ({}, {}))[side].update(found)
            # Each tier has all of a window: the finest one is summed up.
            is_summed = window is None or ref[1][-2] == window._kept_tiers[0].letter
            for attribute, number in found.items() if is_summed else ():
                total = self.totals.setdefault((key[0], attribute), [None, None])
                total[side] = (total[side] or 0) + number
        for (name, values), (old, new) in pairs.items():
            changed = [each for each in {**old, **new} if old.get(each, 0) != new.get(each, 0)]
            self.compared, self.differing = self.compared + 1, self.differing + bool(changed)
            for each in changed:
                by = new.get(each, 0) - old.get(each, 0)
                yield name, dict(values), each, old.get(each), new.get(each), by

    def sums(self) -> list[Changed]:
        """The totals as differences of no group."""
        with localcontext(EXACT):
            return [
                (key[0], {}, key[1], old, new, (new or 0) - (old or 0))
                for key, (old, new) in sorted(self.totals.items())
            ]


def _plan_of(table: Table, declared: tuple[Declaration, ...]) -> tuple[Plan, tuple[str, ...]]:
    """All that differs, and all that is over it, in generations of either side; and the names that are scanned."""
    new = {each.name: each for each in without_attributes(declared)}
    roots = {root.name: root for root in map(root_of, new.values())}
    folded, seen = last_declarations(table, BackfillError, folded=True), read_control(table)
    read = {each.name: each for each in folded if each.name == read_name(base_name(each.name), seen.reads)}
    old = {base_name(name): _moved(each, roots, 0) for name, each in read.items()}
    folded = tuple(_moved(each, roots) for each in folded)
    same = {name for name in old.keys() & new.keys() if same_meaning(old[name], new[name])}
    opened = [opening(side.keys() - same, side.values(), folded, seen, at) for at, side in enumerate((old, new), _OLD)]
    generations = [each for side in opened for each in side.generations]
    return Plan((*folded, *generations)), tuple(name for side in opened for name in side.scanned)


def _moved(declaration: Declaration, roots: Mapping[str, Event | Items], number: int | None = None) -> Declaration:
    """A declaration over sources that can be declared with other `roots`; as a generation if it has a number."""
    source: Any = declaration.source
    if isinstance(source, Aggregate):
        source = _moved(source, roots, number)
    elif isinstance(source, Event):
        source = roots.get(source.name, source)
    elif roots.get(source.name, source) != source:
        source = replace(source, name=f"{source.name}~{_OLD}")
    moved = replace(declaration, source=source)
    return moved if number is None else generation(moved, number, source)
