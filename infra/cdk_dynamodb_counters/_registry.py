"""The tables of an app and their declarations: a table has one aggregator, wherever the constructs are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, cast

from aws_cdk import Stage, Token
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_s3 as s3
from constructs import Construct, IConstruct

from cdk_dynamodb_counters._places import global_table, require_same_place
from dynamodb_counters._declarations import Declarable, Declaration, Event, Threshold, flatten, require_consistent
from dynamodb_counters.errors import InvalidArgumentError

_ID: Final = "DynamoDBCounters"
_OF_SCOPE: Final = "_counters_registry"

_MOST_READERS: Final = 2
"""Readers of a stream. https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html"""

_ANY_STREAM: Final = "/stream/*"
"""How the ARN ends that CDK gives a replica's stream. It is fit for a policy, and not for an event source mapping."""


class Registry(Construct):
    """The tables of an app: a construct at the tree's root, which all stacks share; it adds nothing to templates."""

    def __init__(self, root: Construct) -> None:
        super().__init__(root, _ID)
        self._owners: dict[str, Construct] = {}
        self._registrations: dict[str, Registration] = {}
        self._readers: dict[str, list[Construct]] = {}
        self._first: dict[tuple[str, str], Construct] = {}
        self._buckets: dict[str, tuple[Construct, bool]] = {}
        self._identities: dict[dynamodb.ITable, list[str]] = {}

    @classmethod
    def of(cls, scope: IConstruct) -> Registry:
        """Return the registry of the app that ``scope`` belongs to."""
        registry: Registry | None = vars(scope).get(_OF_SCOPE)
        if registry is None:
            root = scope.node.root
            existing = root.node.try_find_child(_ID)
            registry = existing if isinstance(existing, Registry) else cls(cast(Construct, root))
            vars(scope)[_OF_SCOPE] = registry
        return registry

    def add_table(self, owner: Construct, table: dynamodb.ITable) -> None:
        """Register the construct that wraps ``table``; refuse a second one, and a table elsewhere."""
        require_same_place("table", owner, table)
        for key in self._identities_of(table):
            if (existing := self._owners.setdefault(key, owner)) is not owner:
                raise InvalidArgumentError(
                    "table",
                    table.node.path,
                    f"a table without a DedupCounterTable; use the one at {existing.node.path!r}",
                )

    def add_source(self, aggregator: Construct, source: dynamodb.ITable, table: dynamodb.ITable) -> None:
        """Register an aggregator of `table` that reads the stream of ``source``; refuse a third reader."""
        require_same_place("source_table", aggregator, source, any_account=True)
        if not {*self._identities_of(source)}.isdisjoint(self._identities_of(table)):
            raise InvalidArgumentError(
                "source_table", source.node.path, "another table than table; its own items are counted without it"
            )
        self._add_reader("source_table", aggregator, source)

    def _add_reader(self, argument: str, reader: Construct, table: dynamodb.ITable) -> None:
        if str(table.table_stream_arn).endswith(_ANY_STREAM):
            allowed = (
                "a table whose stream has a known ARN, and not that of any stream, which CDK gives replicas: use the "
                "table of the primary Region, or import this one with its table_stream_arn"
            )
            raise InvalidArgumentError(argument, table.node.path, allowed)
        for key in self._identities_of(table):
            known = self._readers.setdefault(key, [])
            known.append(reader)
            if len(known) > _MOST_READERS:
                there = " and ".join(repr(each.node.path) for each in known[:_MOST_READERS])
                allowed = f"at most {_MOST_READERS} readers per stream, which are {there}; declare more to one of them"
                raise InvalidArgumentError(argument, table.node.path, allowed)

    def add_bucket(self, owner: Construct, bucket: s3.IBucket, *, of_aggregator: bool) -> None:
        """Register whose failures go to a bucket; refuse others' in that of an aggregator, which counts all there."""
        for key in (f"construct {bucket.node.addr}", f"arn {bucket.bucket_arn}"):
            there, is_shareable = self._buckets.setdefault(key, (owner, not of_aggregator))
            if there is not owner and not (is_shareable and not of_aggregator):
                allowed = (
                    f"another bucket than {there.node.path!r} has: an aggregator takes all in its own for uncounted"
                )
                raise InvalidArgumentError("on_failure_bucket", bucket.node.path, allowed)

    def registration(self, table: dynamodb.ITable) -> Registration:
        """Return the declarations of a table and its replicas, to which more may be added later."""
        primary = global_table(table)
        return self._registrations.setdefault(primary.node.addr, Registration(primary))

    def used(self, user: Construct, table: dynamodb.ITable) -> Registration:
        """Return the table's declarations for a construct that uses it; refuse a table elsewhere."""
        require_same_place("table", user, table)
        return self.registration(table)

    def connect(self, aggregator: Construct, table: dynamodb.ITable) -> Registration:
        """Make ``aggregator`` the table's; refuse a second one, of another replica too."""
        found = self.used(aggregator, table)
        allowed = (
            "one StreamAggregator per table, because a stream serves two consumers at most, and one for all of its "
            "replicas, because they share their items; declare the aggregates to the one at {} with aggregates= or "
            "add_aggregate()"
        )
        self._require_first(aggregator, table, allowed)
        self._add_reader("table", aggregator, table)
        found.aggregator = aggregator
        return found

    def notify(self, notifier: Construct, table: dynamodb.ITable, thresholds: Iterable[Threshold]) -> Registration:
        """Arm a table's thresholds, whose crossings go to ``notifier``; refuse a second one, of another replica too."""
        found = self.used(notifier, table)
        allowed = "one ThresholdEvents per table and all of its replicas; declare the thresholds to the one at {}"
        self._require_first(notifier, table, allowed)
        self._add_reader("table", notifier, table)
        found.thresholds = tuple(thresholds)
        return found

    def _identities_of(self, table: dynamodb.ITable) -> list[str]:
        if table not in self._identities:
            # An import's ARNs may leave account and region open, and each stage may be meant for another account.
            stage = Stage.of(table)
            identities = self._identities[table] = [f"construct {table.node.addr}"]
            for arn in filter(None, (table.table_arn, table.table_stream_arn)):
                stage_path = stage.node.path if stage is not None and Token.is_unresolved(arn) else ""
                identities.append(f"arn {stage_path} {arn}")
        return self._identities[table]

    def _require_first(self, construct: Construct, table: dynamodb.ITable, allowed: str) -> None:
        first = self._first.setdefault((allowed, global_table(table).node.addr), construct)
        if first is not construct:
            raise InvalidArgumentError("table", construct.node.path, allowed.format(repr(first.node.path)))


class Registration:
    """Declarations and thresholds of a table's one aggregator, what is shown and received of it; sorted by name."""

    def __init__(self, table: dynamodb.ITable) -> None:
        self.table = table
        self.aggregator: Construct | None = None
        self.declarations: tuple[Declaration, ...] = ()
        self.shown: tuple[Declaration, ...] = ()
        self.events: tuple[Event, ...] = ()
        self.thresholds: tuple[Threshold, ...] = ()

    @property
    def armed(self) -> tuple[Declaration, ...]:
        """The declarations, with the thresholds that watch them; until all are declared, without."""
        try:
            return flatten((*self.declarations, *self.thresholds))
        except InvalidArgumentError:
            return self.declarations

    def add(self, *declarations: Declarable) -> None:
        """Add declarations; refuse those that contradict the others."""
        # Sorted, so that moving a construct within a program does not change the template.
        together = tuple(sorted((*self.declarations, *flatten(declarations)), key=lambda declared: declared.name))
        self._require_consistent(together, self.shown, self.events)
        self.declarations = together

    def add_shown(self, *declarations: Declaration) -> None:
        """Add what an API shows; refuse another definition of what is counted or shown."""
        together = tuple(sorted({*self.shown, *declarations}, key=lambda declared: declared.name))
        self._require_consistent(self.declarations, together, self.events)
        self.shown = together

    def add_events(self, *events: Event) -> None:
        """Add events, whether or not something counts them; refuse those that could write an item of another kind."""
        together = tuple(sorted({*self.events, *events}, key=lambda event: event.name))
        self._require_consistent(self.declarations, self.shown, together)
        self.events = together

    def _require_consistent(
        self, counted: tuple[Declaration, ...], shown: tuple[Declaration, ...], events: tuple[Event, ...]
    ) -> None:
        # Completeness is checked at synth: an aggregate's source may be declared later.
        uncounted = tuple(declared for declared in shown if declared not in counted)
        require_consistent((*counted, *uncounted), events, complete=False)

    def counting(self, event: Event) -> tuple[Declaration, ...]:
        """Return the declarations whose source is ``event``."""
        return tuple(declared for declared in self.declarations if declared.source == event)
