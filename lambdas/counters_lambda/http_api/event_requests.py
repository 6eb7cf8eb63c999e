"""Requests that post events: JSON or CloudEvents, one or up to 500; validated, then packed into queue messages."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal

from counters_lambda.http_api.requests import ProblemError, body_text, parse_json, require_own, write_json
from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.event_attributes import Attribute, attributes_of, canonical_values
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._items.conversions import event_seconds
from dynamodb_counters._writes.accept import typed_item
from dynamodb_counters.errors import InvalidArgumentError, MalformedImageError

if TYPE_CHECKING:
    from counters_lambda.http_api.json_schema import SchemaCheck


MAX_EVENTS: Final = 500
# Below the 262,144 bytes that every SQS queue takes.
MAX_MESSAGE_BYTES: Final = 200_000
_MAX_REASON: Final = 500

_ENVELOPE: Final = frozenset(("specversion", "id", "source", "type", "data"))


def parse_events(text: str) -> list[Any]:
    """Return the unvalidated events of a request body or a queue message."""
    document = parse_json(text)
    return document if isinstance(document, list) else [document]


def envelope_problem(event: Event, names: AbstractSet[str]) -> str | None:
    """Refuse a CloudEvent that is not sent as one: defaults would stand for the attributes within its `data`."""
    if names >= _ENVELOPE and not {*event.fields, *(event._declared_attributes or ())} & {"specversion", "data"}:
        return "it is a CloudEvent: expected the Content-Type application/cloudevents+json"
    return None


@dataclass(frozen=True)
class EventCheck:
    """Checks that decide whether an event is taken: key and values, the schema, the declarations that count it."""

    event: Event
    schema: SchemaCheck | None = None
    admission: Plan | None = None
    clock: Callable[[], float] = time.time

    def texts(self, events: Sequence[object], bound: Mapping[str, str], *, is_cloud: bool = False) -> list[str]:
        """Return the events as JSON; raise a problem that names all that are refused, for all or none are taken."""
        if not events:
            raise ProblemError("the array contains no events")
        if len(events) > MAX_EVENTS:
            raise ProblemError(f"{len(events)} events; limit: {MAX_EVENTS}", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        texts, refused = list[str](), dict[int, ProblemError]()
        for index, values in enumerate(events):
            try:
                own = _values(values, self.event) if is_cloud else values
                texts.append(self._checked(own, bound))
            except (ProblemError, InvalidArgumentError, MalformedImageError) as error:
                refused[index] = error if isinstance(error, ProblemError) else ProblemError(str(error))
        if not refused:
            return texts
        detail = f"{len(refused)} of {len(events)} events are refused; none was accepted"
        errors = [{"index": index, "detail": f"{problem!s:.{_MAX_REASON}}"} for index, problem in refused.items()]
        # 403 if any event is another's.
        raise ProblemError(detail, max(problem.status for problem in refused.values()), errors)

    def _checked(self, values: object, bound: Mapping[str, str]) -> str:
        """Return an event as JSON; refuse it by the cheapest check first."""
        require_own(values, bound)
        if not isinstance(values, Mapping):
            raise ProblemError("expected a JSON object")
        text = write_json(values)
        if len(text) > MAX_MESSAGE_BYTES - 2:
            raise ProblemError(f"expected at most {MAX_MESSAGE_BYTES} bytes of JSON")
        if problem := envelope_problem(self.event, values.keys()):
            raise ProblemError(problem)
        item = typed_item(self.event, values)
        if self.event.packed is not None:
            event_seconds(item[self.event.packed.time])
        # A schema sees the numbers that JSON Schema knows: 0.1 is its minimum of 0.1, and a multiple of 0.01.
        if self.schema is not None and (violation := self.schema(json.loads(text))) is not None:
            raise ProblemError(violation)
        if self.admission is not None and (reason := self.admission.refusal(item, self.clock())) is not None:
            raise ProblemError(reason)
        return text


def queue_messages(texts: Iterable[str]) -> list[str]:
    """Pack events as JSON, none longer than a message, into JSON arrays; the order stays."""
    messages, length = [list[str]()], 1
    for text in texts:
        if length + len(text) >= MAX_MESSAGE_BYTES:
            messages.append([])
            length = 1
        messages[-1].append(text)
        length += len(text) + 1  # JSON is ASCII here.
    return [f"[{','.join(packed)}]" for packed in messages]


# https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md
STRUCTURED: Final = "application/cloudevents+json"
BATCHED: Final = "application/cloudevents-batch+json"
# Browsers send beacons, and bodies without an explicit type, as plain text.
CONTENT_TYPES: Final = ("application/json", "text/plain", STRUCTURED, BATCHED)

_REQUIRED: Final = attributes_of(
    {"specversion": Literal["1.0"], **dict.fromkeys(("id", "source", "type"), Attribute(str, min_length=1))}
)


def posted_events(request: Mapping[str, Any], max_bytes: int) -> tuple[list[Any], bool]:
    """The unvalidated events of a request, and whether they are CloudEvents."""
    headers = {name.lower(): value for name, value in request["headers"].items()}
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    is_cloud, binary = kind in (STRUCTURED, BATCHED), [name for name in headers if name.startswith("ce-")]
    if kind not in CONTENT_TYPES:
        detail = f"invalid Content-Type {kind!r:.80}: expected {' or '.join(CONTENT_TYPES)}"
        raise ProblemError(detail, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    if binary and not is_cloud:
        expected = f"a CloudEvent as the body, with the Content-Type {STRUCTURED}"
        detail = f"invalid header {binary[0]:.80}: expected {expected}"
        raise ProblemError(detail, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    return parse_events(body_text(request, max_bytes)), is_cloud


def _values(envelope: object, event: Event) -> object:
    """The attributes in a CloudEvent's `data`, and its context attributes that the event names."""
    if not isinstance(envelope, Mapping):
        return envelope
    data, names = envelope.get("data", {}), {*event.fields, event.version, *(event._declared_attributes or ())}
    context = {name: value for name, value in envelope.items() if name != "data" and value is not None}
    named = {name: value for name, value in context.items() if name in names}
    canonical_values(_REQUIRED, typed_item(None, {name: context[name] for name in _REQUIRED if name in context}))
    if "data_base64" in context:
        raise InvalidArgumentError("data_base64", context["data_base64"], "none: 'data' is a JSON object")
    if not isinstance(data, Mapping):
        raise InvalidArgumentError("data", data, "a JSON object")
    for name in named.keys() & data.keys():
        if write_json(data[name]) != write_json(named[name]):
            allowed = f"the CloudEvent's own {named[name]!r:.80}, or none"
            raise InvalidArgumentError(f"data.{name}", data[name], allowed)
    return {**data, **named}
