"""The OpenAPI document of a counter API, with a path per resource of its declarations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final

from dynamodb_counters._declarations import Aggregate, Average, Declaration, Event, Histogram, Measure, Window
from dynamodb_counters._declarations.event_attributes import json_schema
from dynamodb_counters._declarations.quotas import MOST_CALLS, Quota
from dynamodb_counters._http.parameters import (
    BATCH_OPTIONS,
    CLOSED_OPTIONS,
    DEFAULT_COUNT,
    DEFAULT_LAST,
    DEFAULT_LIMIT,
    DEFAULT_STEP,
    EVENT_OPTIONS,
    GROUP_OPTIONS,
    GROUPS_OPTIONS,
    MAX_COUNT,
    MAX_DURATION,
    MAX_LIMIT,
    MAX_STEPS,
    SERIES_OPTIONS,
    SPAN,
    TOP_OPTIONS,
    WINDOW_OPTIONS,
    leaderboard_fields,
)
from dynamodb_counters._http.problems import PROBLEM_JSON
from dynamodb_counters._http.quota_resources import LEASE
from dynamodb_counters._timeline.calendars import NAMED_PERIODS, PERIODS

VERSION: Final = "1"

_TIME: Final = {"type": "string", "format": "date-time"}
_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "number"}
_NEXT: Final = {**_TEXT, "nullable": True}
_TEXTS: Final = {"type": "object", "additionalProperties": _TEXT}
_DURATION: Final = {"type": "string", "pattern": "^[1-9][0-9]{0,6}[mhd]$"}
_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "consistent": {
        "description": "Strongly consistent read: sees every completed write, at twice the read units",
        "schema": {"type": "string", "enum": ["true", "false"], "default": "false"},
    },
    "count": {
        "description": "Maximum number of groups, or of closed periods",
        "schema": {"type": "integer", "minimum": 1, "maximum": MAX_COUNT, "default": DEFAULT_COUNT},
    },
    "start": {"description": "First moment of the span, with a UTC offset", "schema": _TIME},
    "end": {"description": "First moment after the span, with a UTC offset", "schema": _TIME},
    "period": {
        "description": "A billing period instead of 'last'",
        "schema": {"type": "string", "enum": list(NAMED_PERIODS)},
    },
    "of": {
        "description": "Which period: 2026-10-03, 2026-W40, 2026-10 or 2026; default: the current one",
        "schema": _TEXT,
    },
    "tz": {"description": "Time zone of the calendar, such as Europe/Berlin", "schema": {**_TEXT, "default": "UTC"}},
    "anchor": {
        "description": "Day on which months begin; the last day of a shorter month",
        "schema": {"type": "integer", "minimum": 1, "maximum": 31, "default": 1},
    },
    "limit": {
        "description": "Maximum number of events or groups; a page may have fewer, even none, before the last",
        "schema": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
    },
    "next": {"description": "The 'next' of the page before", "schema": _TEXT},
    "last": {
        "description": "Length of the trailing window in minutes, hours or days, at most {longest}",
        "schema": _DURATION,
    },
    "step": {
        "description": f"Length of a step, or hour, day, week, month, year; at most {MAX_STEPS} steps, all whole",
        "schema": {"type": "string", "pattern": f"{_DURATION['pattern']}|^({'|'.join(PERIODS)})$"},
    },
    "as_of": {
        "description": "End of the window, with a UTC offset, in the years 1970 to 9998; default: now",
        "schema": _TIME,
    },
}
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
_PROBLEM: Final = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {"type": _TEXT, "title": _TEXT, "status": {"type": "integer"}, "detail": _TEXT},
}


def openapi(
    declarations: Iterable[Declaration | Event],
    tenant: Mapping[str, str] = MappingProxyType({}),
    quotas: Iterable[Quota] = (),
) -> dict[str, Any]:
    """Describe an API in OpenAPI 3.0; the parameters of `tenant` are bound to claims of the caller.

    >>> sorted(openapi([])["paths"])
    ['/openapi.json']
    """
    paths: dict[str, Any] = {"/openapi.json": _get("This OpenAPI document", "openapi", (), (), {"type": "object"})}
    for quota in quotas:
        paths |= _quota_paths(quota)
    by_name = sorted(declarations, key=lambda declared: declared.name)
    for declared in by_name:
        if isinstance(declared, Event):
            paths |= _event_paths(declared)
        else:
            paths |= _aggregate_paths(declared) if isinstance(declared, Aggregate) else _window_paths(declared)
    counted = [declared for declared in by_name if not isinstance(declared, Event)]
    if counted:
        paths["/v1/batch"] = _post_batch(counted)
    if tenant:
        for operation in (operation for path in paths.values() for operation in path.values()):
            _bind(operation, tenant)
    return {
        "openapi": "3.0.3",
        "info": {"title": "Counters", "version": VERSION},
        "paths": paths,
        "components": {"schemas": {"Problem": _PROBLEM, "Group": _GROUP, "Span": _SPAN}},
    }


def _aggregate_paths(aggregate: Aggregate) -> dict[str, Any]:
    name, base = aggregate.name, f"/v1/aggregates/{aggregate.name}"
    fields, values = aggregate.fields, _values(aggregate.fields)
    measures = _object({measure: _measure(kind) for measure, kind in aggregate.measures.items()})
    group = _object({"aggregate": _TEXT, "values": values, "measures": measures, **_STANDING})
    paths = {base: _get(f"One group of {name}", f"get_{name}", fields, GROUP_OPTIONS, group)}
    if aggregate.write_shards == 1:
        summary = f"All groups of {name} in one partition, page by page"
        groups = _object({"groups": _array(group), "next": _NEXT})
        paths[f"{base}/groups"] = _get(summary, f"groups_{name}", aggregate._pk_template.fields, GROUPS_OPTIONS, groups)
    if aggregate.ranking is not None:
        entries = _array(_object({"values": values, "score": _NUMBER, **_STANDING}))
        ranked = _object({"aggregate": _TEXT, "ranked": entries})
        summary = f"Top groups of {name}"
        paths[f"{base}/top"] = _get(summary, f"top_{name}", leaderboard_fields(aggregate), TOP_OPTIONS, ranked)
    return paths


def _window_paths(window: Window) -> dict[str, Any]:
    name, base, fields = window.name, f"/v1/windows/{window.name}", window.fields
    identity = {"window": _TEXT, "values": _values(fields)}
    count = _object({**identity, **_COUNT})
    count["properties"] |= _STATEMENT
    closed = _object({**identity, "closed": _array(_object({**_COUNT, **_STATEMENT}))})
    series = _object({**identity, "series": _array(_object(_COUNT))})
    paths = {
        base: _get(f"Count of {name} in a span or period", f"window_{name}", fields, WINDOW_OPTIONS, count),
        f"{base}/series": _get(f"Counts of {name} by step", f"series_{name}", fields, SERIES_OPTIONS, series),
    }
    if window.retention is None:
        paths[f"{base}/closed"] = _get(
            f"Last closed periods of {name}", f"closed_{name}", fields, CLOSED_OPTIONS, closed
        )
    longest = min(window.longest or MAX_DURATION, MAX_DURATION)
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


def _event_paths(event: Event) -> dict[str, Any]:
    name = event.name
    if event._declared_attributes is not None:
        values = json_schema(event._declared_attributes, openapi=True)
    else:
        # A key's fields are strings or numbers.
        values = _object({field: {} for field in event.fields}) if event.fields else {"type": "object"}
    page = _object({"event": _TEXT, "events": _array(values), "next": _NEXT})
    required = event._pk_template.fields if event.packed is None else ()
    path = _get(f"Events {name}, page by page", f"events_{name}", required, EVENT_OPTIONS, page)
    if event.packed is not None:
        tenants = event.packed._tenants
        path["get"]["parameters"] += [
            *({"name": option, "in": "query", "required": True, **_OPTIONS[option]} for option in SPAN),
            *(
                {"name": field, "in": "query", **({"required": True} if field in tenants else {}), "schema": _TEXT}
                for field in event.fields
            ),
        ]
    return {f"/v1/events/{name}": path}


def _quota_paths(quota: Quota) -> dict[str, Any]:
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
    return {
        base: path,
        f"{base}/take": _post(
            f"Take calls from {name}", f"take_{name}", _body(group, take), _object({**state, **granted}), "409"
        ),
        f"{base}/give-back": _post(
            f"Give calls back to {name}",
            f"give_back_{name}",
            _body({**group, "lease": lease}, give_back),
            _object({**state, **given_back}),
            "409",
        ),
    }


def _body(required: dict[str, Any], optional: dict[str, Any]) -> dict[str, Any]:
    body = _object(required) if required else {"type": "object"}
    return {**body, "properties": {**required, **optional}, "additionalProperties": False}


def _post(
    summary: str, operation_id: str, body: dict[str, Any], schema: dict[str, Any], *more_errors: str
) -> dict[str, Any]:
    return {
        "post": {
            "summary": summary,
            "operationId": operation_id,
            "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
            "responses": _responses(schema, "404", *more_errors, "413", "415"),
        }
    }


def _bind(operation: dict[str, Any], tenant: Mapping[str, str]) -> None:
    """Say which parameters the caller's claims decide, and what another value gets."""
    bound = [parameter for parameter in operation.get("parameters", ()) if parameter["name"] in tenant]
    for parameter in bound:
        claim = tenant[parameter["name"]]
        parameter["required"] = False
        parameter["description"] = f"Bound to the caller's {claim!r}: left out, or the same; 403 otherwise"
    if bound or "requestBody" in operation:
        operation["responses"]["403"] = operation["responses"]["400"]


def _values(fields: Iterable[str]) -> dict[str, Any]:
    # OpenAPI forbids an empty "required".
    return _object(dict.fromkeys(fields, _TEXT)) if fields else {"type": "object"}


def _measure(measure: Measure) -> dict[str, Any]:
    if isinstance(measure, Histogram):
        return {"type": "object", "additionalProperties": _NUMBER}
    return {**_NUMBER, "nullable": True} if isinstance(measure, Average) else _NUMBER


def _object(members: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": list(members), "properties": members}


def _array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_GROUP: Final = _object({"aggregate": _TEXT, "values": _TEXTS, "measures": {"type": "object"}, **_STANDING})


_SPAN: Final = _object({"window": _TEXT, "values": _TEXTS, **_COUNT})
_SPAN["properties"] |= _STATEMENT


def _get(
    summary: str, operation_id: str, required: Iterable[str], optional: Iterable[str], schema: dict[str, Any]
) -> dict[str, Any]:
    responses = _responses(schema)
    responses["304"] = {"description": "Not modified: the ETag matches If-None-Match"}
    return {
        "get": {
            "summary": summary,
            "operationId": operation_id,
            "parameters": [
                *({"name": name, "in": "query", "required": True, "schema": _TEXT} for name in required),
                *({"name": name, "in": "query", **_OPTIONS[name]} for name in optional),
            ],
            "responses": responses,
        }
    }


def _post_batch(counted: list[Declaration]) -> dict[str, Any]:
    kinds: dict[str, tuple[type[Declaration], dict[str, Any], str]] = {
        "groups": (Aggregate, {}, "Group"),
        "windows": (Window, {name: _OPTIONS[name]["schema"] for name in BATCH_OPTIONS}, "Span"),
    }
    body: dict[str, Any] = {"type": "object", "minProperties": 1, "additionalProperties": False, "properties": {}}
    answer: dict[str, Any] = {"type": "object", "properties": {}}
    for kind, (declarable, options, schema) in kinds.items():
        names = [declared.name for declared in counted if isinstance(declared, declarable)]
        if names:
            member = declarable.__name__.lower()
            entry = _object({member: {"type": "string", "enum": names}, "values": _TEXTS})
            entry["properties"] |= options
            entry["additionalProperties"] = False
            body["properties"][kind] = {"type": "array", "minItems": 1, "maxItems": MAX_COUNT, "items": entry}
            answer["properties"][kind] = _array({"$ref": f"#/components/schemas/{schema}"})
    return _post("Many groups of any aggregates, and spans of any windows", "batch", body, answer)


def _responses(schema: dict[str, Any], *more_errors: str) -> dict[str, Any]:
    success = {"description": "Success", "content": {"application/json": {"schema": schema}}}
    problem = {
        "description": "Problem details (RFC 9457)",
        "content": {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    return {"200": success, **dict.fromkeys(("400", *more_errors, "503"), problem)}
