"""Requests that post events: one JSON object, or an array of up to 500; validated, then packed into queue messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from dynamodb_counters._declarations import Event
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._http.gateway_requests import parse_body, refusal
from dynamodb_counters._http.lossless_json import write_json
from dynamodb_counters._http.problems import ProblemError, bad_request
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.event_times import event_seconds
from dynamodb_counters._items.table_schema import PK, SK
from dynamodb_counters._writes.conflicts import differing, listed
from dynamodb_counters._writes.event_items import typed_item
from dynamodb_counters.errors import InvalidArgumentError, MalformedImageError

if TYPE_CHECKING:
    # The queue's consumer needs no schema: importing fastjsonschema would slow its cold start.
    from dynamodb_counters._http.json_schema import SchemaCheck

MAX_EVENTS: Final = 500
# Below the 262,144 bytes that every SQS queue takes.
MAX_MESSAGE_BYTES: Final = 200_000
_MAX_ERRORS: Final = 20
_MAX_REASON: Final = 500


def parse_events(text: str) -> list[Any]:
    """Return the unvalidated events of a request body or a queue message."""
    document = parse_body(text)
    return document if isinstance(document, list) else [document]


@dataclass(frozen=True)
class EventCheck:
    """Checks that decide whether an event is taken: key and values, the schema, the declarations that count it."""

    event: Event
    schema: SchemaCheck | None = None
    admission: Plan | None = None

    def texts(
        self, events: Sequence[object], bound: Mapping[str, str], now: float, *, singly: bool = False
    ) -> tuple[list[str], ProblemError | None]:
        """The events to take, as JSON, and the problem with the others: unless `singly`, all or none are taken."""
        # An `InvalidArgumentError` stands for an event that could not be read; `bound` is what the claims decide.
        if not events and not singly:
            raise bad_request("the array contains no events")
        if len(events) > MAX_EVENTS:
            raise ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"{len(events)} events; limit: {MAX_EVENTS}")
        left, texts = dict(enumerate(events)), dict[int, str]()
        faults, refused = dict[str, HTTPStatus](), dict[int, str]()
        for status, fault, reasons in self._judged(left, texts, bound, now):
            if found := {index: reason for index, reason in reasons.items() if reason is not None}:
                faults[fault] = status
                refused |= found
                for index in found if singly else [*left]:
                    del left[index]
        taken = [texts[index] for index in left]
        if not refused:
            return taken, None
        others = "the others were accepted" if taken else "none was accepted"
        detail = f"{len(refused)} of {len(events)} events {' or '.join(faults)}; {others}"
        errors = [{"index": index, "detail": _cut(refused[index])} for index in sorted(refused)]
        # Where others are taken, the sender must know of each.
        return taken, ProblemError(next(iter(faults.values())), detail, errors if singly else errors[:_MAX_ERRORS])

    def _judged(
        self, left: Mapping[int, object], texts: dict[int, str], bound: Mapping[str, str], now: float
    ) -> Iterator[tuple[HTTPStatus, str, dict[int, str | None]]]:
        """By fault, why events that are left are refused; `texts` gets the events as JSON."""
        foreign = {index: refusal(values, bound) for index, values in left.items()}
        yield HTTPStatus.FORBIDDEN, "are not the caller's own", foreign
        items = dict[int, Image]()
        reasons = {index: self._reason(index, values, texts, items, now) for index, values in left.items()}
        yield HTTPStatus.BAD_REQUEST, "are invalid", reasons
        conflicts = self._conflicts({index: items[index] for index in left})
        yield HTTPStatus.CONFLICT, "contradict others of the same key", conflicts

    def _conflicts(self, items: Mapping[int, Image]) -> dict[int, str | None]:
        """Why events contradict an earlier one of the request; what the table has of their keys is not known here."""
        first: dict[tuple[str, ...], tuple[int, Image]] = {}
        found: dict[int, str | None] = {}
        for index, item in items.items():
            version = "" if self.event.version is None else str(item[self.event.version])
            place, earlier = first.setdefault((item[PK]["S"], item[SK]["S"], version), (index, item))
            different = differing(self.event, item, earlier)
            found[index] = f"event {place} has the same key and differs in {listed(different)}" if different else None
        return found

    def _reason(
        self, index: int, values: object, texts: dict[int, str], items: dict[int, Image], now: float
    ) -> str | None:
        """Why an event is refused, by the cheapest check first; one that can be stored is added to `items`."""
        if isinstance(values, InvalidArgumentError):
            return str(values)
        if not isinstance(values, Mapping):
            return "expected a JSON object"
        texts[index] = text = write_json(values)
        if len(text) > MAX_MESSAGE_BYTES - 2:
            return f"expected at most {MAX_MESSAGE_BYTES} bytes of JSON"
        try:
            items[index] = item = typed_item(self.event, values)
            if self.event.packed is not None:
                event_seconds(item[self.event.packed.time])
        except (InvalidArgumentError, MalformedImageError) as error:
            return str(error)
        # A schema sees the numbers that JSON Schema knows: 0.1 is its minimum of 0.1, and a multiple of 0.01.
        if self.schema is not None and (violation := self.schema(json.loads(text))) is not None:
            return violation
        return None if self.admission is None else self.admission.refusal(item, now)


def queue_messages(texts: Iterable[str]) -> list[str]:
    """Pack events as JSON, none longer than a message, into JSON arrays; the order stays."""
    messages: list[list[str]] = []
    length = MAX_MESSAGE_BYTES
    for text in texts:
        size = len(text) + 1  # JSON is ASCII here.
        if length + size > MAX_MESSAGE_BYTES:
            messages.append([])
            length = 1
        messages[-1].append(text)
        length += size
    return [f"[{','.join(packed)}]" for packed in messages]


def _cut(reason: str) -> str:
    return reason if len(reason) <= _MAX_REASON else f"{reason[:_MAX_REASON]}…"
