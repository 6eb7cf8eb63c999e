"""JSON Schema of event attributes, compiled once a process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import fastjsonschema

from dynamodb_counters._http.event_requests import Check
from dynamodb_counters.errors import InvalidArgumentError


def schema_check(schema: Mapping[str, Any] | None) -> Check:
    """Make the check of a schema.

    Parameters
    ----------
    schema : mapping or None
        JSON Schema up to draft 7, complete in itself; None allows everything.

    Returns
    -------
    callable
        Gives the first thing that is wrong with the attributes of an event, or None.

    Raises
    ------
    InvalidArgumentError
        It is no schema, or refers to another document.

    Examples
    --------
    >>> schema_check({"required": ["url"]})({})
    "data must contain ['url'] properties"
    """
    if schema is None:
        return lambda values: None  # noqa: ARG005
    try:
        elsewhere = {"http": _refuse, "https": _refuse, "file": _refuse}
        validate = fastjsonschema.compile(dict(schema), handlers=elsewhere, use_default=False)
    except Exception as error:
        # Whatever a wrong schema makes the compiler raise, it is the schema that is wrong.
        raise InvalidArgumentError("schema", schema, f"a JSON Schema of draft 4, 6 or 7 ({error})") from error

    def check(values: Mapping[str, Any]) -> str | None:
        try:
            validate(dict(values))
        except fastjsonschema.JsonSchemaValueException as error:
            return str(error.message)
        return None

    return check


def _refuse(uri: str) -> None:
    raise ValueError(f"a reference to another document: {uri}")
