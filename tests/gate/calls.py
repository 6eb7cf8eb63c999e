"""The permissions that calls of AWS's API need, noted from the calls themselves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from unittest.mock import patch

from botocore.client import BaseClient
from botocore.exceptions import ClientError

_TABLES: Final = re.compile(r'(INSERT|SELECT|UPDATE|DELETE)[^"]*"([^"]+)"')
_OF_BUCKETS: Final = {"ListObjectsV2": "ListBucket", "ListObjects": "ListBucket", "HeadBucket": "ListBucket"}
_OF_OBJECTS: Final = {"HeadObject": "GetObject", "DeleteObjects": "DeleteObject"}

Permission = tuple[str, str]
"""An action, and the resource: its name, and what of it."""


@dataclass
class Noted:
    """Permissions that calls need; while `throttled`, DynamoDB refuses all of them."""

    permissions: set[Permission] = field(default_factory=set)
    throttled: bool = False


@contextmanager
def noted() -> Iterator[Noted]:
    """Note the permissions that all calls of all clients need, until the block ends."""
    found = Noted()
    call = BaseClient._make_api_call  # type: ignore[attr-defined]

    def note(client: Any, operation: str, parameters: dict[str, Any]) -> Any:
        service = client.meta.service_model.service_name
        found.permissions.update(permissions(service, operation, parameters))
        if found.throttled and service == "dynamodb":
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "by the test"}}, operation)
        return call(client, operation, parameters)

    with patch.object(BaseClient, "_make_api_call", note):
        yield found


def permissions(service: str, operation: str, parameters: dict[str, Any]) -> Iterator[Permission]:
    """The permissions that one call needs.

    https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
    """
    find = _OF_SERVICE.get(service)
    for action, resource in find(operation, parameters) if find is not None else [(operation, "*")]:
        yield f"{service}:{action}", resource


def _of_dynamodb(operation: str, parameters: dict[str, Any]) -> Iterator[Permission]:
    if operation == "TransactWriteItems":
        for kind, write in ((kind, write) for one in parameters["TransactItems"] for kind, write in one.items()):
            yield "ConditionCheckItem" if kind == "ConditionCheck" else f"{kind}Item", write["TableName"]
    elif operation in ("BatchGetItem", "BatchWriteItem"):
        yield from ((operation, table) for table in parameters["RequestItems"])
    elif operation == "BatchExecuteStatement":
        for statement in parameters["Statements"]:
            [(kind, table)] = _TABLES.findall(statement["Statement"])
            yield f"PartiQL{kind.title()}", table
    else:
        index = f"/index/{parameters['IndexName']}" if "IndexName" in parameters else ""
        yield operation, parameters["TableName"] + index


def _of_sqs(operation: str, parameters: dict[str, Any]) -> Iterator[Permission]:
    yield operation.removesuffix("Batch"), parameters["QueueUrl"].rpartition("/")[2]


def _of_s3(operation: str, parameters: dict[str, Any]) -> Iterator[Permission]:
    bucket = parameters["Bucket"]
    of_bucket = operation in _OF_BUCKETS
    yield (_OF_BUCKETS[operation], bucket) if of_bucket else (_OF_OBJECTS.get(operation, operation), f"{bucket}/*")


_OF_SERVICE: Final[dict[str, Callable[[str, dict[str, Any]], Iterable[Permission]]]] = {
    "dynamodb": _of_dynamodb,
    "events": lambda operation, _: [(operation, "bus")],
    "s3": _of_s3,
    "sqs": _of_sqs,
}
