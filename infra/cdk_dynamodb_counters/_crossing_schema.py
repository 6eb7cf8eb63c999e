"""The event of a crossed threshold, as EventBridge's code bindings read it."""

from __future__ import annotations

from typing import Any, Final

from dynamodb_counters._declarations.thresholds import DETAIL_TYPE, EVENT_SOURCE

_TEXT: Final = {"type": "string"}
_NUMBER: Final[dict[str, Any]] = {"oneOf": [{"type": "number"}, {"type": "string"}]}
"""As text beyond 64 bits."""
_NUMBER_OR_NULL: Final = {**_NUMBER, "nullable": True}
_DETAIL: Final[dict[str, Any]] = {
    "id": {**_TEXT, "description": "The crossing, the same however often it is delivered."},
    "threshold": _TEXT,
    "aggregate": _TEXT,
    "group": {"type": "object", "additionalProperties": _TEXT, "description": "The group's fields."},
    "measure": _TEXT,
    "level": _NUMBER,
    "old": {**_NUMBER_OR_NULL, "description": "The value before; null if there was none."},
    "new": {**_NUMBER_OR_NULL, "description": "The value after; null if there is none."},
    "direction": {**_TEXT, "enum": ["up", "down"]},
    "at": {**_TEXT, "format": "date-time"},
    "sequence": {**_TEXT, "description": "Grows with each change of the group; texts of one length."},
}
_ENVELOPE: Final[dict[str, Any]] = {
    "version": _TEXT,
    "id": {**_TEXT, "description": "Another one for each delivery: see detail.id."},
    "source": {**_TEXT, "enum": [EVENT_SOURCE]},
    "detail-type": {**_TEXT, "enum": [DETAIL_TYPE]},
    "account": _TEXT,
    "region": _TEXT,
    "time": {**_TEXT, "format": "date-time"},
    "resources": {"type": "array", "items": _TEXT, "description": "The table's ARN."},
    "detail": {"$ref": "#/components/schemas/ThresholdCrossed"},
}
SCHEMA: Final[dict[str, Any]] = {
    "openapi": "3.0.0",
    "info": {"version": "1.0.0", "title": "ThresholdCrossed"},
    "paths": {},
    "components": {
        "schemas": {
            "AWSEvent": {
                "type": "object",
                "x-amazon-events-source": EVENT_SOURCE,
                "x-amazon-events-detail-type": DETAIL_TYPE,
                "required": list(_ENVELOPE),
                "properties": _ENVELOPE,
            },
            "ThresholdCrossed": {"type": "object", "required": list(_DETAIL), "properties": _DETAIL},
        }
    },
}
