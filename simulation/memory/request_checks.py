"""Refuses requests as boto3's client and DynamoDB do, before they are answered in memory.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

import botocore.session
from botocore import xform_name
from botocore.exceptions import ParamValidationError
from botocore.model import ServiceModel
from botocore.validate import ParamValidator
from moto.dynamodb.parsing.reserved_keywords import ReservedKeywords

from simulation.memory.client_errors import failure
from simulation.memory.expressions import EXPRESSIONS
from simulation.memory.typed_values import InvalidValueError, parse

_RESERVED: Final = frozenset(ReservedKeywords.get_reserved_keywords())
_PLACEHOLDERS: Final = ("ExpressionAttributeNames", "ExpressionAttributeValues")
_READ: Final = ("TableName", "ProjectionExpression", "ExpressionAttributeNames", "ConsistentRead")
_PAGE: Final = (
    *(*_READ, "FilterExpression", "ExpressionAttributeValues", "Limit", "ExclusiveStartKey", "Select"),
    "ReturnConsumedCapacity",
)
_WRITE: Final = (
    *("TableName", "ConditionExpression", *_PLACEHOLDERS, "ReturnValuesOnConditionCheckFailure"),
    *("ReturnValues", "ReturnConsumedCapacity"),
)
_KNOWN: Final[Mapping[str, Sequence[str]]] = {
    "GetItem": ("Key", *_READ, "ReturnConsumedCapacity"),
    "PutItem": ("Item", *_WRITE),
    "UpdateItem": ("Key", "UpdateExpression", *_WRITE),
    "DeleteItem": ("Key", *_WRITE),
    "TransactWriteItems": ("TransactItems", "ReturnConsumedCapacity"),
    "BatchGetItem": ("RequestItems", "ReturnConsumedCapacity"),
    "BatchExecuteStatement": ("Statements", "ReturnConsumedCapacity"),
    "Query": ("IndexName", "KeyConditionExpression", "ScanIndexForward", *_PAGE),
    "Scan": ("Segment", "TotalSegments", *_PAGE),
    "DescribeTable": ("TableName",),
}
"""Parameters that the tables in memory heed, by operation."""

_RETURNED: Final = {"PutItem": ("NONE", "ALL_OLD"), "DeleteItem": ("NONE", "ALL_OLD")}
_MOST: Final = {"TransactItems": 100, "Statements": 25, "Keys": 100}
_MOST_LEVELS: Final = 32
_NAME_BYTES: Final = 65_535
_EXPRESSION_BYTES: Final = 4096
_STATEMENT_CHARACTERS: Final = 8192
_SYNTAX: Final = {"AND", "OR", "NOT", "BETWEEN", "IN", "SET", "REMOVE", "ADD", "DELETE"}
_STRANGE: Final = re.compile(r"[^\w\s#:.,()<>=+\[\]-]", re.ASCII)
_NAME: Final = re.compile(r"(?<![#:\w])([A-Za-z_]\w*)\s*(\(?)")


@cache
def operations() -> Mapping[str, str]:
    return {xform_name(name): name for name in service_model().operation_names}


def check(operation: str, request: Mapping[str, Any]) -> None:
    """Raise what boto3's client or DynamoDB would; NotImplementedError for what is not known in memory."""
    shape: Any = service_model().operation_model(operation).input_shape
    report = ParamValidator().validate(request, shape)
    if report.has_errors():
        raise ParamValidationError(report=report.generate_report())
    if operation not in _KNOWN:
        raise NotImplementedError(f"{operation} is not known in memory")
    if more := sorted(request.keys() - set(_KNOWN[operation])):
        raise NotImplementedError(f"{operation} with {', '.join(more)} is not known in memory")
    for name, value in request.items():
        if value not in (getattr(shape.members[name], "enum", None) or (value,)):
            problem = f"invalid {name}={value!r}: expected one of the enum's values"
            raise failure(operation, "ValidationException", problem)
    for part in _parts(operation, request):
        if problem := _problem(operation, part):
            raise failure(operation, "ValidationException", problem)


@cache
def service_model() -> ServiceModel:
    return botocore.session.Session().get_service_model("dynamodb")


def _parts(operation: str, request: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield request
    for item in request.get("TransactItems", ()) if operation == "TransactWriteItems" else ():
        yield from item.values()
    yield from request.get("RequestItems", {}).values()


def _problem(operation: str, request: Mapping[str, Any]) -> str:
    keys = [sorted((name, *value.items()) for name, value in key.items()) for key in request.get("Keys", ())]
    if any(key in keys[:index] for index, key in enumerate(keys)):
        return "Provided list of item keys contains duplicates"
    for part in ("Item", "Key", "ExpressionAttributeValues"):
        if problem := _value_problem({"M": request.get(part) or {}}):
            return problem
    expressions = [request[name] for name in EXPRESSIONS if name in request]
    names = request.get("ExpressionAttributeNames")
    return _selection_problem(operation, request) or next(
        (problem for text in expressions if (problem := _expression_problem(text))),
        "" if names is None or expressions else "ExpressionAttributeNames can only be specified when using expressions",
    )


def crowd_problem(request: Mapping[str, Any]) -> str:
    """Error of DynamoDB for a request of too many parts, or of too long a statement; "" if it takes it."""
    statements = [part["Statement"] for part in request.get("Statements", ())]
    sizes = [(name, len(request.get(name, ())), most) for name, most in _MOST.items()]
    sizes += [("Statement", len(statement), _STATEMENT_CHARACTERS) for statement in statements]
    crowded = next(((name, most) for name, size, most in sizes if size > most), None)
    if crowded is None:
        return ""
    return f"invalid {xform_name(crowded[0])}: Member must have length less than or equal to {crowded[1]}"


def _value_problem(value: Mapping[str, Any], levels: int = _MOST_LEVELS) -> str:
    if levels < 0:
        return "Nesting Levels have exceeded supported limits"
    if len(value) != 1:
        problem = "has more than one datatypes set" if value else "is empty, must contain exactly one of the types"
        return f"Supplied AttributeValue {problem}"
    [(kind, content)] = value.items()
    if kind in ("SS", "NS", "BS") and len(set(content)) < max(len(content), 1):
        return f"One or more parameter values were invalid: Input collection {content} is empty or contains duplicates"
    if kind == "M" and any(not 0 < len(name.encode()) <= _NAME_BYTES for name in content):
        return "One or more parameter values were invalid: an attribute name is empty or too long"
    try:
        for number in content if kind == "NS" else (content,) if kind == "N" else ():
            parse(number)
    except InvalidValueError as error:
        return str(error)
    parts = content.values() if kind == "M" else content if kind == "L" else ()
    return next((problem for part in parts if (problem := _value_problem(part, levels - 1))), "")


def _expression_problem(text: str) -> str:
    if not text.strip():
        return "The expression can not be empty"
    if len(text.encode()) > _EXPRESSION_BYTES:
        return f"Expression size has exceeded the maximum allowed size; expression size: {len(text)}"
    if strange := _STRANGE.search(text):
        return f"Invalid expression: Syntax error; token: {strange[0]!r}"
    for name, opened in _NAME.findall(text):
        if name.startswith("_"):
            return f"Invalid expression: Syntax error; token: {name!r}"
        if name.upper() in _RESERVED and name.upper() not in _SYNTAX and not opened:
            return f"Invalid expression: Attribute name is a reserved keyword; reserved keyword: {name}"
    return ""


def _selection_problem(operation: str, request: Mapping[str, Any]) -> str:
    returned = request.get("ReturnValues", "NONE")
    if returned in ("UPDATED_OLD", "UPDATED_NEW") and operation == "UpdateItem":
        raise NotImplementedError(f"UpdateItem with ReturnValues={returned} is not known in memory")
    if returned not in _RETURNED.get(operation, (returned,)):
        return "ReturnValues can only be ALL_OLD or NONE"
    select, projected = request.get("Select"), "ProjectionExpression" in request
    if select is not None and projected is not (select == "SPECIFIC_ATTRIBUTES"):
        return f"Cannot specify Select={select} with{'' if projected else 'out'} a ProjectionExpression"
    if select == "ALL_PROJECTED_ATTRIBUTES" and "IndexName" not in request:
        return "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"
    if ("Segment" in request) != ("TotalSegments" in request):
        return "The TotalSegments and the Segment parameter are required together"
    if request.get("Segment", 0) >= request.get("TotalSegments", 1):
        return "The Segment parameter is zero-based and must be less than parameter TotalSegments"
    return ""
