"""Counts in a copy of a table what the original had accepted, but not yet counted, when the copy was made.

The copy has the aggregates with their watermarks, the checkpoints and the deployments' history of the original. So the
aggregator can take the original's records to the copy, each exactly once as ever: those whose changes the copy
contains. The copy's own stream shows what an item was before anyone wrote to the copy. So every run finds the
same records, and one that was killed is repeated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dynamodb_counters._assumptions import CAUGHT_UP_WITHIN, COPY_SKEW, FRESH, LONGEST_INVOCATION
from dynamodb_counters._commit.batch import Aggregator, Report
from dynamodb_counters._commit.checkpoint_items import Checkpoint, checkpoint_key
from dynamodb_counters._commit.classify import classify
from dynamodb_counters._commit.intake import intake
from dynamodb_counters._control.control import close_runs, hand_over, note_predecessor, read_control
from dynamodb_counters._control.deployments import Deployments, last_declarations
from dynamodb_counters._control.predecessors import Predecessor
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.origins import Origins, table_of
from dynamodb_counters._fold.records import OLD, Record, created_of, sequence_number
from dynamodb_counters._items.bookkeeping import bookkeeping_item, bookkeeping_key
from dynamodb_counters._items.table_schema import PK, SK
from dynamodb_counters._items.watermarks import shard_digest
from dynamodb_counters._quarantine.quarantine import RETENTION
from dynamodb_counters._recovery.restored_images import Images, ItemKey, chains_of, compare, first_images, key_of
from dynamodb_counters._streams import StreamReader
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CommitError, RestoreError

_BATCH: Final = 1000
_NAMED: Final = 10

_DONE: Final = bookkeeping_key("RESTORE")
"""Key of the item that names the stream the table has caught up with."""

_PROBES: Final = 100
"""Records of a shard that are read beyond: they show if that time is wrong."""

_STEPPED_BACK: Final = "restored"
"""Attribute of a checkpoint: the stream for which it was set back."""


@dataclass(slots=True)
class Uncounted:
    """Records that the original's stream has for the copy."""

    records: dict[str, list[Record]] = field(default_factory=dict)
    """By shard: those whose changes the copy contains, after what had been counted for certain."""
    counted_through: dict[str, str] = field(default_factory=dict)
    read: int = 0
    """Records of the original's stream, but those that had been counted for long."""
    moment: float = 0.0
    """When the copy was made, or a little earlier."""
    read_from: float = 0.0
    """Time from which on all records created were read."""


def has_caught_up(table: Table, stream: str) -> bool:
    return bool(table.read_item(_DONE).get("stream", {}).get("S") == stream)


def deliver(
    aggregator: Aggregator, table: Table, shard: str, records: Sequence[Record], *, given_up: bool = False
) -> Report:
    """Have a batch counted, in as many tries as it takes."""
    failure = CommitError([])
    for _ in table.tries():
        try:
            return aggregator.handle({"shardId": shard, "Records": list(records)}, given_up=given_up)
        except CommitError as error:
            failure = error
    raise failure


class CatchUp:
    """Catches up with the original's stream in a copy made `at` a time, which its items may leave open."""

    def __init__(
        self,
        table: Table,
        original: StreamReader,
        own: StreamReader,
        stream: str,
        *,
        declarations: tuple[Declaration, ...] | None = None,
        at: float | None = None,
    ) -> None:
        self._table, self._original, self._own = table, original, own
        self._stream, self._at = stream, at
        self._declarations = last_declarations(table, RestoreError) if declarations is None else declarations
        self._source = read_control(table).source or None
        self._deployments = Deployments(table, self._declarations, takes_over=False)

    def find(self) -> Uncounted:
        """Records to be counted; RestoreError if these cannot be determined."""
        read_from = self._table.clock() - CAUGHT_UP_WITHIN
        shards, own_shards = ([shard.id for shard in each.shards()] for each in (self._original, self._own))
        if set(shards) & set(own_shards):
            raise RestoreError("the two streams share a shard's name: restore into a table of its own")
        checkpoints = {shard: self._checkpoint(shard) for shard in shards}
        until = math.inf if self._at is None else self._at + COPY_SKEW
        kept, passed = self._read(self._original, shards, lambda shard: checkpoints[shard].settled, until)
        found = Uncounted(read=sum(map(len, kept.values())), read_from=read_from)
        # Records that settled in a child are in the copy, and those that its parents had of the same key before.
        chains = chains_of(one for shard, those in kept.items() for one in those if key_of(one) not in passed[shard])
        # Chains that began later may lack their first records: what their items were before is unknown.
        chains = {
            key: chain
            for key, chain in chains.items()
            if created_of(chain[0]) <= until or OLD not in chain[0]["dynamodb"]
        }
        items = dict(zip(chains, self._table.pool.map(self._item, chains), strict=True))
        # Read after the items, so that it has every change they show.
        own, _ = self._read(self._own, own_shards, lambda _: "")
        before = first_images(record for records in own.values() for record in records)
        copy = compare(chains, {**items, **before}, self._at)
        self._refuse(
            [key for key in copy.unknown if created_of(chains[key][0]) <= until],
            "are none of the original's images: written before the table's stream was enabled, or the original's "
            "stream has forgotten records",
        )
        if copy.moment > until:
            found_at = f"it has a change of {copy.moment:.0f}, in epoch seconds"
            raise RestoreError(f"the copy was made later than --at: {found_at}")
        if self._at is None:
            self._refuse(
                [key for key, (low, high) in copy.ambiguous.items() if self._net(chains[key][low:high])],
                "leave open when the copy was made: pass --at",
            )
        found.moment = copy.moment
        copied = {shard: self._as_copied(shard, checkpoints[shard], before) for shard in shards}
        places: dict[ItemKey, int] = {}
        ahead: list[Record] = []
        for shard, records in kept.items():
            # A checkpoint may be copied a little later than items; what has settled is in all of them.
            counted = found.counted_through[shard] = checkpoints[shard].settled_through(copy.moment + FRESH)
            for record in records:
                key = key_of(record)
                is_chained = key not in passed[shard]
                places[key] = places.get(key, 0) + is_chained
                if is_chained and places[key] > copy.included.get(key, 0):
                    ahead += [record] if sequence_number(record) <= copied[shard].applied_through else []
                elif sequence_number(record) > counted:
                    found.records.setdefault(shard, []).append(record)
        self._refuse(
            [key_of(record) for record in ahead if self._net([record])],
            "were changed and counted after they had been copied: the copy is not of one moment",
        )
        return found

    def count(self, uncounted: Uncounted) -> tuple[int, int]:
        """Count it; return how many items were updated, and how many entries quarantined."""
        aggregator = Aggregator(
            self._table,
            self._declarations,
            quarantine_retention_seconds=RETENTION,
            source_table=self._source,
            # A copy made before the original's first batch has no history: it begins with what is passed.
            takes_over=not self._has_history(),
        )
        updated = quarantined = 0
        made_at = uncounted.moment if self._at is None else self._at
        note_predecessor(self._table, Predecessor(self._stream, math.floor(made_at), math.ceil(uncounted.read_from)))
        if self._source:
            # It must know the predecessor before it separates records of that from the source table's.
            aggregator.handle({})
        # Records counted here are in no run's log.
        close_runs(self._table)
        # All before any: a batch of one shard prunes watermarks that the checkpoint of another covers.
        for shard in uncounted.records:
            self._step_back(shard, uncounted.counted_through[shard])
        for shard, records in uncounted.records.items():
            for start in range(0, len(records), _BATCH):
                report = deliver(aggregator, self._table, shard, records[start : start + _BATCH])
                updated += report.updated
                quarantined += report.quarantined
        self._finish()
        return updated, quarantined

    def _read(
        self, stream: StreamReader, shards: list[str], after: Callable[[str], str], until: float = math.inf
    ) -> tuple[dict[str, list[Record]], dict[str, set[ItemKey]]]:
        """The records of each shard after some sequence number, and little beyond some time."""

        # With the keys of each whose records up to that number are in its children: thus later than all of the shard's.
        def records(shard: str) -> tuple[list[Record], set[ItemKey]]:
            settled, kept, passed, late = after(shard), list[Record](), set[ItemKey](), 0
            for record in stream.records(shard):
                late += created_of(record) > until
                if late > _PROBES:
                    break
                if sequence_number(record) > settled:
                    kept.append(record)
                else:
                    passed.add(key_of(record))
            return kept, passed

        read = dict(zip(shards, self._table.pool.map(records, shards), strict=True))
        later, passed = set[ItemKey](), dict[str, set[ItemKey]]()
        for shard in reversed(shards):
            passed[shard] = set(later)
            later |= read[shard][1]
        return {shard: kept for shard, (kept, _) in read.items()}, passed

    def _step_back(self, shard: str, through: str) -> None:
        """Let the shard's checkpoint cover only what all copied items contain; once."""
        update = "SET applied_through = :through, settled = :through, #done = :stream REMOVE mark, mark_at, progress"
        self._table.write(
            "update_item",
            Key=checkpoint_key(shard_digest(shard)),
            UpdateExpression=update,
            ConditionExpression=f"attribute_exists({PK}) AND (attribute_not_exists(#done) OR #done <> :stream)",
            ExpressionAttributeNames={"#done": _STEPPED_BACK},
            ExpressionAttributeValues={":through": {"S": through}, ":stream": {"S": self._stream}},
        )

    def _finish(self) -> None:
        hand_over(self._table)
        done = bookkeeping_item(_DONE, {"stream": self._stream})
        self._table.client.put_item(TableName=self._table.name, Item=done)

    def _refuse(self, keys: Sequence[ItemKey], problem: str) -> None:
        if keys:
            named = ", ".join(" / ".join(key) for key in keys[:_NAMED])
            raise RestoreError(f"{len(keys)} item(s) {problem}: {named}")

    def _net(self, records: Sequence[Record]) -> bool:
        """Whether records of one key change any count, all in all."""
        # One by one: a key's records may be of two shards, parent and child, whose numbers do not compare.
        origins = Origins(self._table.name, self._source, lambda: (table_of(self._stream),))
        changes = [change for record in records for change in intake([record], origins)]
        if self._has_history():
            self._deployments.refresh(self._table.clock() + LONGEST_INVOCATION)
        known = self._deployments
        # Near the cut of a backfill, changes are taken by their times.
        classes = classify(changes, known.history, known.plan_of, known.plan_in_force, now=self._table.clock())
        folded = [fold(each.plan, each.changes) for each in classes]
        return any(part.unfoldable or any(any(delta.measures.values()) for delta in part.deltas) for part in folded)

    def _has_history(self) -> bool:
        return read_control(self._table).history is not None

    def _checkpoint(self, shard: str) -> Checkpoint:
        try:
            return Checkpoint.of(self._table.read_item(checkpoint_key(shard_digest(shard))))
        except ValueError as error:
            raise RestoreError(f"the checkpoint of {shard} cannot be read: {error}") from error

    def _as_copied(self, shard: str, now: Checkpoint, before: Images) -> Checkpoint:
        """The checkpoint before an earlier run of this moved it."""
        key = checkpoint_key(shard_digest(shard))
        place = key[PK]["S"], key[SK]["S"]
        return Checkpoint.of(before[place] or {}) if place in before else now

    def _item(self, key: ItemKey) -> dict[str, Any] | None:
        return self._table.read_item({PK: {"S": key[0]}, SK: {"S": key[1]}}) or None
