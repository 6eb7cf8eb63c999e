"""Who uses which table of an app: what makes "one stream consumer a table" hold wherever the constructs stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from aws_cdk import Stage, Token
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct, IConstruct

from dynamodb_counters._declarations import Declarable, Declaration, flatten, require_consistent
from dynamodb_counters.errors import InvalidArgumentError

if TYPE_CHECKING:
    from cdk_dynamodb_counters.dedup_counter_table import DedupCounterTable
    from cdk_dynamodb_counters.stream_aggregator import StreamAggregator

_ID: Final = "DynamoDBCounters"


class Registry(Construct):
    """The tables of an app. One stands at the root of the construct tree and adds nothing to any template.

    It is a construct, because the tree is the only thing that all stacks of an app share.
    """

    def __init__(self, root: Construct) -> None:
        super().__init__(root, _ID)
        self._tables: dict[str, DedupCounterTable] = {}
        self._registrations: dict[str, Registration] = {}

    @classmethod
    def of(cls, scope: IConstruct) -> Registry:
        """Give the registry of the app that ``scope`` belongs to."""
        root = scope.node.root
        known = root.node.try_find_child(_ID)
        return known if isinstance(known, Registry) else cls(cast(Construct, root))

    def add_table(self, user: DedupCounterTable, table: dynamodb.ITableV2) -> None:
        """Note that ``user`` stands for ``table``; refuse a second one."""
        for key in _identities(table):
            if (known := self._tables.setdefault(key, user)) is not user:
                raise InvalidArgumentError(
                    "table",
                    table.node.path,
                    f"a table that no DedupCounterTable stands for yet; use the one at {known.node.path!r}",
                )

    def registration(self, table: DedupCounterTable) -> Registration:
        """Give what is declared to the aggregator of ``table``, now and later."""
        return self._registrations.setdefault(table.node.addr, Registration(table.table))


class Registration:
    """What is declared to the one aggregator of a table, in the order of names."""

    def __init__(self, table: dynamodb.ITableV2) -> None:
        self.table = table
        self.aggregator: StreamAggregator | None = None
        self._declarations: tuple[Declaration, ...] = ()

    @property
    def declarations(self) -> tuple[Declaration, ...]:
        """All aggregates and windows of the table."""
        return self._declarations

    def add(self, *declarations: Declarable) -> None:
        """Add declarations; refuse those that contradict the others."""
        # By name: moving a construct within a program is then no change of the template.
        together = tuple(sorted((*self._declarations, *flatten(declarations)), key=lambda declared: declared.name))
        # What an aggregate looks at may be declared later, so that is asked at synthesis.
        require_consistent(together, complete=False)
        self._declarations = together

    def connect(self, aggregator: StreamAggregator) -> None:
        """Make ``aggregator`` the table's stream consumer; refuse a second one."""
        if self.aggregator is not None:
            raise InvalidArgumentError(
                "table",
                aggregator.node.path,
                "one StreamAggregator a table (a stream serves two consumers at most); declare the aggregates to the "
                f"one at {self.aggregator.node.path!r}: its argument aggregates=, or add_aggregate()",
            )
        self.aggregator = aggregator


def _identities(table: dynamodb.ITableV2) -> tuple[str, str]:
    arn = table.table_arn
    # An imported table's ARN may leave account and region open, and each stage may be meant for another account.
    stage = Stage.of(table)
    place = stage.node.path if stage is not None and Token.is_unresolved(arn) else ""
    return f"construct {table.node.addr}", f"arn {place} {arn}"
