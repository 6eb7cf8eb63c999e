"""Records what real handlers do in schedules, as steps of docs/spec/CountersTrace.tla: requests sent, landed, heard."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from botocore.exceptions import ClientError

from counters_lambda.counting.commit import ItemDelta, Part, checkpoint_key
from dynamodb_counters._declarations.groups import typed_key
from dynamodb_counters._fold.fold import Delta
from dynamodb_counters._fold.layouts import Update
from dynamodb_counters._fold.records import NEW, OLD, padded
from dynamodb_counters._items.schema import CHECKPOINT_PREFIX, QUARANTINE_PREFIX, sequence_of
from dynamodb_counters.exactly_once import WATERMARK_PREFIX, Watermark, shard_digest
from simulation.aws.sigv4 import LATEST
from simulation.clock import EPOCH
from simulation.delivery.event_source_mapping import Delivery
from simulation.faults.hooked_client import HookedClient
from simulation.memory.client_errors import failure
from simulation.pairs.apart import Backend
from simulation.pairs.function import Sandbox

_SENT: Final = "recorded"
"""Argument of a request on its way to the table: kind and fields of its step, and the deadline of its invocation."""

_REFUSED: Final = {"ConditionalCheckFailedException", "ConditionalCheckFailed"}

Fields = dict[str, Any]
Place = tuple[str, str]


class Recording:
    """The steps of one schedule, with numbers instead of names.

    `steps` have the number of a sandbox, what happened, and its text, in which a question mark is the process;
    `records` are those that were delivered, in order by shard and padded sequence number, with their numbers.
    """

    def __init__(self, backend: Backend) -> None:
        self.steps: list[tuple[int, str, list[str]]] = []
        self.records: dict[str, dict[str, tuple[int, Any]]] = {}
        self.items: dict[Place, int] = {}
        self._clock, self._now = backend.clock, 0
        vars(backend)["expire"] = partial(self._expire, backend.expire)

    def item(self, place: Place) -> int:
        return self.items.setdefault(place, len(self.items) + 1)

    def number(self, shard: str, sequence: str | None) -> int:
        """Return the number of a record; 0 if it was never delivered."""
        return self.records[shard].get(sequence or "", (0,))[0]

    def note(self, sandbox: int, op: str, lines: Iterable[str]) -> list[str]:
        """Add a step, and before it that of the time that has passed; return its text."""
        before, self._now = self._now, max(self._now, math.floor(self._clock() - EPOCH))
        passed = [record(op='"time"', now=self._now)] if self._now > before else []
        self.steps.append((sandbox, op, [*passed, *lines]))
        return self.steps[-1][2]

    def line(self, op: str, fields: Fields) -> str:
        texts = {name: self._text(name, value, fields.get("shard", "")) for name, value in fields.items()}
        return record(op=f'"{op}"', process="?", **texts)

    def _text(self, name: str, value: Any, shard: str) -> Any:
        match name:
            case "how" | "image":
                text = f'"{value}"'
            case "accepted" | "cold":
                text = str(value).upper()
            case "found":
                through = self.number(shard, value.get("applied_through", {}).get("S"))
                text = record(checkpoint=through, at=_seconds(value.get("at", {"N": EPOCH})))
            case "removed":
                shards = {Watermark(shard).name: shard for shard in self.records}
                text = braced(self._removed(shards[name], value[name]) for name in value if name in shards)
            case "shard":
                return [*self.records].index(value) + 1
            case "item":
                return self.item(value)
            case "first" | "last" | "through" | "mark" | "sequence":
                return self.number(shard, value)
            case _:
                return math.floor(value)
        return text

    def _removed(self, shard: str, value: Any) -> str:
        number, created = self.number(shard, sequence_of(value)), math.floor(Watermark.read(value)[1] - EPOCH)
        return record(shard=self._text("shard", shard, shard), value=number, created=created)

    def _expire(self, expire: Callable[[int], list[Fields]], limit: int) -> list[Fields]:
        items = expire(limit)
        if self.steps:
            numbers = [self.items[place] for place in map(_place, items) if place in self.items]
            self.note(self.steps[-1][0], "expiry landed", (record(op='"expired"', item=item) for item in numbers))
        return items


class RecordedSandbox(Sandbox):
    def __init__(self, recording: Recording, numbers: Iterator[int], *arguments: Any) -> None:
        super().__init__(*arguments)
        self._recording, self._number = recording, next(numbers)
        self._shard, self._counts, self._is_cold = "", False, True
        self._begun: list[str] | None = None
        """Text of the step in which an invocation has begun, until its next one."""
        faulty: Any = self.table.client
        faulty.client = HookedClient(faulty.client, self._land)
        vars(self.table)["client"] = HookedClient(faulty, self._call)
        # What it does without a request.
        committer: Any = self._aggregator._committer
        committer.commit = partial(self._commit, committer.commit, committer._progress)
        committer._quarantine_each = partial(self._give_up, committer._quarantine_each)

    def handle(self, delivery: Delivery, deadline: float) -> Mapping[str, Any]:
        self.deadline, self._shard = deadline, delivery.shard
        self._note_begin(delivery)
        how = "crashed"
        try:
            answer = super().handle(delivery, deadline)
            # The end of a window needs no acknowledgment.
            how = "finished" if delivery.records else "failed"
        except Exception:
            how = "failed"
            raise
        finally:
            self._note("end", {"how": how}, is_step=self._counts)
        return answer

    def _note_begin(self, delivery: Delivery) -> None:
        rows, number = self._recording.records.setdefault(self._shard, {}), self._recording.number
        sequences = [padded(change["dynamodb"]["SequenceNumber"]) for change in delivery.records]
        for sequence, change in zip(sequences, delivery.records, strict=True):
            rows.setdefault(sequence, (len(rows) + 1, change))
        last = sequences[-1] if sequences else (delivery.event.get("state") or {}).get("applied_through")
        begin = number(self._shard, sequences[0]) - 1 if sequences else number(self._shard, last)
        fields = {"begin": begin, "last": last, "deadline": self.deadline - EPOCH, "cold": self._is_cold}
        self._counts = number(self._shard, last) > 0
        begun = self._note("begin", {"shard": self._shard, **fields}, is_step=self._counts)
        if self._counts:
            self._begun, self._is_cold = begun, False

    def _note(self, op: str, fields: Fields, *, is_step: bool = True) -> list[str]:
        if self._begun is not None and not op.endswith(" landed"):
            # An empty invocation within a window, or after one that has committed nothing, uses no checkpoint.
            if op != "read sent" and fields.get("how", "finished") == "finished":
                self._begun.append(self._recording.line("copy", {}))
            self._begun = None
        return self._recording.note(self._number, op, [self._recording.line(op, fields)] if is_step else [])

    def _commit(self, commit: Callable[..., Any], progress: Any, deltas: Sequence[Delta], part: Part) -> Any:
        shard = part.watermark.shard
        applied = progress.get(shard, {})
        self._note("part", {"shard": shard, "last": part.changes[-1].sequence})
        for delta in deltas:
            if delta.last <= (through := applied.get(delta.ref, "")):
                self._note("skip", {"shard": self._shard, "item": place_of(delta, shard), "through": through})
        return commit(deltas, part)

    def _give_up(self, give_up: Callable[..., Any], item: ItemDelta, part: Part, reason: str) -> Any:
        answer, [delta] = give_up(item, part, reason), item.deltas
        place = place_of(delta, part.watermark.shard)
        self._note("give up", {"shard": self._shard, "item": place, "last": delta.last})
        return answer

    def _call(self, name: str, send: Callable[[], Any], request: Fields) -> Any:
        """Note the handler's side: what it sends, and which answers reach it."""
        step = self._step(name, request)
        if step is None:
            return send()
        kind, fields = step[0], {"shard": self._shard, **step[1]}
        request[_SENT] = kind, fields, self.deadline
        if kind not in ("keep", "prune"):
            self._note(f"{kind} sent", fields, is_step=kind != "read")
        try:
            answer = send()
        except ClientError as error:
            if (refusal := _refusal(error)) is not None:
                self._heard(kind, {**fields, "accepted": False}, refusal.get("Item"))
            raise
        self._heard(kind, {**fields, "accepted": True}, answer.get("Item"))
        return answer

    def _heard(self, kind: str, fields: Fields, item: Mapping[str, Any] | None) -> None:
        if kind == "read":
            self._note("read", {"shard": fields["shard"], "found": item or {}})
        elif kind == "update":
            mark = item and item[Watermark(self._shard).name]
            self._note("update heard", {**fields, "mark": mark and sequence_of(mark)})
        elif kind == "move":
            self._note("move heard", fields)

    def _land(self, name: str, send: Callable[[], Any], request: Fields) -> Any:
        """Note the table's side: a request when, and as often as, it lands."""
        if name == "batch_execute_statement":
            # The specification has updates of single items, which then follow.
            raise failure("BatchExecuteStatement", "ValidationException")
        kind, fields, deadline = request.pop(_SENT, ("", {}, math.inf))
        if self._clock() > deadline + LATEST:
            # The schedule has leapt over the end of its invocation: it was never sent.
            return {}
        landed = partial(self._note, f"{kind} landed") if kind not in ("", "read") else lambda _: None
        fields = {**fields, "deadline": deadline - EPOCH}
        try:
            answer = send()
        except ClientError as error:
            if _refusal(error) is not None:
                landed({**fields, "accepted": False})
            raise
        landed({**fields, "accepted": True})
        return answer

    def _step(self, name: str, request: Mapping[str, Any]) -> tuple[str, Fields] | None:
        """Return the kind of step that a request is, with its fields."""
        if name == "transact_write_items":
            name, request = "update_item", request["TransactItems"][0].get("Update", {})
        key, values = request.get("Key") or request.get("Item") or {}, request.get("ExpressionAttributeValues", {})
        if key == checkpoint_key(shard_digest(self._shard)):
            if name == "get_item":
                return "read", {}
            return "move", {"through": values[":applied_through"]["S"], "at": _seconds(values[":at"])}
        pk, sk = _place(key) if key else (CHECKPOINT_PREFIX, "")
        if pk.startswith(QUARANTINE_PREFIX):
            shard, sequence, image = [*sk.split("#", 2), "", ""][:3]
            # Other entries are of what an item could not take.
            is_image = name == "put_item" and shard == self._shard and image.startswith((NEW, OLD))
            return ("keep", {"sequence": sequence, "image": image}) if is_image else None
        if name != "update_item" or pk.startswith(CHECKPOINT_PREFIX):
            # Pruners read other shards' checkpoints, at any time.
            return None
        names = request["ExpressionAttributeNames"]
        if request["UpdateExpression"].startswith("REMOVE"):
            removed = {name: values[f":{short[1:]}"] for short, name in names.items() if f":{short[1:]}" in values}
            return "prune", {"item": (pk, sk), "removed": removed}
        watermark = next(short for short, name in names.items() if name.startswith(WATERMARK_PREFIX))
        last = re.search(rf"{watermark} = (:\w+)", request["UpdateExpression"])
        first = re.search(rf"{watermark} < (:\w+)", request.get("ConditionExpression", ""))
        assert last is not None
        bounds = [bound and sequence_of(values[bound[1]]) for bound in (first, last)]
        return "update", {"item": (pk, sk), "first": bounds[0], "last": bounds[1]}


def _refusal(error: ClientError) -> Mapping[str, Any] | None:
    """Return the response, or the reason of a transaction's, if a condition did not hold."""
    response: Any = error.response
    reasons = response.get("CancellationReasons") or [response]
    codes = {response["Error"]["Code"], *(reason.get("Code") for reason in reasons)}
    return reasons[0] if codes & _REFUSED else None


def place_of(delta: Delta, shard: str) -> Place:
    return _place(typed_key(Update(delta.layout, delta.group, {}, shard).key))


def _place(key: Mapping[str, Any]) -> Place:
    return key["pk"]["S"], key["sk"]["S"]


def _seconds(value: Mapping[str, Any]) -> int:
    return math.ceil(float(value["N"]) - EPOCH)


def record(**fields: object) -> str:
    return "[" + ", ".join(f"{name} |-> {value}" for name, value in fields.items()) + "]"


def braced(members: Iterable[object]) -> str:
    return "{" + ", ".join(map(str, members)) + "}"
