"""Checks made at synthesis, when everything has been declared."""

from __future__ import annotations

from typing import Final, cast

import jsii
from aws_cdk import CfnResource
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_
from constructs import IValidation

from cdk_dynamodb_counters._properties import resolved_property
from cdk_dynamodb_counters._registry import Registration
from dynamodb_counters._declarations import Aggregate, require_consistent
from dynamodb_counters._declarations.codec import MAX_ENVIRONMENT_BYTES
from dynamodb_counters._items.table_schema import RANKING_INDEX
from dynamodb_counters.errors import InvalidArgumentError

_UNKNOWN_BYTES: Final = 255
"""What a value known only at deployment is taken to be long: the longest table name."""


@jsii.implements(IValidation)
class CompletelyDeclared:
    """Refuses an aggregator that nothing is declared to, or not all that something declared looks at."""

    def __init__(self, registration: Registration) -> None:
        self._registration = registration

    def validate(self) -> list[str]:
        """Give what is wrong."""
        try:
            require_consistent(self._registration.declarations)
        except InvalidArgumentError as error:
            return [str(error)]
        if self._registration.declarations:
            return []
        return ["nothing is counted: declare aggregates=, call add_aggregate() or add a WindowedCounter on its table"]


@jsii.implements(IValidation)
class RankingIndex:
    """Refuses a ranked aggregate on a table without the ranking index, as far as synthesis can know."""

    def __init__(self, registration: Registration) -> None:
        self._registration = registration

    def validate(self) -> list[str]:
        """Give what is wrong."""
        resource = self._registration.table.node.default_child
        ranked = [
            declared.name
            for declared in self._registration.declarations
            if isinstance(declared, Aggregate) and declared.ranking is not None
        ]
        if not ranked or not isinstance(resource, dynamodb.CfnGlobalTable):
            return []
        indexes = resolved_property(resource, "globalSecondaryIndexes") or ()
        if RANKING_INDEX in {index["indexName"] for index in indexes}:
            return []
        return [
            f"{', '.join(ranked)}: ranked, but the table has no index {RANKING_INDEX!r}: give it ranking_index=True"
        ]


@jsii.implements(IValidation)
class EnvironmentSize:
    """Refuses declarations that do not fit into the function's environment."""

    def __init__(self, function: lambda_.Function) -> None:
        self._function = function

    def validate(self) -> list[str]:
        """Give what is wrong."""
        resource = cast(CfnResource, self._function.node.default_child)
        environment = resolved_property(resource, "environment")["variables"]
        sizes = {name: len(name) + _bytes(value) for name, value in environment.items()}
        if sum(sizes.values()) <= MAX_ENVIRONMENT_BYTES:
            return []
        problem = (
            f"the declarations of the table take {sizes['DECLARATIONS']} bytes and the function's whole environment "
            f"{sum(sizes.values())}, but Lambda allows {MAX_ENVIRONMENT_BYTES}"
        )
        return [f"{problem}: declare less, shorten names and keys, or move some declarations to a table of their own"]


def _bytes(value: object) -> int:
    return len(value.encode()) if isinstance(value, str) else _UNKNOWN_BYTES
