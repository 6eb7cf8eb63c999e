"""Checks of an existing table passed to `DedupCounterTable`."""

from __future__ import annotations

from typing import Final

from aws_cdk import Annotations
from aws_cdk import aws_dynamodb as dynamodb

from cdk_dynamodb_counters._arguments import require_interface
from cdk_dynamodb_counters._synth import resolved_property
from dynamodb_counters._items.table_schema import PK, SK, TTL
from dynamodb_counters.errors import InvalidArgumentError

_KEYS: Final = [(PK, "HASH", "S"), (SK, "RANGE", "S")]


def require_usable(table: dynamodb.ITableV2) -> None:
    """Refuse a table with wrong keys, TTL attribute or stream; an imported one must only have a stream."""
    require_interface(
        "table", table, "ITableV2", "a TableV2, or an import by TableV2.from_table_attributes(…, table_stream_arn=…)"
    )
    if table.table_stream_arn is None:
        raise _refusal(table, "a table with a stream; import it with from_table_attributes(…, table_stream_arn=…)")
    resource = table.node.default_child
    if isinstance(resource, dynamodb.CfnGlobalTable):
        _require_schema(table, resource)
    else:
        Annotations.of(table).add_info(
            f"The imported table must have the string keys {PK!r} and {SK!r}, TTL on {TTL!r} and a stream of "
            "NEW_AND_OLD_IMAGES: synth cannot check any of this."
        )


def _require_schema(table: dynamodb.ITableV2, resource: dynamodb.CfnGlobalTable) -> None:
    types = {a["attributeName"]: a["attributeType"] for a in resolved_property(resource, "attributeDefinitions") or ()}
    keys = [
        (k["attributeName"], k["keyType"], types[k["attributeName"]]) for k in resolved_property(resource, "keySchema")
    ]
    if keys != _KEYS:
        raise _refusal(table, f"a table with partition key {PK!r} and sort key {SK!r}, both strings")
    stream = resolved_property(resource, "streamSpecification") or {}
    if stream.get("streamViewType") != "NEW_AND_OLD_IMAGES":
        raise _refusal(table, "a table with dynamo_stream=StreamViewType.NEW_AND_OLD_IMAGES")
    ttl = resolved_property(resource, "timeToLiveSpecification") or {}
    if ttl.get("attributeName") != TTL:
        raise _refusal(table, f"a table with time_to_live_attribute={TTL!r}")


def _refusal(table: dynamodb.ITableV2, allowed: str) -> InvalidArgumentError:
    return InvalidArgumentError("table", table.node.path, allowed)
