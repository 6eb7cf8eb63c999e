"""The OpenAPI document of a counter API, with a path per resource of its declarations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from dynamodb_counters._declarations import Aggregate, Average, Declaration, Event, Histogram, Measure
from dynamodb_counters._declarations.composites import group_fields
from dynamodb_counters._http.requests import PROBLEM_JSON
from dynamodb_counters._http.resources import BATCH, MAX_BATCH, PATHS, batched
from dynamodb_counters._reads.question import (
    OPTIONS,
    ORDERS,
    default_last,
    fields_of,
    kind_of,
    limits_of,
    options_of,
    resources_of,
)

Json: TypeAlias = dict[str, Any]

_TIME: Final = {"type": "string", "format": "date-time"}
_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "number"}
_NEXT: Final = {"type": ["string", "null"]}
_NUMBER_OR_NULL: Final = {"type": ["number", "null"]}
_TEXTS: Final = {"type": "object", "additionalProperties": _TEXT}
_NUMBERS: Final = {"type": "object", "additionalProperties": _NUMBER}
_COMPLETE: Final = {"complete": {"type": "boolean", "description": "Whether all there is has been counted"}}
_ENDS: Final = {"start": _TIME, "end": _TIME}
_COUNT: Final = {"count": _NUMBER, **_ENDS, **_COMPLETE}
_PERCENTILES: Final = {
    "count": _NUMBER,
    "percentiles": {"type": "object", "additionalProperties": _NUMBER_OR_NULL},
    **_COMPLETE,
}
_SUMMARIES: Final = {
    "get": "What {} counts",
    "series": "{} step by step",
    "top": "The first groups of {}",
    "events": "Events {}, page by page",
}


def openapi(
    declarations: Iterable[Declaration | Event],
    tenant: Mapping[str, str] = MappingProxyType({}),
) -> Json:
    """Describe an API in OpenAPI 3.1, without the parameters of `tenant`, which claims of the caller decide."""
    paths: Json = {"/openapi.json": _read("This OpenAPI document", "openapi", [], {"type": "object"})}
    declared = sorted(declarations, key=lambda each: each.name)
    for each in declared:
        for resource in resources_of(each):
            summary, operation = _SUMMARIES[resource].format(each.name), f"{resource}_{each.name}"
            parameters = [asked for asked in _parameters(each, resource) if asked["name"] not in tenant]
            paths[PATHS[resource].format(each.name)] = _read(summary, operation, parameters, _answer(each, resource))
    if any(not isinstance(each, Event) for each in declared):
        paths["/v1/batch"] = _batch(declared)
    schemas = {
        "Problem": _object({"type": _TEXT, "title": _TEXT, "status": {"type": "integer"}, "detail": _TEXT}),
        "Group": _object({"aggregate": _TEXT, "values": _TEXTS, "measures": {"type": "object"}, **_COMPLETE}),
        "Span": _object({"window": _TEXT, "values": _TEXTS, **_COUNT}),
    }
    info = {"title": "Counters", "version": "1"}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _parameters(declared: Declaration | Event, resource: str) -> list[Json]:
    """The fields of a question, then its options with their defaults."""
    required, names = fields_of(declared, resource)
    parameters = [_parameter(name, _TEXT, required=name in required) for name in names or ()]
    for name in options_of(declared, resource):
        option = OPTIONS[name]
        schema = {**_TEXT, **option.schema}
        if name == "limit":
            default, most = limits_of(declared, resource)
            schema |= {"type": "integer", "minimum": 1, "maximum": most, "default": default}
        if name == "last" and not isinstance(declared, Event):
            schema["default"] = _text(default_last(declared))
        parameters.append(_parameter(name, schema, description=option.description))
    return parameters


def _parameter(name: str, schema: Json, *, required: bool = False, **more: str) -> Json:
    return {"name": name, "in": "query", "required": required, **more, "schema": schema}


def _answer(declared: Declaration | Event, resource: str) -> Json:
    """The schema of an answer."""
    kind = kind_of(declared)
    if isinstance(declared, Event):
        return _object({"event": _TEXT, "events": _array(declared.json_schema), "next": _NEXT})
    values = _object(dict.fromkeys(group_fields(declared), _TEXT))
    if kind == "extremes":
        value = {"value": {"anyOf": [_NUMBER, _TIME]}, "items": _NUMBER, "shown": _TEXTS, **_COMPLETE}
        return _object({kind: _TEXT, "values": values}, dict.fromkeys(ORDERS, _array(_object(value))))
    if not isinstance(declared, Aggregate) or kind != "get":
        count = _COUNT if kind in ("window", "active") else _PERCENTILES
        count = {**count, **_ENDS} if kind == "distributions" else count
        count = {"series": _array(_object(count))} if resource == "series" else count
        return _object({kind.removesuffix("s"): _TEXT, "values": values, **count})
    measures = _object({measure: _measure(kept) for measure, kept in declared.measures.items()})
    group = _object({"aggregate": _TEXT, "values": values, "measures": measures, **_COMPLETE})
    if resource == "top":
        entry = _object({"aggregate": _TEXT, "values": values, "measures": measures, **_COMPLETE, "score": _NUMBER})
        return _object({"aggregate": _TEXT, "ranked": _array(entry)})
    page = _object({"aggregate": _TEXT, "groups": _array(group), "next": _NEXT})
    return group if fields_of(declared, resource)[0] == declared.fields else {"anyOf": [group, page]}


def _text(duration: timedelta) -> str:
    minutes = max(1, duration // timedelta(minutes=1))
    return next(f"{minutes // unit}{name}" for unit, name in ((1440, "d"), (60, "h"), (1, "m")) if not minutes % unit)


def _measure(measure: Measure) -> Json:
    if isinstance(measure, Histogram):
        return _NUMBERS
    return _NUMBER_OR_NULL if isinstance(measure, Average) else _NUMBER


def _object(members: Mapping[str, Any], optional: Mapping[str, Any] = MappingProxyType({})) -> Json:
    return {"type": "object", "required": list(members), "properties": {**members, **optional}}


def _array(items: Json) -> Json:
    return {"type": "array", "items": items}


def _read(summary: str, operation_id: str, asked: list[Json], answer: Json) -> Json:
    responses = _responses(answer)
    return {"get": {"summary": summary, "operationId": operation_id, "parameters": asked, "responses": responses}}


def _batch(declared: list[Declaration | Event]) -> Json:
    body: Json = {"type": "object", "minProperties": 1, "additionalProperties": False, "properties": {}}
    answer: Json = {"type": "object", "properties": {}}
    for kind, (member, options, declarable) in BATCH.items():
        if names := [each.name for each in batched(declared, declarable)]:
            required = {member: {"type": "string", "enum": names}, "values": _TEXTS}
            entry = _object(required, {name: {**_TEXT, **OPTIONS[name].schema} for name in options})
            entries = _array({**entry, "additionalProperties": False})
            body["properties"][kind] = {**entries, "minItems": 1, "maxItems": MAX_BATCH}
            answer["properties"][kind] = _array({"$ref": f"#/components/schemas/{'Span' if options else 'Group'}"})
    request = {"required": True, "content": {"application/json": {"schema": body}}}
    summary, responses = "Many groups of any aggregates, and spans of any windows", _responses(answer)
    return {"post": {"summary": summary, "operationId": "batch", "requestBody": request, "responses": responses}}


def _responses(schema: Json) -> Json:
    success = {"description": "Success", "content": {"application/json": {"schema": schema}}}
    content = {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"200": success, "default": {"description": "Problem details (RFC 9457)", "content": content}}
