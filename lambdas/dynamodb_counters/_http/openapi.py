"""The OpenAPI document of a `CounterApi`: the paths of the declarations it shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from dynamodb_counters._declarations import Aggregate, Average, Declaration, Histogram, Measure
from dynamodb_counters._http.parameters import LONGEST, MAX_COUNT, MAX_STEPS
from dynamodb_counters._http.problems import PROBLEM_JSON
from dynamodb_counters._http.resources import board_fields

VERSION: Final = "1"

_TIME: Final = {"type": "string", "format": "date-time"}
_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "number"}
_TEXTS: Final = {"type": "object", "additionalProperties": _TEXT}
_LENGTH: Final = {"type": "string", "pattern": "^[1-9][0-9]{0,6}[mhd]$"}
_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "consistent": {
        "description": "Whether all writes that are done are seen, at twice the read units",
        "schema": {"type": "string", "enum": ["true", "false"], "default": "false"},
    },
    "count": {
        "description": "How many at most",
        "schema": {"type": "integer", "minimum": 1, "maximum": MAX_COUNT, "default": 10},
    },
    "last": {
        "description": f"How far back, in minutes, hours or days, {LONGEST.days}d at most",
        "schema": {**_LENGTH, "default": "24h", "example": "24h"},
    },
    "step": {
        "description": f"How long a step is; 'last' is a whole number of steps, {MAX_STEPS} at most",
        "schema": {**_LENGTH, "default": "1h", "example": "1h"},
    },
    "as_of": {"description": "Until when, of the years 1970 to 9998; now if left out", "schema": _TIME},
}
_COUNT: Final = {"count": _NUMBER, "start": _TIME, "end": _TIME}
_PROBLEM: Final = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {"type": _TEXT, "title": _TEXT, "status": {"type": "integer"}, "detail": _TEXT},
}


def openapi(declarations: Iterable[Declaration], title: str = "Counters") -> dict[str, Any]:
    """Describe an API.

    Parameters
    ----------
    declarations : iterable of Aggregate and Window
        What it shows.
    title : str, optional
        Default ``"Counters"``.

    Returns
    -------
    dict
        OpenAPI 3.0.

    Examples
    --------
    >>> sorted(openapi([])["paths"])
    ['/openapi.json']
    """
    paths: dict[str, Any] = {"/openapi.json": _get("This document", "openapi", (), (), {"type": "object"})}
    shown = sorted(declarations, key=lambda declared: declared.name)
    for declared in shown:
        paths |= _of_aggregate(declared) if isinstance(declared, Aggregate) else _of_window(declared)
    aggregates = [declared.name for declared in shown if isinstance(declared, Aggregate)]
    if aggregates:
        paths["/v1/batch"] = _batch(aggregates)
    return {
        "openapi": "3.0.3",
        "info": {"title": title, "version": VERSION},
        "paths": paths,
        "components": {"schemas": {"Problem": _PROBLEM, "Group": _GROUP}},
    }


def _of_aggregate(aggregate: Aggregate) -> dict[str, Any]:
    name, base = aggregate.name, f"/v1/aggregates/{aggregate.name}"
    values = _values(aggregate.fields)
    group = _object({"aggregate": _TEXT, "values": values, "measures": _measures(aggregate)})
    groups = _object({"groups": {"type": "array", "items": group}})
    paths = {base: _get(f"One group of {name}", f"get_{name}", aggregate.fields, ["consistent"], group)}
    if aggregate.write_shards == 1:
        fields, told = aggregate.pk_template.fields, f"All groups of {name} that share a partition key"
        paths[f"{base}/groups"] = _get(told, f"groups_{name}", fields, ["consistent"], groups)
    if aggregate.ranking is not None:
        one = _object({"values": values, "score": _NUMBER})
        ranked = _object({"aggregate": _TEXT, "ranked": {"type": "array", "items": one}})
        paths[f"{base}/top"] = _get(f"First of {name}", f"top_{name}", board_fields(aggregate), ["count"], ranked)
    for measure, kind in aggregate.measures.items():
        if isinstance(kind, Histogram):
            bins = {"type": "array", "items": _object({"bin": _NUMBER, "count": _NUMBER})}
            answer = _object({"aggregate": _TEXT, "measure": _TEXT, "values": values, "bins": bins})
            told, operation = f"Distribution of {measure} of {name}", f"histogram_{name}_{measure}"
            paths[f"{base}/histograms/{measure}"] = _get(told, operation, aggregate.fields, ["consistent"], answer)
    return paths


def _of_window(window: Any) -> dict[str, Any]:
    name, base = window.name, f"/v1/windows/{window.name}"
    known = {"window": _TEXT, "values": _values(window.fields)}
    asked = ["last", "as_of", "consistent"]
    steps = _object({**known, "series": {"type": "array", "items": _object(_COUNT)}})
    return {
        base: _get(f"How many of {name}", f"window_{name}", window.fields, asked, _object({**known, **_COUNT})),
        f"{base}/series": _get(
            f"How many of {name} in each step", f"series_{name}", window.fields, ["last", "step", "as_of"], steps
        ),
    }


def _values(fields: Iterable[str]) -> dict[str, Any]:
    # Without fields "required" would be empty, which OpenAPI does not allow.
    return _object(dict.fromkeys(fields, _TEXT)) if fields else {"type": "object"}


def _measures(aggregate: Aggregate) -> dict[str, Any]:
    return _object({name: _measure(measure) for name, measure in aggregate.measures.items()})


def _measure(measure: Measure) -> dict[str, Any]:
    if isinstance(measure, Histogram):
        return {"type": "object", "additionalProperties": _NUMBER}
    return {**_NUMBER, "nullable": True} if isinstance(measure, Average) else _NUMBER


def _object(members: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": list(members), "properties": members}


_GROUP: Final = _object({"aggregate": _TEXT, "values": _TEXTS, "measures": {"type": "object"}})


def _get(summary: str, operation: str, fields: Iterable[str], options: Iterable[str], schema: Any) -> dict[str, Any]:
    required = [{"name": name, "in": "query", "required": True, "schema": _TEXT} for name in fields]
    optional = [{"name": name, "in": "query", **_OPTIONS[name]} for name in options]
    found: dict[str, Any] = {
        "summary": summary,
        "operationId": operation,
        "parameters": [*required, *optional],
        "responses": _responses(schema),
    }
    found["responses"]["304"] = {"description": "What If-None-Match names is still right"}
    return {"get": found}


def _batch(aggregates: list[str]) -> dict[str, Any]:
    one = _object({"aggregate": {"type": "string", "enum": aggregates}, "values": _TEXTS})
    one["additionalProperties"] = False
    body = _object({"groups": {"type": "array", "minItems": 1, "maxItems": MAX_COUNT, "items": one}})
    body["additionalProperties"] = False
    groups = _object({"groups": {"type": "array", "items": {"$ref": "#/components/schemas/Group"}}})
    return {
        "post": {
            "summary": "Many groups",
            "operationId": "batch",
            "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
            "responses": _responses(groups, "404", "413", "415"),
        }
    }


def _responses(schema: Any, *more: str) -> dict[str, Any]:
    problem = {
        "description": "What is wrong with the request",
        "content": {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    answered = {"description": "The answer", "content": {"application/json": {"schema": schema}}}
    return {"200": answered, **dict.fromkeys(("400", *more, "503"), problem)}
