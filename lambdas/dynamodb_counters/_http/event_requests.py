"""Requests that post events: one JSON object, or an array of up to 500; validated, then packed into queue messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from dynamodb_counters._declarations import Event
from dynamodb_counters._http.lossless_json import write_json
from dynamodb_counters._http.problems import ProblemError, bad_request
from dynamodb_counters._http.request_body import parse_body
from dynamodb_counters._items.event_times import event_seconds
from dynamodb_counters._writes.event_items import typed_item
from dynamodb_counters.errors import InvalidArgumentError, MalformedImageError

if TYPE_CHECKING:
    # The queue's consumer needs no schema: importing fastjsonschema would slow its cold start.
    from dynamodb_counters._http.json_schema import SchemaCheck

MAX_EVENTS: Final = 500
# Below the 262,144 bytes that every SQS queue takes.
MAX_MESSAGE_BYTES: Final = 200_000
_MAX_ERRORS: Final = 20


def parse_events(text: str) -> list[Any]:
    """Return the unvalidated events of a request body or a queue message."""
    document = parse_body(text)
    return document if isinstance(document, list) else [document]


def validated_events(event: Event, text: str, check: SchemaCheck) -> list[Mapping[str, Any]]:
    """Return all events of a request body, or raise the first twenty reasons against them by index."""
    events = parse_events(text)
    if not events:
        raise bad_request("the array contains no events")
    if len(events) > MAX_EVENTS:
        raise ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"{len(events)} events; limit: {MAX_EVENTS}")
    errors = [
        {"index": index, "detail": reason}
        for index, values in enumerate(events)
        if (reason := _rejection_reason(event, values, check)) is not None
    ]
    if errors:
        detail = f"{len(errors)} of {len(events)} events are invalid; none was accepted"
        raise ProblemError(HTTPStatus.BAD_REQUEST, detail, errors[:_MAX_ERRORS])
    return events


def queue_messages(events: Sequence[Mapping[str, Any]]) -> list[str]:
    """Pack events, none longer than a message, into JSON arrays; the order stays.

    >>> queue_messages([{"url": "/a"}, {"url": "/b"}])
    ['[{"url":"/a"},{"url":"/b"}]']
    """
    messages: list[list[str]] = []
    length = MAX_MESSAGE_BYTES
    for values in events:
        text = write_json(values)
        size = len(text.encode()) + 1
        if length + size > MAX_MESSAGE_BYTES:
            messages.append([])
            length = 1
        messages[-1].append(text)
        length += size
    return [f"[{','.join(texts)}]" for texts in messages]


def _rejection_reason(event: Event, values: object, check: SchemaCheck) -> str | None:
    if not isinstance(values, Mapping):
        return "expected a JSON object"
    try:
        item = typed_item(event, values)
        if event.packed is not None:
            event_seconds(item[event.packed.time])
    except (InvalidArgumentError, MalformedImageError) as error:
        return str(error)
    if len(write_json(values).encode()) > MAX_MESSAGE_BYTES - 2:
        return f"expected at most {MAX_MESSAGE_BYTES} bytes of JSON"
    return check(values)
