"""Records what real handlers do in schedules: each request as it is sent, lands at the table, and is heard of."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from unittest.mock import patch

from botocore.exceptions import ClientError

from dynamodb_counters._commit.commit import Committer, ItemDelta, Part
from dynamodb_counters._control.registry import Entry
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._fold.fold import Delta
from dynamodb_counters._fold.records import NEW, OLD, padded
from dynamodb_counters._fold.updates import Update
from dynamodb_counters._items.bookkeeping import sequence_of
from dynamodb_counters._items.table_schema import CHECKPOINT_PREFIX, QUARANTINE_PREFIX
from dynamodb_counters.exactly_once import WATERMARK_PREFIX, shard_digest
from simulation.aws.sigv4 import LATEST
from simulation.clock import EPOCH
from simulation.faults.actors import Crashed
from simulation.memory.client_errors import failure
from simulation.memory.memory_client import paginator
from simulation.pairs.backend import MemoryBackend
from simulation.pairs.function import Sandbox
from simulation.pairs.truth import is_entry

Event = dict[str, Any]
ItemKey = tuple[str, str]


REGISTRATION: Final = "registration"
"""A write to the registry, of which the specification knows what it makes records count in."""

_GUARDED: Final = re.compile(r"(#\w+) < (:\w+)")
_SET: Final = re.compile(r"(#\w+) = (:\w+)")


@dataclass
class Recording:
    """The events of one schedule, in order; records that were delivered, by shard and sequence number; the registry.

    `entries` are what the names were registered with.
    """

    events: list[Event] = field(default_factory=list)
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)
    sandboxes: int = 0
    sending: _Request | None = None
    active: _Recorded | None = None

    def sandbox(self) -> _Recorded:
        assert self.active is not None
        return self.active

    def log(self, op: str, sandbox: _Recorded, **more: Any) -> None:
        self.events.append({"op": op, "now": sandbox.clock() - EPOCH, "process": sandbox.number, **more})


@dataclass(eq=False)
class _Recorded:
    """A sandbox whose requests are recorded."""

    number: int
    clock: Callable[[], float]
    deadline: float = 0.0
    shard: str = ""


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

    def batch_execute_statement(self, **_: Any) -> Any:
        """Refuse UPDATEs: the specification has updates of single items, which then follow."""
        raise failure("BatchExecuteStatement", "ValidationException")

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
        if request is not None and request.kind == REGISTRATION:
            for entry in request.about["entries"] if accepted else ():
                self._recording.entries.setdefault(entry.name, entry)
        elif request is not None and request.kind != "read":
            about = {**request.about, "deadline": request.deadline, "accepted": accepted}
            self._recording.log(f"{request.kind} landed", request.sandbox, **about)


class _Calling:
    """The handler's side: logs what it sends, and which answers reach it."""

    def __init__(self, recording: Recording, sandbox: _Recorded, client: Any) -> None:
        self._recording, self._sandbox, self._client = recording, sandbox, client
        self.exceptions, self.meta = client.exceptions, client.meta

    def get_paginator(self, _operation: str) -> Any:
        return paginator(self.query)

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
            log("read", self._sandbox, **request.about, found=_checkpoint(item or {}))
        elif request.kind == "update":
            name = request.about["watermark"]
            log("update heard", self._sandbox, **about, mark=sequence_of(item[name]) if item else None)
        elif request.kind == "move":
            log("move heard", self._sandbox, **about)


@contextmanager
def recorded() -> Iterator[Recording]:
    """Record every sandbox made in this block."""
    recording = Recording()
    make, handle, expire_items = Sandbox.__init__, Sandbox.handle, MemoryBackend.expire
    known: dict[Sandbox, _Recorded] = {}

    def made(
        self: Sandbox, backend: Any, declarations: tuple[Declaration, ...], *arguments: Any, **options: Any
    ) -> None:
        make(self, backend, declarations, *arguments, **options)
        aggregator: Any = self._aggregator
        table = aggregator._client._table
        recording.sandboxes += 1
        sandbox = known[self] = _Recorded(recording.sandboxes, backend.clock)
        faulty = table.client
        faulty.client = _Landing(recording, faulty.client)
        vars(table)["client"] = _Calling(recording, sandbox, faulty)

    def handled(self: Sandbox, delivery: Any, deadline: float) -> Any:
        sandbox = recording.active = known[self]
        sandbox.deadline, sandbox.shard = deadline - EPOCH, delivery.shard
        _begin(recording, sandbox, delivery)
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
        _watched(recording),
    ):
        yield recording


def _watched(recording: Recording) -> ExitStack:
    """Record what handlers do without a request."""
    commit, give_up = Committer.commit, Committer._quarantine_each

    def committed(self: Committer, deltas: Any, part: Part) -> Any:
        sandbox, progress = recording.sandbox(), self._progress.get(part.watermark.shard, {})
        recording.log("part", sandbox, shard=part.watermark.shard, last=part.changes[-1].sequence)
        for delta in deltas:
            through = progress.get(delta.ref, "")
            if delta.last <= through:
                recording.log("skip", sandbox, shard=sandbox.shard, item=_key(delta, part), through=through)
        return commit(self, deltas, part)

    def gave_up(self: Committer, item: ItemDelta, part: Part, reason: str) -> Any:
        answer = give_up(self, item, part, reason)
        sandbox, [delta] = recording.sandbox(), item.deltas
        recording.log("give up", sandbox, shard=sandbox.shard, item=_key(delta, part), last=delta.last)
        return answer

    patches = ExitStack()
    patches.enter_context(patch.object(Committer, "commit", committed))
    patches.enter_context(patch.object(Committer, "_quarantine_each", gave_up))
    return patches


def _begin(recording: Recording, sandbox: _Recorded, delivery: Any) -> None:
    sequences = [padded(record["dynamodb"]["SequenceNumber"]) for record in delivery.records]
    records = recording.records.setdefault(delivery.shard, {})
    for sequence, record in zip(sequences, delivery.records, strict=True):
        records.setdefault(sequence, record)
    end = (delivery.event.get("state") or {}).get("applied_through")
    recording.log(
        "begin",
        sandbox,
        shard=delivery.shard,
        first=sequences[0] if sequences else None,
        last=sequences[-1] if sequences else end,
        deadline=sandbox.deadline,
    )


def _key(delta: Delta, part: Part) -> ItemKey:
    key = Update(delta.layout, delta.group, {}, part.watermark.shard).key
    return key["pk"], key["sk"]


def _classified(name: str, arguments: Mapping[str, Any], sandbox: _Recorded) -> _Request | None:
    def request(kind: str, **about: Any) -> _Request:
        return _Request(kind, sandbox, {"shard": sandbox.shard, **about}, sandbox.deadline)

    if name == "transact_write_items":
        first = arguments["TransactItems"][0]
        if "Update" in first:
            return request("update", **_update(first["Update"]))
        items = [write["Put"]["Item"] for write in arguments["TransactItems"] if "Put" in write]
        return request(REGISTRATION, entries=[Entry.of(item) for item in items if is_entry(item)])
    key = arguments.get("Key") or arguments.get("Item") or {}
    pk, sk = key.get("pk", {}).get("S", ""), key.get("sk", {}).get("S", "")
    if pk.startswith(QUARANTINE_PREFIX):
        return _of_quarantine(name, sk, sandbox, request)
    if pk.startswith(CHECKPOINT_PREFIX):
        # Pruners read other shards' checkpoints, at any time.
        own = pk == CHECKPOINT_PREFIX + shard_digest(sandbox.shard) and sk == "CHECKPOINT"
        return _of_checkpoint(name, arguments, request) if own else None
    return _of_group(arguments, request) if name == "update_item" else None


def _of_group(arguments: Mapping[str, Any], request: Callable[..., _Request]) -> _Request:
    if arguments["UpdateExpression"].startswith("REMOVE"):
        names, values = arguments["ExpressionAttributeNames"], arguments.get("ExpressionAttributeValues", {})
        removed = {name: values[f":{short[1:]}"] for short, name in names.items() if f":{short[1:]}" in values}
        key = arguments["Key"]
        return request("prune", item=(key["pk"]["S"], key["sk"]["S"]), removed=removed)
    return request("update", **_update(arguments))


def _of_quarantine(name: str, sk: str, sandbox: _Recorded, request: Callable[..., _Request]) -> _Request | None:
    shard, sequence, image = [*sk.split("#", 2), "", ""][:3]
    # Other entries are of what an item could not take.
    is_image = name == "put_item" and shard == sandbox.shard and image.partition("#")[0] in (NEW, OLD)
    return request("keep", sequence=sequence, image=image) if is_image else None


def _of_checkpoint(name: str, arguments: Mapping[str, Any], request: Callable[..., _Request]) -> _Request | None:
    if name == "get_item":
        return request("read")
    values = arguments["ExpressionAttributeValues"]
    return request("move", through=values[":applied_through"]["S"], at=_seconds(values[":at"]))


def _update(arguments: Mapping[str, Any]) -> dict[str, Any]:
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
    }


def _checkpoint(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"checkpoint": str(item.get("applied_through", {}).get("S", "")), "at": _seconds(item.get("at"))}


def _is_past(request: _Request) -> bool:
    return bool(request.sandbox.clock() - EPOCH > request.deadline + LATEST)


def _seconds(value: Mapping[str, Any] | None) -> int:
    return 0 if value is None else math.ceil(float(value["N"]) - EPOCH)


def _is_refusal(error: ClientError) -> bool:
    response: Any = error.response
    codes = {response["Error"]["Code"], *(reason.get("Code") for reason in response.get("CancellationReasons") or ())}
    return bool(codes & {"ConditionalCheckFailedException", "ConditionalCheckFailed"})


def _refused_item(error: ClientError) -> Mapping[str, Any] | None:
    response: Any = error.response
    reasons = response.get("CancellationReasons") or [response]
    item: Mapping[str, Any] | None = reasons[0].get("Item")
    return item
