"""The OpenAPI document of a counter API, with a path per resource of its declarations."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from dynamodb_counters._declarations import Aggregate, Average, Declaration, Event, Histogram, Measure, Window
from dynamodb_counters._declarations.composites import group_fields, longest_of, read_by
from dynamodb_counters._declarations.event_attributes import Attribute, json_schema
from dynamodb_counters._http import parameters as limits
from dynamodb_counters._http.parameters import OPTIONS, ORDERS, PATHS, SPAN, leaderboard_fields
from dynamodb_counters._http.requests import PROBLEM_JSON
from dynamodb_counters._timeline.tiers import PERIODS

Json: TypeAlias = dict[str, Any]

_TIME: Final = {"type": "string", "format": "date-time"}
_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "number"}
_NEXT: Final = {**_TEXT, "nullable": True}
_TEXTS: Final = {"type": "object", "additionalProperties": _TEXT}
_DURATION: Final = {"type": "string", "pattern": "^[1-9][0-9]{0,6}[mhd]$"}
_INTEGERS: Final[dict[str, Json]] = {
    name: {"type": "integer", "minimum": 1, "maximum": most, "default": default}
    for name, (default, most) in limits.INTEGERS.items()
}
_OPTIONS: Final[dict[str, tuple[str, Json]]] = {
    "consistent": (
        "Strongly consistent read: sees every completed write, at twice the read units",
        {"type": "string", "enum": ["true", "false"], "default": "false"},
    ),
    "count": ("Maximum number of groups or values", _INTEGERS["count"]),
    "start": ("First moment of the span, with a UTC offset", _TIME),
    "end": ("First moment after the span, with a UTC offset", _TIME),
    "tz": ("Time zone of the calendar, such as Europe/Berlin", {**_TEXT, "default": "UTC"}),
    "anchor": ("Day on which months begin; the last day of a shorter month", _INTEGERS["anchor"]),
    "limit": (
        "Maximum number of events or groups; a page may have fewer, even none, before the last",
        _INTEGERS["limit"],
    ),
    "next": ("The 'next' of the page before", _TEXT),
    "last": ("Length of the trailing window in minutes, hours or days, at most {longest}", _DURATION),
    "step": (
        f"Length of a step, or hour, day, week, month, year; at most {limits.MAX_STEPS} steps, all whole",
        {"type": "string", "pattern": f"{_DURATION['pattern']}|^({'|'.join(PERIODS)})$"},
    ),
    "p": ("Shares of the percentiles: 0.5 is the median, 1 the maximum", {**_TEXT, "pattern": f"^{limits.SHARES}$"}),
    "order": ("From which end", {"type": "string", "enum": list(ORDERS)}),
    "as_of": ("End of the window, with a UTC offset, in the years 1970 to 9998; default: now", _TIME),
}
"""The description and the schema of each parameter that is no field."""

_STANDING: Final = {
    "complete": {"type": "boolean", "description": "Whether all there is has been counted"},
}
_COUNT: Final = {"count": _NUMBER, "start": _TIME, "end": _TIME, **_STANDING}

_NUMBERS: Final = {"type": "object", "additionalProperties": _NUMBER}


def openapi(
    declarations: Iterable[Declaration | Event],
    tenant: Mapping[str, str] = MappingProxyType({}),
) -> Json:
    """Describe an API in OpenAPI 3.0; the parameters of `tenant` are bound to claims of the caller."""
    paths: Json = {"/openapi.json": _read("This OpenAPI document", "openapi", [], {"type": "object"})}
    counted = list[Declaration]()
    for declared in sorted(declarations, key=lambda declared: declared.name):
        if isinstance(declared, Event):
            paths |= _event_paths(declared)
            continue
        counted.append(declared)
        paths |= _aggregate_paths(declared) if isinstance(declared, Aggregate) else _window_paths(declared)
    if counted:
        paths["/v1/batch"] = _post_batch(counted)
    if tenant:
        for path in paths.values():
            for operation in path.values():
                _bind(operation, tenant)
    schemas = {
        "Problem": _object({"type": _TEXT, "title": _TEXT, "status": {"type": "integer"}, "detail": _TEXT}),
        "Group": _object({"aggregate": _TEXT, "values": _TEXTS, "measures": {"type": "object"}, **_STANDING}),
        "Span": _object({"window": _TEXT, "values": _TEXTS, **_COUNT}),
    }
    info = {"title": "Counters", "version": "1"}
    return {"openapi": "3.0.3", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _aggregate_paths(aggregate: Aggregate) -> Json:
    read, fields, values = read_by(aggregate), group_fields(aggregate), _values(group_fields(aggregate))
    if read == "active":
        return _get("active", aggregate, fields, _object({"active": _TEXT, "values": values, **_COUNT}))
    if read == "extremes":
        value = {"value": {"anyOf": [_NUMBER, _TIME]}, "items": _NUMBER, "shown": _TEXTS, **_STANDING}
        ends = dict.fromkeys(ORDERS, _array(_object(value)))
        return _get("extremes", aggregate, fields, _object({"extremes": _TEXT, "values": values}, ends))
    if read != "get":
        percentiles = {"type": "object", "additionalProperties": {**_NUMBER, "nullable": True}}
        ends = dict.fromkeys(SPAN if aggregate._shelved else (), _TIME)
        told = {"count": _NUMBER, "percentiles": percentiles, **ends, **_STANDING}
        answer = _object({"distribution": _TEXT, "values": values, **told})
        return _get(read, aggregate, fields, answer)
    measures = _object({measure: _measure(kind) for measure, kind in aggregate.measures.items()})
    group = _object({"aggregate": _TEXT, "values": values, "measures": measures, **_STANDING})
    paths = _get("get", aggregate, fields, group)
    if aggregate.write_shards == 1:
        page = _object({"groups": _array(group), "next": _NEXT})
        paths |= _get("groups", aggregate, aggregate._listed_by, page)
    if aggregate.ranking is not None:
        entries = _array(_object({"values": values, "score": _NUMBER, **_STANDING}))
        ranked = _object({"aggregate": _TEXT, "ranked": entries})
        paths |= _get("top", aggregate, leaderboard_fields(aggregate), ranked)
    return paths


def _window_paths(window: Window) -> Json:
    identity, fields = {"window": _TEXT, "values": _values(window.fields)}, window.fields
    paths = _get("window", window, fields, _object({**identity, **_COUNT}))
    return paths | _get("series", window, fields, _object({**identity, "series": _array(_object(_COUNT))}))


def _text(duration: timedelta) -> str:
    minutes = max(1, duration // timedelta(minutes=1))
    return next(f"{minutes // unit}{name}" for unit, name in ((1440, "d"), (60, "h"), (1, "m")) if not minutes % unit)


def _event_paths(event: Event) -> Json:
    # A key's fields are strings or numbers.
    key, known = dict.fromkeys(event.fields, Attribute(object)), event._declared_attributes
    values = json_schema(key if known is None else known, openapi=True)
    page = _object({"event": _TEXT, "events": _array(values), "next": _NEXT})
    paths = _get("events", event, event._pk_template.fields if event.packed is None else (), page)
    if event.packed is not None:
        [path] = paths.values()
        span = ({**option, "required": True} for option in _options(SPAN))
        path["get"]["parameters"] += [*span, *_fields(event.fields, event.packed._tenants)]
    return paths


def _body(required: Json, optional: Json) -> Json:
    return {**_object(required, optional), "additionalProperties": False}


def _post(summary: str, operation_id: str, body: Json, schema: Json, *more_errors: str) -> Json:
    request = {"required": True, "content": {"application/json": {"schema": body}}}
    responses = _responses(schema, "404", *more_errors, "413", "415")
    return {"post": {"summary": summary, "operationId": operation_id, "requestBody": request, "responses": responses}}


def _bind(operation: Json, tenant: Mapping[str, str]) -> None:
    """Say which parameters the caller's claims decide, and what another value gets."""
    bound = [parameter for parameter in operation.get("parameters", ()) if parameter["name"] in tenant]
    for parameter in bound:
        claim = tenant[parameter["name"]]
        parameter["required"] = False
        parameter["description"] = f"Bound to the caller's {claim!r}: left out, or the same; 403 otherwise"
    if bound or "requestBody" in operation:
        operation["responses"]["403"] = operation["responses"]["400"]


def _values(fields: Iterable[str]) -> Json:
    return _object(dict.fromkeys(fields, _TEXT))


def _measure(measure: Measure) -> Json:
    if isinstance(measure, Histogram):
        return _NUMBERS
    return {**_NUMBER, "nullable": True} if isinstance(measure, Average) else _NUMBER


def _object(members: Mapping[str, Any], optional: Mapping[str, Any] = MappingProxyType({})) -> Json:
    # OpenAPI forbids an empty "required".
    required = {"required": list(members)} if members else {}
    properties = {**members, **optional}
    return {"type": "object", **required, **({"properties": properties} if properties else {})}


def _array(items: Json) -> Json:
    return {"type": "array", "items": items}


def _get(resource: str, declared: Declaration | Event, required: Collection[str], answer: Json) -> Json:
    """The path of a resource of a declaration."""
    (path, summary), name = PATHS[resource], declared.name
    timed = None if isinstance(declared, Event) or "last" not in OPTIONS[resource] else declared
    asked = [*_fields(required, required), *_options(OPTIONS[resource], timed)]
    return {f"/v1/{path.format(name)}": _read(summary.format(name), f"{resource}_{name}", asked, answer)}


def _read(summary: str, operation_id: str, asked: list[Json], answer: Json) -> Json:
    responses = {**_responses(answer), "304": {"description": "Not modified: the ETag matches If-None-Match"}}
    return {"get": {"summary": summary, "operationId": operation_id, "parameters": asked, "responses": responses}}


def _fields(names: Iterable[str], required: Container[str]) -> list[Json]:
    return [{"name": name, "in": "query", "required": name in required, "schema": _TEXT} for name in names]


def _options(names: Iterable[str], timed: Declaration | None = None) -> list[Json]:
    """Parameters that are no fields; those of a span with the longest one, and their defaults."""
    longest = min((timed and longest_of(timed)) or limits.MAX_DURATION, limits.MAX_DURATION)
    last, found = limits.default_last(1 if timed is None else timed._unit, longest), []
    defaults = {"last": last, "step": min(limits.DEFAULT_STEP, longest)}
    for name in names:
        text, schema = _OPTIONS[name]
        if name in defaults:
            default = _text(defaults[name])
            text, schema = text.format(longest=_text(longest)), {**schema, "default": default, "example": default}
        found.append({"name": name, "in": "query", "description": text, "schema": schema})
    return found


def _post_batch(counted: list[Declaration]) -> Json:
    kinds: dict[str, tuple[type[Declaration], Json, str]] = {
        "groups": (Aggregate, {}, "Group"),
        "windows": (Window, {name: _OPTIONS[name][1] for name in OPTIONS["batch"]}, "Span"),
    }
    body: Json = {"type": "object", "minProperties": 1, "additionalProperties": False, "properties": {}}
    answer: Json = {"type": "object", "properties": {}}
    for kind, (declarable, options, schema) in kinds.items():
        names = [one.name for one in counted if isinstance(one, declarable) and group_fields(one) == one.fields]
        if names:
            member = declarable.__name__.lower()
            entry = _body({member: {"type": "string", "enum": names}, "values": _TEXTS}, options)
            body["properties"][kind] = {**_array(entry), "minItems": 1, "maxItems": limits.MAX_COUNT}
            answer["properties"][kind] = _array({"$ref": f"#/components/schemas/{schema}"})
    return _post("Many groups of any aggregates, and spans of any windows", "batch", body, answer)


def _responses(schema: Json, *more_errors: str) -> Json:
    success = {"description": "Success", "content": {"application/json": {"schema": schema}}}
    content = {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    problem = {"description": "Problem details (RFC 9457)", "content": content}
    return {"200": success, **dict.fromkeys(("400", *more_errors, "503"), problem)}
