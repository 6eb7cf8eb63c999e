"""A table as synth knows it: its keys, its TTL and its stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from aws_cdk import aws_dynamodb as dynamodb

from cdk_dynamodb_counters._arguments import require_interface
from cdk_dynamodb_counters._synth import resolved_property
from dynamodb_counters._declarations import TableKeys
from dynamodb_counters.errors import InvalidArgumentError

IMAGES: Final = "NEW_AND_OLD_IMAGES"
"""The view type of a stream that can be counted."""

_IMPORT: Final = "import it by Table.from_table_attributes(…, table_stream_arn=…)"


@dataclass(frozen=True)
class TableSchema:
    """Key attributes of a table that the app defines, each with its type, its attribute of TTL, and its indexes."""

    keys: tuple[tuple[str, str], ...]
    ttl: str | None
    indexes: frozenset[str]

    @property
    def names(self) -> TableKeys:
        (partition_key, _), *rest = self.keys
        return TableKeys(partition_key, rest[0][0] if rest else None, self.ttl)


def table_schema(table: dynamodb.ITable) -> TableSchema | None:
    """Return the schema of a table; None if it is imported."""
    resource = table.node.default_child
    if not isinstance(resource, dynamodb.CfnGlobalTable | dynamodb.CfnTable):
        return None

    def found(name: str) -> Any:
        return resolved_property(resource, name)

    types = {each["attributeName"]: each["attributeType"] for each in found("attributeDefinitions") or ()}
    ordered = sorted(found("keySchema"), key=lambda key: key["keyType"] != "HASH")
    ttl = found("timeToLiveSpecification") or {}
    return TableSchema(
        tuple((key["attributeName"], types[key["attributeName"]]) for key in ordered),
        ttl.get("attributeName") if ttl.get("enabled", True) else None,
        frozenset(index["indexName"] for index in found("globalSecondaryIndexes") or ()),
    )


def has_strong_replicas(table: dynamodb.ITable) -> bool:
    """Whether a table that the app defines has multi-Region strong consistency; of an import, the runtime asks."""
    resource = table.node.default_child
    return (
        isinstance(resource, dynamodb.CfnGlobalTable)
        and resolved_property(resource, "multiRegionConsistency") == dynamodb.MultiRegionConsistency.STRONG.name
    )


def has_index(table: dynamodb.ITable, name: str) -> bool:
    """Whether a table that the app defines has an index; of an import, synth does not know."""
    schema = table_schema(table)
    return schema is not None and name in schema.indexes


def require_stream(argument: str, table: dynamodb.ITable) -> None:
    """Refuse anything but a table with a stream; one that the app defines must carry new and old images."""
    require_interface(argument, table, "ITable", f"a TableV2 or Table; or {_IMPORT}")
    resource = table.node.default_child
    if isinstance(resource, dynamodb.CfnGlobalTable | dynamodb.CfnTable):
        stream = resolved_property(resource, "streamSpecification") or {}
        if stream.get("streamViewType") != IMAGES:
            keyword = "stream" if isinstance(resource, dynamodb.CfnTable) else "dynamo_stream"
            allowed = f"a table with a stream of new and old images: {keyword}=StreamViewType.{IMAGES}"
            raise InvalidArgumentError(argument, table.node.path, allowed)
    elif table.table_stream_arn is None:
        raise InvalidArgumentError(argument, table.node.path, f"a table with a stream; {_IMPORT}")
