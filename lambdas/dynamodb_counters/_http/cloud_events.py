"""CloudEvents 1.0 over HTTP, in structured, batched and binary mode, as events of a declaration.

https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final
from urllib.parse import unquote

from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.event_attributes import Attribute, attributes_of, canonical_values
from dynamodb_counters._http.event_requests import parse_events
from dynamodb_counters._http.gateway_requests import JSON_TYPES, media_type, parse_body
from dynamodb_counters._http.lossless_json import write_json
from dynamodb_counters._http.problems import bad_request
from dynamodb_counters._writes.event_items import typed_item
from dynamodb_counters.errors import InvalidArgumentError

STRUCTURED: Final = "application/cloudevents+json"
BATCHED: Final = "application/cloudevents-batch+json"

# Characters of a URI reference (RFC 3986); of the forms that ISO 8601 has for a time, RFC 3339 keeps one.
_REFERENCE, _MOMENT = r"^[!#-;=?-Z_a-z~\[\]]+\Z", r"^[0-9]{4}-..-..T..:..:.."
_CONTEXT: Final = attributes_of(
    {
        "specversion": Attribute(str, one_of=["1.0"]),
        "id": Attribute(str, min_length=1),
        "source": Attribute(str, pattern=_REFERENCE),
        "type": Attribute(str, min_length=1),
        "subject": Attribute(str, required=False, min_length=1),
        "time": Attribute(str, required=False, format="date-time", pattern=_MOMENT),
        "dataschema": Attribute(str, required=False, format="uri", pattern=_REFERENCE),
        "datacontenttype": Attribute(str, required=False, pattern=r"(?i)^[^/;\s]+/([^/;\s]+\+)?json\s*(;|\Z)"),
    }
)
_SIGNS: Final = {f"ce-{name}" for name, attribute in _CONTEXT.items() if attribute.required}
_NONCHARACTERS: Final = "".join(chr(plane + last) for plane in range(0, 0x110000, 0x10000) for last in (0xFFFE, 0xFFFF))
_NO_TEXT: Final = re.compile(f"[\0-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef{_NONCHARACTERS}]")
_LITERAL: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,9})|true|false")


def content_types(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Those that a request may have; in binary mode any, for its event may have no data or is refused itself."""
    return (*JSON_TYPES, STRUCTURED, BATCHED, *([media_type(headers)] if _is_binary(headers) else []))


def posted_events(headers: Mapping[str, str], text: str, event: Event) -> list[object]:
    """The events of a request in any mode, unvalidated; an error stands for what is no valid CloudEvent."""
    kind = media_type(headers)
    if kind == STRUCTURED:
        return [_values(parse_body(text), event)]
    if kind == BATCHED:
        envelopes = parse_body(text)
        if not isinstance(envelopes, list):
            raise bad_request(f"invalid body: expected a JSON array of CloudEvents, as of {BATCHED}")
        return [_values(envelope, event) for envelope in envelopes]
    return [_values(_envelope(headers, text), event)] if _is_binary(headers) else parse_events(text)


def _is_binary(headers: Mapping[str, str]) -> bool:
    return not media_type(headers).startswith("application/cloudevents") and not _SIGNS.isdisjoint(headers)


def _envelope(headers: Mapping[str, str], text: str) -> dict[str, Any]:
    if taken := headers.keys() & {"ce-data", "ce-datacontenttype"}:
        raise bad_request(f"invalid header {min(taken)}: expected a body and its Content-Type instead")
    told = {name[3:]: _decoded(name, value) for name, value in headers.items() if name.startswith("ce-")}
    data = {"data": parse_body(text)} if text else {}
    return {**told, "datacontenttype": headers.get("content-type"), **data}


def _decoded(name: str, value: str) -> str:
    quoted = re.fullmatch(r'"((?:[^"\\]|\\.)*)"', value)
    try:
        return unquote(re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else value, errors="strict")
    except UnicodeDecodeError:
        raise bad_request(str(InvalidArgumentError(name, value, "percent-encoded UTF-8"))) from None


def _values(envelope: object, event: Event) -> object:
    """The attributes in `data` and the context attributes that the event names."""
    if not isinstance(envelope, Mapping):
        return envelope
    data, declared = envelope.get("data", {}), event._declared_attributes or {}
    context = {name: value for name, value in envelope.items() if name != "data" and value is not None}
    try:
        _require_valid(context)
        if not isinstance(data, Mapping):
            raise InvalidArgumentError("data", data, "a JSON object")
        names = {*event.fields, event.version, *declared}
        named = {name: value for name, value in context.items() if name in names}
        for name, value in named.items():
            # Headers hold texts only, of numbers too.
            if name in declared and declared[name].type in (int, Decimal, bool) and _LITERAL.fullmatch(str(value)):
                named[name] = json.loads(str(value))
            if name in data and write_json(data[name]) != write_json(named[name]):
                raise InvalidArgumentError(f"data.{name}", data[name], f"the CloudEvent's own {value!r:.80}, or none")
    except InvalidArgumentError as error:
        return error
    return {**data, **named}


def _require_valid(context: Mapping[str, Any]) -> None:
    for name, value in context.items():
        if name == "data_base64":
            raise InvalidArgumentError(name, value, "none: 'data' is a JSON object")
        if re.fullmatch("[a-z0-9]+", name) is None:
            raise InvalidArgumentError(name, value, "names of lower-case letters and digits")
        is_number = isinstance(value, int) and -(2**31) <= value < 2**31  # True is one, too.
        if not is_number and not (isinstance(value, str) and _NO_TEXT.search(value) is None):
            allowed = "true, false, a whole number of 32 bits, or a string of Unicode without control characters"
            raise InvalidArgumentError(name, value, allowed)
    canonical_values(_CONTEXT, typed_item(None, context))
