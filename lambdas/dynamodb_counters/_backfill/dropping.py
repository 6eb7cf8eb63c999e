"""Dropping: items of generations that no process counts or reads any more are deleted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dynamodb_counters._assumptions import GUARANTEE, SKEW
from dynamodb_counters._backfill.pace import Pace, paid_write, units_of
from dynamodb_counters._control.control import read_control, read_declarations, stored_deployments
from dynamodb_counters._control.deployment_items import decoded
from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.composites import with_parts
from dynamodb_counters._declarations.generations import base_name, read_name
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.table_schema import PK, SK, TYPE
from dynamodb_counters._table import Table
from dynamodb_counters.errors import BackfillError


@dataclass(slots=True, kw_only=True)
class Dropping:
    """Deletes what generations have left that a newer one replaced two days ago, and `names` that were removed."""

    table: Table
    now: Callable[[], float]
    names: Collection[str] = ()
    segments: int = 4
    units_per_second: float | None = None
    dry_run: bool = False
    scanned: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    """Items by name and generation."""
    pace: Pace = field(init=False)

    def __post_init__(self) -> None:
        self.pace = Pace(self.table, self.units_per_second)

    def steps(self) -> Iterator[int]:
        """Scan the table and delete unused items; yield after each round how many items were scanned."""
        is_left = self._is_left()
        starts: dict[int, Any] = dict.fromkeys(range(self.segments))
        while starts:
            left: list[Image] = []
            for segment, answer in zip([*starts], self.table.each(self._scan, [*starts.items()]), strict=True):
                self.scanned += len(answer["Items"])
                self.pace.spend(units_of(answer))
                left += filter(is_left, answer["Items"])
                starts[segment] = answer.get("LastEvaluatedKey")
            starts = {segment: start for segment, start in starts.items() if start}
            self.dropped.update(item[TYPE]["S"] for item in left)
            if not self.dry_run:
                self.pace.spend(sum(self.table.each(self._delete, left)))
            yield self.scanned

    def _is_left(self) -> Callable[[Image], bool]:
        seen = read_control(self.table)
        if seen.history is None:
            raise BackfillError("nothing counts this table yet: there is nothing to drop")
        # A record that is delivered late is counted by the declarations of its time.
        eras = seen.history.since(self.now() - GUARANTEE - SKEW).eras
        used = {read_name(name, seen.reads) for name in seen.reads}
        for deployment in {era.deployment for era in eras}:
            declarations = read_declarations(self.table, deployment)
            if declarations is None:
                raise BackfillError("this version cannot read the deployed declarations: install the one that runs")
            used |= {declaration.name for declaration in declarations}
        stored = [decoded(item) or () for item in stored_deployments(self.table).values()]
        names = {name for declarations in stored for name in with_parts(self.names, declarations)}
        past = [each for declarations in stored for each in declarations]
        known = {base_name(each.name) for each in past}
        events = {each.source.name for each in past if isinstance(each.source, Event)}
        live = set(map(base_name, used))
        for name in sorted(names):
            if name in live or name in events or name not in known:
                raise BackfillError(f"invalid name={name!r}: expected one that was removed two days ago, or earlier")

        def is_left(item: Image) -> bool:
            kind = item.get(TYPE, {}).get("S", "")
            return kind not in used and kind not in events and base_name(kind) in live | names

        return is_left

    def _scan(self, place: tuple[int, Any]) -> Mapping[str, Any]:
        segment, start = place
        request: Any = {"ExclusiveStartKey": start} if start else {}
        return self.table.client.scan(
            TableName=self.table.name,
            Segment=segment,
            TotalSegments=self.segments,
            ProjectionExpression="#pk, #sk, #type",
            ExpressionAttributeNames={"#pk": PK, "#sk": SK, "#type": TYPE},
            ReturnConsumedCapacity="TOTAL",
            **request,
        )

    def _delete(self, item: Image) -> float:
        return paid_write(
            self.table,
            "delete_item",
            Key={PK: item[PK], SK: item[SK]},
            ConditionExpression="#type = :type",
            ExpressionAttributeNames={"#type": TYPE},
            ExpressionAttributeValues={":type": item[TYPE]},
        )[1]
