"""Records what real handlers do in schedules: each request as it is sent, lands at the table, and is heard of."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from unittest.mock import patch

from botocore.exceptions import ClientError

from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.records import padded
from dynamodb_counters._fold.updates import Update
from dynamodb_counters._items.table_schema import CHECKPOINT_PREFIX, WATERMARK_PREFIX
from dynamodb_counters._stream import batch
from dynamodb_counters._stream.doubtful import set_aside
from dynamodb_counters._stream.redrive import unwrap
from dynamodb_counters._stream.watermarks import sequence_of, shard_digest
from simulation.clock import EPOCH
from simulation.dynamodb.client import Paginator
from simulation.faults.actors import Crashed
from simulation.schedules.backend import MemoryBackend
from simulation.schedules.sandbox import LANDING_SECONDS, Sandbox

Event = dict[str, Any]
ItemKey = tuple[str, str]

_GUARDED: Final = re.compile(r"(#\w+) < (:\w+)")
_SET: Final = re.compile(r"(#\w+) = (:\w+)")


@dataclass(frozen=True, slots=True)
class RecordSeen:
    """A delivered record: when it was created, which items it counts in, whether an image of it cannot be folded."""

    created: int
    items: frozenset[ItemKey]
    poisoned: bool


@dataclass
class Recording:
    """The events of one schedule, in order, and all records that were delivered, by shard and sequence number."""

    events: list[Event] = field(default_factory=list)
    records: dict[str, dict[str, RecordSeen]] = field(default_factory=dict)
    sandboxes: int = 0
    sending: _Request | None = None
    active: _Recorded | None = None

    def log(self, op: str, sandbox: _Recorded, **more: Any) -> None:
        self.events.append({"op": op, "now": sandbox.clock() - EPOCH, "process": sandbox.number, **more})


@dataclass(eq=False)
class _Recorded:
    """A sandbox whose requests are recorded."""

    number: int
    clock: Callable[[], float]
    own_clock: Callable[[], float]
    deadline: float = 0.0
    shard: str = ""
    created_before: float = -math.inf


@dataclass(frozen=True, slots=True)
class _Request:
    """A request that a step of the specification stands for: its kind, and what the step needs to know."""

    kind: str
    sandbox: _Recorded
    about: Mapping[str, Any]
    deadline: float


class _Landing:
    """The table's side: logs a request when, and as often as, it lands."""

    def __init__(self, recording: Recording, client: Any) -> None:
        self._recording, self._client = recording, client
        self.exceptions, self.meta = client.exceptions, client.meta

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call, request = getattr(self._client, name), self._recording.sending

        def land(**arguments: Any) -> Any:
            accepted = True
            if request is not None and _is_past(request):
                # The schedule has leapt over the end of its invocation: it was never sent.
                return {}
            try:
                return call(**arguments)
            except ClientError as error:
                accepted = False
                if not _is_refusal(error):
                    raise
                self._log(request, accepted=False)
                raise
            finally:
                if accepted:
                    self._log(request, accepted=True)

        return land

    def _log(self, request: _Request | None, *, accepted: bool) -> None:
        if request is not None and request.kind != "read":
            about = {**request.about, "deadline": request.deadline, "accepted": accepted}
            self._recording.log(f"{request.kind} landed", request.sandbox, **about)


class _Calling:
    """The handler's side: logs what it sends, and which answers reach it."""

    def __init__(self, recording: Recording, sandbox: _Recorded, client: Any) -> None:
        self._recording, self._sandbox, self._client = recording, sandbox, client
        self.exceptions, self.meta = client.exceptions, client.meta

    def get_paginator(self, _operation: str) -> Paginator:
        return Paginator(self.query)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            recording, sandbox = self._recording, self._sandbox
            request = recording.sending = _classified(name, arguments, sandbox)
            send = getattr(self._client, name)
            if request is not None and request.kind in ("update", "move"):
                recording.log(f"{request.kind} sent", sandbox, **request.about)
            if request is not None and request.kind == "read":
                recording.log("read sent", sandbox)
            try:
                answer = send(**arguments)
            except ClientError as error:
                recording.active = sandbox
                if request is not None and _is_refusal(error):
                    self._heard(request, _refused_item(error))
                raise
            except BaseException:
                recording.active = sandbox
                raise
            recording.active = sandbox
            if request is not None:
                self._heard(request, answer.get("Item"), accepted=True)
            return answer

        return call

    def _heard(self, request: _Request, item: Mapping[str, Any] | None, *, accepted: bool = False) -> None:
        log, about = self._recording.log, {**request.about, "accepted": accepted}
        if request.kind == "read":
            log("read", self._sandbox, **request.about, found=None if item is None else _checkpoint(item))
        elif request.kind == "update":
            name = request.about["watermark"]
            log("update heard", self._sandbox, **about, mark=sequence_of(item[name]) if item else None)
        elif request.kind == "move" or (request.kind == "create" and accepted):
            log(f"{request.kind} heard", self._sandbox, **about)


@contextmanager
def recorded() -> Iterator[Recording]:
    """Record every sandbox made in this block."""
    recording = Recording()
    make, handle, expire_items = Sandbox.__init__, Sandbox.handle, MemoryBackend.expire
    known: dict[Sandbox, _Recorded] = {}

    def made(self: Sandbox, backend: Any, *arguments: Any, **options: Any) -> None:
        make(self, backend, *arguments, **options)
        table: Any = self._aggregator._table
        recording.sandboxes += 1
        sandbox = known[self] = _Recorded(recording.sandboxes, backend.clock, table.clock)
        faulty = table.client
        faulty.client = _Landing(recording, faulty.client)
        vars(table)["client"] = _Calling(recording, sandbox, faulty)

    def handled(self: Sandbox, delivery: Any, deadline: float) -> Any:
        sandbox = recording.active = known[self]
        sandbox.deadline, sandbox.shard, sandbox.created_before = deadline - EPOCH, delivery.shard, -math.inf
        _begin(recording, sandbox, self, delivery)
        how = "crashed"
        try:
            answer = handle(self, delivery, deadline)
            how = "finished"
        except Crashed:
            raise
        except Exception:
            how = "failed"
            raise
        else:
            return answer
        finally:
            recording.log("end", sandbox, how=how)

    def aside(plan: Any, changes: Any, created_before: float, quarantined: Any) -> Any:
        sandbox = recording.active
        assert sandbox is not None
        sandbox.created_before = created_before - EPOCH
        recording.log(
            "set aside", sandbox, before=sandbox.created_before, clock=sandbox.own_clock() - EPOCH, shard=sandbox.shard
        )
        return set_aside(plan, changes, created_before, quarantined)

    def expire(self: MemoryBackend, limit: int) -> list[dict[str, Any]]:
        items = expire_items(self, limit)
        if recording.active is not None:
            keys = [(item["pk"]["S"], item["sk"]["S"]) for item in items]
            recording.log("expiry landed", recording.active, keys=keys)
        return items

    with (
        patch.object(MemoryBackend, "expire", expire),
        patch.object(Sandbox, "__init__", made),
        patch.object(Sandbox, "handle", handled),
        patch.object(batch, "set_aside", aside),
    ):
        yield recording


def _begin(recording: Recording, sandbox: _Recorded, handler: Sandbox, delivery: Any) -> None:
    records = recording.records.setdefault(delivery.shard, {})
    plan = handler._aggregator._plan
    for record in delivery.records:
        sequence = padded(record["dynamodb"]["SequenceNumber"])
        if sequence not in records:
            records[sequence] = _seen(plan, delivery.shard, record)
    sequences = [padded(record["dynamodb"]["SequenceNumber"]) for record in delivery.records]
    end = (delivery.event.get("state") or {}).get("applied_through")
    recording.log(
        "begin",
        sandbox,
        shard=delivery.shard,
        first=sequences[0] if sequences else None,
        last=sequences[-1] if sequences else end,
        deadline=sandbox.deadline,
        old=handler.old_version,
    )


def _seen(plan: Any, shard: str, record: Any) -> RecordSeen:
    unwrapped = unwrap([record], ())
    folded = fold(plan, unwrapped.changes)
    keys = (Update(delta.layout, delta.group, {}, shard).key for delta in folded.deltas)
    items = frozenset((key["pk"], key["sk"]) for key in keys)
    created = int(record["dynamodb"]["ApproximateCreationDateTime"] - EPOCH)
    return RecordSeen(created, items, bool(unwrapped.unreadable or folded.unfoldable))


def _classified(name: str, arguments: Mapping[str, Any], sandbox: _Recorded) -> _Request | None:
    def request(kind: str, **about: Any) -> _Request:
        return _Request(kind, sandbox, {"shard": sandbox.shard, **about}, sandbox.deadline)

    if name == "transact_write_items":
        first = arguments["TransactItems"][0]
        if "Update" in first:
            return request("update", **_update(first["Update"], sandbox))
        kept = [write["Put"]["Item"]["sk"]["S"] for write in arguments["TransactItems"][1:]]
        return request("keep", kept=[sk.split("#")[1] for sk in kept])
    key = arguments.get("Key") or arguments.get("Item") or {}
    pk, sk = key.get("pk", {}).get("S", ""), key.get("sk", {}).get("S", "")
    if pk.startswith(CHECKPOINT_PREFIX):
        # Pruners read other shards' checkpoints, at any time.
        own = pk == CHECKPOINT_PREFIX + shard_digest(sandbox.shard) and sk == "CHECKPOINT"
        return _of_checkpoint(name, arguments, sandbox, request) if own else None
    if name != "update_item":
        return None
    if arguments["UpdateExpression"].startswith("REMOVE"):
        names, values = arguments["ExpressionAttributeNames"], arguments.get("ExpressionAttributeValues", {})
        removed = {names[f"#w{index}"]: values[f":w{index}"] for index in range(len(names)) if f":w{index}" in values}
        return request("prune", item=(pk, sk), removed=removed)
    return request("update", **_update(arguments, sandbox))


def _of_checkpoint(
    name: str, arguments: Mapping[str, Any], sandbox: _Recorded, request: Callable[..., _Request]
) -> _Request:
    if name == "get_item":
        return request("read")
    if name == "put_item":
        return request("create", created=_checkpoint(arguments["Item"]))
    values = {name.removeprefix(":"): value for name, value in arguments["ExpressionAttributeValues"].items()}
    if "applied_through" not in values:
        return request("wake", at=_seconds(values["seen"]))
    marks = "mark" in values
    return request(
        "move",
        through=values["applied_through"]["S"],
        at=_seconds(values["at"]),
        marks=marks,
        settled=values["settled"]["S"] if marks else "",
        clock=math.ceil(sandbox.own_clock() - EPOCH),
    )


def _update(arguments: Mapping[str, Any], sandbox: _Recorded) -> dict[str, Any]:
    names, values = arguments["ExpressionAttributeNames"], arguments["ExpressionAttributeValues"]
    placeholder = next(short for short, name in names.items() if name.startswith(WATERMARK_PREFIX))
    bounds = dict(_GUARDED.findall(arguments.get("ConditionExpression", "")))
    last = dict(_SET.findall(arguments["UpdateExpression"]))[placeholder]
    key = arguments["Key"]
    return {
        "item": (key["pk"]["S"], key["sk"]["S"]),
        "watermark": names[placeholder],
        "first": sequence_of(values[bounds[placeholder]]) if placeholder in bounds else None,
        "last": sequence_of(values[last]),
        "created_before": sandbox.created_before,
    }


def _checkpoint(item: Mapping[str, Any]) -> dict[str, Any]:
    def sequence(name: str) -> str:
        return str(item.get(name, {}).get("S", ""))

    return {
        "checkpoint": sequence("applied_through"),
        "at": _seconds(item.get("at")),
        "mark": sequence("mark"),
        "markAt": _seconds(item.get("mark_at")),
        "settled": sequence("settled"),
        "seen": _seconds(item.get("seen")),
        "lostBefore": _seconds(item["lost_before"]) if "lost_before" in item else None,
        "format": "old" if item.get("old_format", {}).get("BOOL") else "compact",
    }


def _is_past(request: _Request) -> bool:
    return bool(request.sandbox.clock() - EPOCH > request.deadline + LANDING_SECONDS)


def _seconds(value: Mapping[str, Any] | None) -> int:
    return 0 if value is None else math.ceil(float(value["N"]) - EPOCH)


def _is_refusal(error: ClientError) -> bool:
    return error.response["Error"]["Code"] in ("ConditionalCheckFailedException", "TransactionCanceledException")


def _refused_item(error: ClientError) -> Mapping[str, Any] | None:
    response: Any = error.response
    reasons = response.get("CancellationReasons") or [response]
    item: Mapping[str, Any] | None = reasons[0].get("Item")
    return item
