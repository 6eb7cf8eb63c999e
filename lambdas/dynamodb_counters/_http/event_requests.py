"""Requests that post events: one JSON object, or an array of up to 500; validated, then packed into queue messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from dynamodb_counters._declarations import Event
from dynamodb_counters._fold.admission import Admission
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
    return _as_list(parse_body(text))


@dataclass(frozen=True)
class EventCheck:
    """Checks that decide whether an event is taken: key and values, the schema, the declarations that count it."""

    event: Event
    schema: SchemaCheck | None = None
    admission: Admission | None = None

    def texts(self, text: str, bound: Mapping[str, str], now: float) -> list[str]:
        """Return each event of a request body as JSON, or raise the first twenty reasons against them by index.

        `bound` are the attributes that the caller's claims decide.
        """
        events = parse_events(text)
        if not events:
            raise bad_request("the array contains no events")
        if len(events) > MAX_EVENTS:
            raise ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"{len(events)} events; limit: {MAX_EVENTS}")
        if bound:
            foreign = {index: refusal(values, bound) for index, values in enumerate(events)}
            _require_none(HTTPStatus.FORBIDDEN, "are not the caller's own", foreign)
        texts = [write_json(values) for values in events]
        # A schema sees the numbers that JSON Schema knows: 0.1 is its minimum of 0.1, and a multiple of 0.01.
        plain = [None] * len(events) if self.schema is None else _as_list(json.loads(text))
        items: list[Image] = []
        reasons = {
            index: self._reason(values, len(texts[index]), plain[index], now, items)
            for index, values in enumerate(events)
        }
        _require_none(HTTPStatus.BAD_REQUEST, "are invalid", reasons)
        _require_none(HTTPStatus.CONFLICT, "contradict others of the same key", self._conflicts(items))
        return texts

    def _conflicts(self, items: Iterable[Image]) -> dict[int, str | None]:
        """Why events contradict an earlier one of the request; what the table has of their keys is not known here."""
        first: dict[tuple[str, ...], tuple[int, Image]] = {}
        found: dict[int, str | None] = {}
        for index, item in enumerate(items):
            version = "" if self.event.version is None else str(item[self.event.version])
            place, earlier = first.setdefault((item[PK]["S"], item[SK]["S"], version), (index, item))
            different = differing(self.event, item, earlier)
            found[index] = f"event {place} has the same key and differs in {listed(different)}" if different else None
        return found

    def _reason(self, values: object, size: int, plain: Any, now: float, items: list[Image]) -> str | None:
        """Why an event is refused: what costs least is looked at first, and a schema only at what can be stored.

        Events that can be stored are added to `items`.
        """
        if not isinstance(values, Mapping):
            return "expected a JSON object"
        if size > MAX_MESSAGE_BYTES - 2:
            return f"expected at most {MAX_MESSAGE_BYTES} bytes of JSON"
        try:
            item = typed_item(self.event, values)
            items.append(item)
            if self.event.packed is not None:
                event_seconds(item[self.event.packed.time])
        except (InvalidArgumentError, MalformedImageError) as error:
            return str(error)
        if self.schema is not None and (violation := self.schema(plain)) is not None:
            return violation
        return None if self.admission is None else self.admission.refusal(item, now)


def queue_messages(texts: Iterable[str]) -> list[str]:
    """Pack events as JSON, none longer than a message, into JSON arrays; the order stays.

    >>> queue_messages(['{"url":"/a"}', '{"url":"/b"}'])
    ['[{"url":"/a"},{"url":"/b"}]']
    """
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


def _as_list(document: Any) -> list[Any]:
    return document if isinstance(document, list) else [document]


def _require_none(status: HTTPStatus, what: str, reasons: Mapping[int, str | None]) -> None:
    errors = [{"index": index, "detail": _cut(reason)} for index, reason in reasons.items() if reason is not None]
    if errors:
        detail = f"{len(errors)} of {len(reasons)} events {what}; none was accepted"
        raise ProblemError(status, detail, errors[:_MAX_ERRORS])


def _cut(reason: str) -> str:
    return reason if len(reason) <= _MAX_REASON else f"{reason[:_MAX_REASON]}…"
