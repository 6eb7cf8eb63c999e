"""The OpenAPI document of a counter API, with a path per resource of its declarations."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from dynamodb_counters._declarations import Aggregate, Average, Declaration, Event, Histogram, Measure, Window
from dynamodb_counters._declarations.event_attributes import json_schema
from dynamodb_counters._declarations.kinds import Read, group_fields, longest_of, read_by
from dynamodb_counters._declarations.quotas import MOST_CALLS, Quota
from dynamodb_counters._http.parameters import (
    DEFAULT_COUNT,
    DEFAULT_LAST,
    DEFAULT_LIMIT,
    DEFAULT_STEP,
    MAX_COUNT,
    MAX_DURATION,
    MAX_LIMIT,
    MAX_STEPS,
    OPTIONS,
    ORDERS,
    SHARES,
    SPAN,
    leaderboard_fields,
)
from dynamodb_counters._http.problems import PROBLEM_JSON
from dynamodb_counters._http.quota_resources import LEASE
from dynamodb_counters._timeline.calendars import NAMED_PERIODS, PERIODS

Json: TypeAlias = dict[str, Any]

VERSION: Final = "1"

_TIME: Final = {"type": "string", "format": "date-time"}
_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "number"}
_NEXT: Final = {**_TEXT, "nullable": True}
_TEXTS: Final = {"type": "object", "additionalProperties": _TEXT}
_DURATION: Final = {"type": "string", "pattern": "^[1-9][0-9]{0,6}[mhd]$"}
_FROM_ONE: Final = {"type": "integer", "minimum": 1}
_OPTIONS: Final[dict[str, tuple[str, Json]]] = {
    "consistent": (
        "Strongly consistent read: sees every completed write, at twice the read units",
        {"type": "string", "enum": ["true", "false"], "default": "false"},
    ),
    "count": (
        "Maximum number of groups, values or closed periods",
        {**_FROM_ONE, "maximum": MAX_COUNT, "default": DEFAULT_COUNT},
    ),
    "start": ("First moment of the span, with a UTC offset", _TIME),
    "end": ("First moment after the span, with a UTC offset", _TIME),
    "period": ("A billing period instead of 'last'", {"type": "string", "enum": list(NAMED_PERIODS)}),
    "of": ("Which period: 2026-10-03, 2026-W40, 2026-10 or 2026; default: the current one", _TEXT),
    "tz": ("Time zone of the calendar, such as Europe/Berlin", {**_TEXT, "default": "UTC"}),
    "anchor": (
        "Day on which months begin; the last day of a shorter month",
        {**_FROM_ONE, "maximum": 31, "default": 1},
    ),
    "limit": (
        "Maximum number of events or groups; a page may have fewer, even none, before the last",
        {**_FROM_ONE, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
    ),
    "next": ("The 'next' of the page before", _TEXT),
    "last": ("Length of the trailing window in minutes, hours or days, at most {longest}", _DURATION),
    "step": (
        f"Length of a step, or hour, day, week, month, year; at most {MAX_STEPS} steps, all whole",
        {"type": "string", "pattern": f"{_DURATION['pattern']}|^({'|'.join(PERIODS)})$"},
    ),
    "p": ("Shares of the percentiles: 0.5 is the median, 1 the maximum", {**_TEXT, "pattern": f"^{SHARES}$"}),
    "order": ("From which end", {"type": "string", "enum": list(ORDERS)}),
    "as_of": ("End of the window, with a UTC offset, in the years 1970 to 9998; default: now", _TIME),
}
"""The description and the schema of each parameter that is no field."""

_STANDING: Final = {
    "complete": {"type": "boolean", "description": "Whether all there is has been counted"},
    "as_declared": {"type": "boolean", "description": "False while counts follow an older definition"},
}
_COUNT: Final = {"count": _NUMBER, "start": _TIME, "end": _TIME, **_STANDING}
_STATEMENT: Final = {
    "adjustment": {**_NUMBER, "description": "Changes of the closed periods before this one"},
    "total": _NUMBER,
    "closed_at": {**_TIME, "nullable": True},
}


def openapi(
    declarations: Iterable[Declaration | Event],
    tenant: Mapping[str, str] = MappingProxyType({}),
    quotas: Iterable[Quota] = (),
) -> Json:
    """Describe an API in OpenAPI 3.0; the parameters of `tenant` are bound to claims of the caller.

    >>> sorted(openapi([])["paths"])
    ['/openapi.json']
    """
    paths: Json = {"/openapi.json": _get("This OpenAPI document", "openapi", (), (), {"type": "object"})}
    for quota in quotas:
        paths |= _quota_paths(quota)
    counted = list[Declaration]()
    for declared in sorted(declarations, key=lambda declared: declared.name):
        if isinstance(declared, Event):
            paths |= _event_paths(declared)
        else:
            paths |= _aggregate_paths(declared) if isinstance(declared, Aggregate) else _window_paths(declared)
            counted.append(declared)
    if counted:
        paths["/v1/batch"] = _post_batch(counted)
    if tenant:
        for path in paths.values():
            for operation in path.values():
                _bind(operation, tenant)
    schemas = {
        "Problem": _object({"type": _TEXT, "title": _TEXT, "status": {"type": "integer"}, "detail": _TEXT}),
        "Group": _object({"aggregate": _TEXT, "values": _TEXTS, "measures": {"type": "object"}, **_STANDING}),
        "Span": _object({"window": _TEXT, "values": _TEXTS, **_COUNT}, _STATEMENT),
    }
    info = {"title": "Counters", "version": VERSION}
    return {"openapi": "3.0.3", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _aggregate_paths(aggregate: Aggregate) -> Json:
    if (read := read_by(aggregate)) != "get":
        return _own_paths(aggregate, read)
    name, base = aggregate.name, f"/v1/aggregates/{aggregate.name}"
    fields, values = aggregate.fields, _values(aggregate.fields)
    measures = _object({measure: _measure(kind) for measure, kind in aggregate.measures.items()})
    group = _object({"aggregate": _TEXT, "values": values, "measures": measures, **_STANDING})
    paths = {base: _get(f"One group of {name}", f"get_{name}", fields, OPTIONS["group"], group)}
    if aggregate.write_shards == 1:
        summary, partition = f"All groups of {name} in one partition, page by page", aggregate._listed_by
        groups = _object({"groups": _array(group), "next": _NEXT})
        paths[f"{base}/groups"] = _get(summary, f"groups_{name}", partition, OPTIONS["groups"], groups)
    if aggregate.ranking is not None:
        entries = _array(_object({"values": values, "score": _NUMBER, **_STANDING}))
        ranked = _object({"aggregate": _TEXT, "ranked": entries})
        summary = f"Top groups of {name}"
        paths[f"{base}/top"] = _get(summary, f"top_{name}", leaderboard_fields(aggregate), OPTIONS["top"], ranked)
    return paths


def _window_paths(window: Window) -> Json:
    name, base, fields = window.name, f"/v1/windows/{window.name}", window.fields
    identity = {"window": _TEXT, "values": _values(fields)}
    count = _object({**identity, **_COUNT}, _STATEMENT)
    closed = _object({**identity, "closed": _array(_object({**_COUNT, **_STATEMENT}))})
    series = _object({**identity, "series": _array(_object(_COUNT))})
    paths = {
        base: _get(f"Count of {name} in a span or period", f"window_{name}", fields, OPTIONS["window"], count),
        f"{base}/series": _get(f"Counts of {name} by step", f"series_{name}", fields, OPTIONS["series"], series),
    }
    if window.retention is None:
        summary = f"Last closed periods of {name}"
        paths[f"{base}/closed"] = _get(summary, f"closed_{name}", fields, OPTIONS["closed"], closed)
    return _bounded(paths, window.longest)


def _own_paths(aggregate: Aggregate, read: Read) -> Json:
    """The path of an aggregate that only a read of its own understands."""
    name, fields, options = aggregate.name, group_fields(aggregate), OPTIONS[read]
    values = _values(fields)
    if read == "active":
        answer = _object({"active": _TEXT, "values": values, **_COUNT})
        paths = {f"/v1/active/{name}": _get(f"Active members of {name}", f"active_{name}", fields, options, answer)}
    elif read == "extremes":
        value = {"value": {"anyOf": [_NUMBER, _TIME]}, "items": _NUMBER, "shown": _TEXTS, **_STANDING}
        ends = dict.fromkeys(ORDERS, _array(_object(value)))
        answer = _object({"extremes": _TEXT, "values": values}, ends)
        paths = {f"/v1/extremes/{name}": _get(f"Extremes of {name}", f"extremes_{name}", fields, options, answer)}
    else:
        ends = dict.fromkeys(SPAN, _TIME) if aggregate._shelved else {}
        percentiles = {"type": "object", "additionalProperties": {**_NUMBER, "nullable": True}}
        told = {"count": _NUMBER, "percentiles": percentiles, **ends, **_STANDING}
        answer = _object({"distribution": _TEXT, "values": values, **told})
        path = _get(f"Percentiles of {name}", f"distribution_{name}", fields, options, answer)
        paths = {f"/v1/distributions/{name}": path}
    return _bounded(paths, longest_of(aggregate) if aggregate._shelved else None)


def _bounded(paths: Json, longest: timedelta | None) -> Json:
    """The paths with their longest span, and defaults."""
    longest = min(longest or MAX_DURATION, MAX_DURATION)
    defaults = {"last": min(DEFAULT_LAST, longest), "step": min(DEFAULT_STEP, longest)}
    for operation in (path["get"] for path in paths.values()):
        for parameter in operation["parameters"]:
            if (default := defaults.get(parameter["name"])) is not None:
                parameter["description"] = parameter["description"].format(longest=_text(longest))
                schema = parameter["schema"]
                parameter["schema"] = {**schema, "default": _text(default), "example": _text(default)}
    return paths


def _text(duration: timedelta) -> str:
    minutes = max(1, duration // timedelta(minutes=1))
    return next(f"{minutes // unit}{name}" for unit, name in ((1440, "d"), (60, "h"), (1, "m")) if not minutes % unit)


def _event_paths(event: Event) -> Json:
    name = event.name
    if event._declared_attributes is not None:
        values = json_schema(event._declared_attributes, openapi=True)
    else:
        # A key's fields are strings or numbers.
        values = _object({field: {} for field in event.fields})
    page = _object({"event": _TEXT, "events": _array(values), "next": _NEXT})
    required = event._pk_template.fields if event.packed is None else ()
    path = _get(f"Events {name}, page by page", f"events_{name}", required, OPTIONS["events"], page)
    if event.packed is not None:
        span = ({**option, "required": True} for option in _options(SPAN))
        path["get"]["parameters"] += [*span, *_fields(event.fields, event.packed._tenants)]
    return {f"/v1/events/{name}": path}


def _quota_paths(quota: Quota) -> Json:
    name, base, values = quota.name, f"/v1/quotas/{quota.name}", _values(quota.by)
    number = {"type": "integer", "minimum": 0}
    calls, lease = {**number, "minimum": 1, "maximum": MOST_CALLS}, {**_TEXT, "pattern": f"^{LEASE}$"}
    state = {"quota": _TEXT, "values": values, "limit": number, "reserved": number, "left": number, "resets_at": _TIME}
    granted, given_back = {"lease": _TEXT, "granted": {"type": "boolean"}}, {"lease": _TEXT, "given_back": number}
    group = {"values": {**values, "additionalProperties": False}} if quota.by else {}
    take = {"n": {**calls, "default": 1}, "id": {**lease, "description": "The same id takes once in a period"}}
    give_back = {"n": {**calls, "description": "Default: all that was taken"}}
    path = _get(f"State of the quota {name}", f"quota_{name}", quota.by, (), _object(state))
    del path["get"]["responses"]["304"]
    taken, returned = _object({**state, **granted}), _object({**state, **given_back})
    taking, returning = _body(group, take), _body({**group, "lease": lease}, give_back)
    return {
        base: path,
        f"{base}/take": _post(f"Take calls from {name}", f"take_{name}", taking, taken, "409"),
        f"{base}/give-back": _post(f"Give calls back to {name}", f"give_back_{name}", returning, returned, "409"),
    }


def _body(required: Json, optional: Json) -> Json:
    return {**_object(required, optional), "additionalProperties": False}


def _post(summary: str, operation_id: str, body: Json, schema: Json, *more_errors: str) -> Json:
    return {
        "post": {
            "summary": summary,
            "operationId": operation_id,
            "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
            "responses": _responses(schema, "404", *more_errors, "413", "415"),
        }
    }


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
        return {"type": "object", "additionalProperties": _NUMBER}
    return {**_NUMBER, "nullable": True} if isinstance(measure, Average) else _NUMBER


def _object(members: Mapping[str, Any], optional: Mapping[str, Any] = MappingProxyType({})) -> Json:
    # OpenAPI forbids an empty "required".
    required = {"required": list(members)} if members else {}
    properties = {**members, **optional}
    return {"type": "object", **required, **({"properties": properties} if properties else {})}


def _array(items: Json) -> Json:
    return {"type": "array", "items": items}


def _get(summary: str, operation_id: str, required: Collection[str], optional: Iterable[str], schema: Json) -> Json:
    responses = _responses(schema)
    responses["304"] = {"description": "Not modified: the ETag matches If-None-Match"}
    return {
        "get": {
            "summary": summary,
            "operationId": operation_id,
            "parameters": [*_fields(required, required), *_options(optional)],
            "responses": responses,
        }
    }


def _fields(names: Iterable[str], required: Container[str]) -> list[Json]:
    return [
        {"name": name, "in": "query", **({"required": True} if name in required else {}), "schema": _TEXT}
        for name in names
    ]


def _options(names: Iterable[str]) -> list[Json]:
    described = [(name, *_OPTIONS[name]) for name in names]
    return [{"name": name, "in": "query", "description": text, "schema": schema} for name, text, schema in described]


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
            body["properties"][kind] = {"type": "array", "minItems": 1, "maxItems": MAX_COUNT, "items": entry}
            answer["properties"][kind] = _array({"$ref": f"#/components/schemas/{schema}"})
    return _post("Many groups of any aggregates, and spans of any windows", "batch", body, answer)


def _responses(schema: Json, *more_errors: str) -> Json:
    success = {"description": "Success", "content": {"application/json": {"schema": schema}}}
    content = {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    problem = {"description": "Problem details (RFC 9457)", "content": content}
    return {"200": success, **dict.fromkeys(("400", *more_errors, "503"), problem)}
