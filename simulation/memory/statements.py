"""PartiQL: an UPDATE of one item by its key, as the UpdateItem that does the same."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import count
from typing import Any, Final

_NAME: Final = r'"((?:[^"]|"")+)"'
_UPDATE: Final = re.compile(
    rf"UPDATE {_NAME} (.*) WHERE {_NAME} = \? AND {_NAME} = \? AND \({_NAME} IS MISSING OR {_NAME} < \?\)", re.DOTALL
)
_CLAUSE: Final = re.compile(rf"SET {_NAME} = (?:{_NAME} \+ )?\?")


def update_of(statement: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of UpdateItem; an item that is not there, or lacks a number, is refused."""
    parsed = _UPDATE.fullmatch(statement["Statement"])
    assert parsed is not None, f"unknown statement {statement['Statement']!r}"
    table, clauses, pk, sk, guard, _ = (part.replace('""', '"') for part in parsed.groups())
    parameters, numbers = iter(statement["Parameters"]), count()
    names: dict[str, str] = {}
    values: dict[str, Any] = {}
    terms = []
    for name, number in _CLAUSE.findall(clauses):
        index = next(numbers)
        names[f"#{index}"], values[f":{index}"] = name.replace('""', '"'), next(parameters)
        terms.append(f"#{index} = #{index} + :{index}" if number else f"#{index} = :{index}")
    key = {pk: next(parameters), sk: next(parameters)}
    names |= {"#pk": pk, "#guard": guard}
    values[":bound"] = next(parameters)
    assert not [*parameters], "more parameters than placeholders"
    return {
        "TableName": table,
        "Key": key,
        "UpdateExpression": f"SET {', '.join(terms)}",
        "ConditionExpression": "attribute_exists(#pk) AND (attribute_not_exists(#guard) OR #guard < :bound)",
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
