"""A backfill from its opening to its end, in steps that a process may die between: another one goes on.

1. Open: an era in which the generations are counted, from a time that every process knows of before it comes.
2. Scan the table, once that time is over; meanwhile the aggregator logs what changes.
3. Drain: wait until every shard has logged what happened while the scan went on.
4. Sum up and add the baseline to each group, once.
5. Complete: readers use the new generations.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from dynamodb_counters._backfill.baseline import Pages, contributions, parts_for, sum_up
from dynamodb_counters._backfill.opening import Opening, opening
from dynamodb_counters._backfill.pace import Pace
from dynamodb_counters._backfill.scan import Scan
from dynamodb_counters._backfill.shards import ONLY, DescribeShards, Lineage
from dynamodb_counters._declarations import Declaration, require_consistent
from dynamodb_counters._declarations.effective import same_meaning
from dynamodb_counters._declarations.generations import base_name, generation_number
from dynamodb_counters._fold.item_layout import GroupRef
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.updates import Update
from dynamodb_counters._generations import FRESH as READERS_FRESH
from dynamodb_counters._generations import Status
from dynamodb_counters._items.decimals import Number
from dynamodb_counters._items.table_schema import BASELINE, PK
from dynamodb_counters._stream.checkpoint_items import BOOK, FRESH, SETTLED_AFTER, Checkpoint, checkpoint_key
from dynamodb_counters._stream.control import Control, get, read_control, read_declarations, write_control
from dynamodb_counters._stream.deployment_items import Era, History, deployment_id
from dynamodb_counters._stream.run_items import Run, beat_key, log_key, run_item, run_key
from dynamodb_counters._stream.watermarks import shard_digest
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.times import HOUR, MINUTE
from dynamodb_counters.errors import BackfillError

CLOCKS: Final = MINUTE
"""More than the difference of any two clocks, and more than a write that is acknowledged takes."""

_OPEN_AFTER: Final = FRESH + 2 * CLOCKS
"""From the opening on: by then every process knows of it."""

_POLL: Final = 2.0
_DESCRIBE_EVERY: Final = HOUR
_LINEAGE_KEPT: Final = 20 * HOUR
"""Streams tell of their shards for a day."""

_TRIES: Final = 5
_AT_A_TIME: Final = 256


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a backfill is.

    Parameters
    ----------
    phase : {"waiting", "scanning", "draining", "adding", "complete"}
    run : str
        The run's id, by which another process goes on with it.
    done, total : int
        Of the phase: seconds, items scanned, shards, groups; total 0 if nobody knows.
    units : float
        Capacity units consumed by this process.
    """

    phase: str
    run: str
    done: int = 0
    total: int = 0
    units: float = 0.0


@dataclass(slots=True)
class _State:
    """What the run's item tells."""

    run: Run
    phase: str
    segments: int
    lineage: Lineage
    described_at: float
    ended_at: float = 0.0
    items: int = 0
    parts_done: int = 0

    def values(self) -> dict[str, Any]:
        shards = json.dumps([self.lineage.parents, sorted(self.lineage.open)])
        return {
            "kind": self.run.kind,
            "since": self.run.since,
            "names": json.dumps(self.run.names),
            "phase": self.phase,
            "segments": self.segments,
            "shards": shards,
            "described_at": self.described_at,
            "ended_at": self.ended_at,
            "items": self.items,
            "parts_done": self.parts_done,
        }

    @classmethod
    def of(cls, run: str, item: dict[str, Any]) -> _State:
        parents, is_open = json.loads(item["shards"]["S"])
        names = tuple(json.loads(item["names"]["S"]))
        return cls(
            Run(run, item["kind"]["S"], int(item["since"]["N"]), names),
            item["phase"]["S"],
            int(item["segments"]["N"]),
            Lineage(parents, frozenset(is_open)),
            float(item["described_at"]["N"]),
            float(item["ended_at"]["N"]),
            int(item["items"]["N"]),
            int(item["parts_done"]["N"]),
        )


@dataclass(slots=True)
class Backfill:
    """Backfills some declarations of a table; by default all that are not whole, or wait for it.

    `now` is DynamoDB's time, by which records are created. `run` goes on with a run that another process began.
    """

    table: Table
    shards: DescribeShards
    now: Callable[[], float]
    names: Collection[str] = ()
    run: str = ""
    segments: int = 4
    units_per_second: float | None = None
    key_names: tuple[str, ...] = ("pk", "sk")
    page_items: int = 2000
    _pace: Pace = field(init=False)

    def __post_init__(self) -> None:
        self._pace = Pace(self.units_per_second, self.table.clock, self.table.sleep)

    def steps(self) -> Iterator[Progress]:
        """Do it, and tell after each step where it is."""
        state = self._found() if self.run else None
        for _ in range(_TRIES):
            state = state or self._open()
            yield from self._wait(state)
            if state.phase != "waiting" or self._same_shards(state):
                break
            self._void(state)
            state = None
        else:
            raise BackfillError("the table's stream is splitting its shards all the time: try again later")
        if state.phase == "waiting":
            self._enter(state, "scanning")
        if state.phase == "scanning":
            yield from self._scan(state)
        if state.phase == "draining":
            yield from self._drain(state)
        if state.phase == "adding":
            yield from self._add(state)
        yield self._progress(state, 1, 1)

    def _progress(self, state: _State, done: float, total: float) -> Progress:
        return Progress(state.phase, state.run.id, int(done), int(total), self._pace.consumed)

    # Opening

    def _found(self) -> _State:
        item = get(self.table, run_key(self.run))
        if not item:
            raise BackfillError(f"invalid run={self.run!r}: expected the id of a run of the last 30 days")
        state = _State.of(self.run, item)
        if state.phase == "void":
            raise BackfillError(f"run {self.run} is void: begin another one")
        if self.now() - state.described_at > _LINEAGE_KEPT and state.phase in ("scanning", "draining"):
            self._void(state)
            raise BackfillError(f"run {self.run} has rested for too long: the stream has forgotten shards; begin anew")
        return state

    def _open(self) -> _State:
        for _ in self.table.tries(_TRIES):
            state = self._try_to_open()
            if state is not None:
                return state
        raise BackfillError("the table's deployments change all the time: try again later")

    def _try_to_open(self) -> _State | None:
        seen = read_control(self.table)
        history, declared, _ = self._known(seen)
        opened = self.now()
        since = math.ceil(opened + _OPEN_AFTER)
        folded = self._folded(history.at(since).deployment)
        names = self.names or _unfinished(seen, declared, folded)
        if not names:
            raise BackfillError("nothing to backfill: every declaration counts all there is, as it is declared")
        number = 1 + int(seen.item.get("generation", {}).get("N", "0"))
        new = opening(names, declared, folded, seen, number)
        run = Run(secrets.token_hex(8), "backfill", since, new.scanned)
        sets = [_with(self._folded(era.deployment), new) for era in history.eras if era.valid_from > since]
        sets.insert(0, _with(folded, new))
        later = [era.valid_from for era in history.eras if era.valid_from > since]
        eras = [era for era in history.eras if era.valid_from <= since]
        eras.append(Era(since, deployment_id(sets[0]), run.id))
        eras += [Era(begins, deployment_id(part)) for begins, part in zip(later, sets[1:], strict=True)]
        lineage = Lineage()
        lineage.meet(self.shards())
        state = _State(run, "waiting", self.segments, lineage, opened)
        written = write_control(
            self.table,
            seen,
            History(tuple(eras)),
            runs=(*seen.runs, run),
            deployments=sets,
            attributes={"generation": {"N": str(number)}},
            also=[{"Put": {"TableName": self.table.name, "Item": self._item(state)}}],
        )
        if not written:
            return None
        if self.now() > opened + CLOCKS:
            self._void(state)
            return None
        return state

    def _known(self, seen: Control) -> tuple[History, tuple[Declaration, ...], tuple[Declaration, ...]]:
        history, knows = seen.history, seen.knows_runs
        if history is None or knows is None:
            raise BackfillError("no aggregator of this version has run on the table: deploy it, and wait for a batch")
        if self.now() < knows:
            raise BackfillError(
                f"an aggregator of an earlier version may be running: try again in {knows - self.now():.0f} seconds"
            )
        return history, self._folded(seen.declared), self._folded(history.last.deployment)

    def _folded(self, deployment: str) -> tuple[Declaration, ...]:
        found = read_declarations(self.table, deployment)
        if found is None:
            raise BackfillError("this version cannot read the deployed declarations: install the one that runs")
        return found

    def _wait(self, state: _State) -> Iterator[Progress]:
        begun = self.now()
        until = state.run.since + CLOCKS
        while state.phase == "waiting" and (now := self.now()) < until:
            yield self._progress(state, now - begun, until - begun)
            self.table.sleep(min(_POLL, until - now))

    def _same_shards(self, state: _State) -> bool:
        """Whether no shard began near the cut, where the clocks of two shards could disagree about it."""
        known = set(state.lineage.parents)
        state.lineage.meet(self.shards())
        return set(state.lineage.parents) == known

    # Scanning and draining

    def _plan(self, state: _State) -> Plan:
        seen = read_control(self.table)
        _, _, folded = self._known(seen)
        if not {declaration.name for declaration in folded}.issuperset(state.run.names):
            self._void(state)
            raise BackfillError(f"run {state.run.id} is void: a deployment has dropped what it fills")
        return Plan(folded)

    def _scan(self, state: _State) -> Iterator[Progress]:
        scan = Scan(
            self.table,
            self.table,
            state.run,
            self._plan(state),
            state.segments,
            self._pace,
            self.key_names,
            self.page_items,
        )
        total = self.table.client.describe_table(TableName=self.table.name)["Table"].get("ItemCount", 0)
        for scanned in scan.rounds():
            state.items = scanned.items
            if self.now() > state.described_at + _DESCRIBE_EVERY:
                self._describe(state)
            yield self._progress(state, scanned.items, max(total, scanned.items))
        state.ended_at = self.now()
        self._enter(state, "draining")

    def _drain(self, state: _State) -> Iterator[Progress]:
        """Wait until every shard has logged something that came after the scan."""
        beats_at = -math.inf
        acknowledged: dict[str, bool] = {}
        while True:
            self._describe(state)
            for shard in (*state.lineage.parents, ONLY):
                if not acknowledged.get(shard):
                    acknowledged[shard] = self._has_passed(state, shard)
            waiting = state.lineage.waiting(acknowledged)
            if not waiting:
                break
            count = len(state.lineage.open)
            yield self._progress(state, count - len(waiting), count)
            if self.now() > beats_at + 10 * _POLL:
                beats_at = self.now()
                self._beat(state, 2 * len(waiting))
            self.table.sleep(_POLL)
        self._require_no_gap(state)
        self._enter(state, "adding")

    def _has_passed(self, state: _State, shard: str) -> bool:
        """Whether the last page of a shard's log is from after the scan."""
        found = self.table.client.query(
            TableName=self.table.name,
            KeyConditionExpression=f"{PK} = :pk",
            ExpressionAttributeValues={":pk": log_key(state.run.id, shard)[PK]},
            ProjectionExpression="created, beats",
            ScanIndexForward=False,
            Limit=1,
            ConsistentRead=True,
        )["Items"]
        return any(float(page["created"]["N"]) > state.ended_at + CLOCKS or page["beats"]["N"] != "0" for page in found)

    def _beat(self, state: _State, count: int) -> None:
        """Change items of random keys, so that idle shards have something to log."""
        for _ in range(count):
            item = run_item(beat_key(state.run.id, secrets.token_hex(8)), {}, self.table.clock())
            self.table.client.put_item(TableName=self.table.name, Item=item)
            self._pace.spend(1.0)

    def _require_no_gap(self, state: _State) -> None:
        """Records that Lambda gave up on are not in the log; where it may have, a later book was opened."""
        for shard in state.lineage.parents:
            book = shard
            while True:
                item = get(self.table, checkpoint_key(shard_digest(book)))
                known = Checkpoint.of(item) if item else Checkpoint()
                if not known.successor:
                    break
                if known.successor_at >= state.run.since - SETTLED_AFTER:
                    self._void(state)
                    raise BackfillError(
                        f"run {state.run.id} is void: Lambda may have given up on records of {shard}; redrive what is "
                        "in the on-failure bucket, then begin another one"
                    )
                book = f"{shard}{BOOK}{known.successor}"

    # Adding and completing

    def _add(self, state: _State) -> Iterator[Progress]:
        plan = self._plan(state)
        pages = Pages(self.table, state.run, state.segments, state.lineage)
        parts = parts_for(state.items)
        added = 0
        for part in range(state.parts_done, parts):
            sums = sum_up((each for items in range(parts) for each in contributions(pages, items, parts)), part, parts)
            refs = sorted(sums)
            for start in range(0, len(refs), _AT_A_TIME):
                some = refs[start : start + _AT_A_TIME]
                self._add_some(plan, state.run.id, {ref: sums[ref] for ref in some})
                added += len(some)
                yield self._progress(state, added, len(refs) * parts)
            state.parts_done = part + 1
            self._write(state)
        self._complete(state)

    def _add_some(self, plan: Plan, run: str, sums: dict[GroupRef, dict[str, Number]]) -> None:
        for _, outcome in self.table.side_by_side(lambda ref: self._add_to(plan, run, ref, sums[ref]), list(sums)):
            if isinstance(outcome, Exception):
                raise outcome
            self._pace.spend(outcome)

    def _add_to(self, plan: Plan, run: str, ref: GroupRef, sums: dict[str, Number]) -> float:
        """Add its baseline to a group, unless it has it."""
        name, group = ref
        update = Update(plan.programs[name].layout, group, sums, "")
        update.set(BASELINE, {"S": run})
        request = update.request(self.table.name)
        request["ConditionExpression"] = "attribute_not_exists(#baseline)"
        request["ExpressionAttributeNames"]["#baseline"] = BASELINE
        client = self.table.client
        try:
            answer = client.update_item(**request, ReturnConsumedCapacity="TOTAL")
        except client.exceptions.ConditionalCheckFailedException:
            return 1.0
        return float(answer.get("ConsumedCapacity", {}).get("CapacityUnits", 1.0))

    def _complete(self, state: _State) -> None:
        """Let readers use the new generations, and what they replace end once nobody reads it any more."""
        for _ in self.table.tries(_TRIES):
            seen = read_control(self.table)
            history, _, folded = self._known(seen)
            filled = _filled(state.run, folded)
            if not filled or state.run not in seen.runs:
                self._void(state)
                raise BackfillError(f"run {state.run.id} is void: a deployment has dropped what it fills")
            bases = {base_name(declaration.name) for declaration in filled}
            number = generation_number(filled[0].name)
            statuses = seen.statuses
            for base in bases:
                statuses[base] = Status(number, history.last.deployment, whole=True, since=0)
            kept = tuple(
                declaration
                for declaration in folded
                if base_name(declaration.name) not in bases or generation_number(declaration.name) >= number
            )
            ends = math.ceil(self.now() + READERS_FRESH + SETTLED_AFTER)
            state.phase = "complete"
            if write_control(
                self.table,
                seen,
                _followed(history, folded, kept, ends),
                runs=[run for run in seen.runs if run != state.run],
                statuses=statuses,
                deployments=(kept,),
                also=[{"Put": {"TableName": self.table.name, "Item": self._item(state)}}],
            ):
                return
        raise BackfillError("the table's deployments change all the time: run it again")

    # The run's item

    def _item(self, state: _State) -> dict[str, Any]:
        return run_item(run_key(state.run.id), state.values(), self.table.clock())

    def _write(self, state: _State) -> None:
        self.table.client.put_item(TableName=self.table.name, Item=self._item(state))

    def _enter(self, state: _State, phase: str) -> None:
        state.phase = phase
        self._write(state)

    def _describe(self, state: _State) -> None:
        state.lineage.meet(self.shards())
        state.described_at = self.now()
        self._write(state)

    def _void(self, state: _State) -> None:
        """Give a run up, and end its generations."""
        state.phase = "void"
        for _ in self.table.tries(_TRIES):
            seen = read_control(self.table)
            history = seen.history
            if history is None:
                return
            folded = self._folded(history.last.deployment)
            gone = {declaration.name for declaration in _filled(state.run, folded)}
            kept = tuple(declaration for declaration in folded if declaration.name not in gone)
            ends = math.ceil(self.now() + _OPEN_AFTER)
            if write_control(
                self.table,
                seen,
                _followed(history, folded, kept, ends),
                runs=[run for run in seen.runs if run != state.run],
                deployments=(kept,),
                also=[{"Put": {"TableName": self.table.name, "Item": self._item(state)}}],
            ):
                return


def _with(folded: Collection[Declaration], new: Opening) -> tuple[Declaration, ...]:
    both = tuple(sorted((*folded, *new.generations), key=lambda declaration: declaration.name))
    require_consistent(both)
    return both


def _followed(
    history: History, folded: tuple[Declaration, ...], kept: tuple[Declaration, ...], valid_from: int
) -> History:
    """The history with an era of what is kept, if that is less than what is folded."""
    if kept == folded:
        return history
    begins = max(valid_from, history.last.valid_from + 1)
    return History((*history.eras, Era(begins, deployment_id(kept))))


def _unfinished(seen: Control, declared: Collection[Declaration], folded: Collection[Declaration]) -> set[str]:
    """Names that do not count everything there is, or count as they were declared before."""
    statuses, reads = seen.statuses, seen.reads
    known = {declaration.name: declaration for declaration in folded}
    unfinished = {name for name, status in statuses.items() if not status.whole}
    for declaration in declared:
        number = reads.get(declaration.name, 0)
        held = known.get(f"{declaration.name}~{number}" if number else declaration.name)
        if held is None or not same_meaning(declaration, held):
            unfinished.add(declaration.name)
    return unfinished & {declaration.name for declaration in declared}


def _filled(run: Run, folded: Collection[Declaration]) -> list[Declaration]:
    """What a run fills, scanned or over what is; nothing if a part of it is gone."""
    names = {declaration.name for declaration in folded}
    if not names.issuperset(run.names):
        return []
    number = generation_number(run.names[0])
    return [declaration for declaration in folded if generation_number(declaration.name) == number]
