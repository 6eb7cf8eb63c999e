"""The table of events and counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from aws_cdk import Annotations, CfnDeletionPolicy, CfnResource, RemovalPolicy, Stack, Token
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from cdk_dynamodb_counters._arguments import (
    require_boolean,
    require_choice,
    require_events,
    require_instance,
    require_integer,
    require_table_arn,
    require_table_name,
)
from cdk_dynamodb_counters._grants import TableGrants
from cdk_dynamodb_counters._places import chosen_name, generated_name
from cdk_dynamodb_counters._registry import Registry
from cdk_dynamodb_counters._synth import check_at_synth, resolved_property
from cdk_dynamodb_counters._table_schemas import IMAGES, has_strong_replicas, require_stream, table_schema
from dynamodb_counters._declarations import Event
from dynamodb_counters._items.table_schema import LEADERBOARD, PK, RANKING_INDEX, SCORE, SK, TTL
from dynamodb_counters.errors import InvalidArgumentError

_KEYS: Final = ((PK, "S"), (SK, "S"))
_MAX_UNITS: Final = 2**31 - 1
_WARM_READS: Final = 12_000
_WARM_WRITES: Final = 4000
"""Units of a new table, which DynamoDB lowers for none.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput-scenarios.html"""
_RETAINING: Final = (RemovalPolicy.RETAIN, RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)


class DedupCounterTable(Construct, TableGrants):
    """A table that accepts each event once and stores the counts.

    Parameters
    ----------
    scope, construct_id
        Parent construct, and id within it. Renaming it replaces the table.
    table : ITable, optional
        An existing `TableV2` or `Table` with string keys ``pk`` and ``sk``, TTL on ``ttl`` and a stream of new and old
        images. It excludes all arguments below `events`. Default: a table is created.
    events : sequence of Event, optional
        Events that your own code puts into the table and nothing counts. Those that are counted, ingested, listed over
        HTTP or named in a grant are known. Refused are events whose keys could be those of other items. Default: none.
    removal_policy : RemovalPolicy, optional
        The table's fate when it leaves the stack: ``RETAIN``, ``RETAIN_ON_UPDATE_OR_DELETE`` or ``DESTROY``.
        Default: it is retained.
    deletion_protection : bool, optional
        Whether DynamoDB refuses to delete the table; not with ``RETAIN_ON_UPDATE_OR_DELETE``, with which a first
        deployment that fails deletes it. Default: yes if the table is retained whatever happens, as by default.
    point_in_time_recovery : bool, optional
        Whether the table can be restored to any second of the last 35 days. Default: yes.
    encryption : TableEncryptionV2, optional
        The table's encryption key; a customer-managed key requires a stack with a region. Default: a key that DynamoDB
        owns.
    max_read_request_units, max_write_request_units : int, optional
        Units per second above which DynamoDB throttles, to limit cost. Default: no limit.
    warm_throughput : WarmThroughput, optional
        Units per second that the table takes from the start, for an event with more than 4,000 writes or 12,000 reads
        per second. DynamoDB bills it once. Default: as for any new table.
    ranking_index : bool, optional
        Whether to create the index that ranked aggregates need. Default: no.
    index_max_read_request_units, index_max_write_request_units : int, optional
        The same limits of that index. A change of score takes 2 write units; above the limit, the table is throttled as
        well. Default: no limit.
    index_warm_throughput : WarmThroughput, optional
        The same of that index: one that cannot keep up throttles the table. Default: `warm_throughput`.

    Raises
    ------
    InvalidArgumentError
        If an argument is invalid, another `DedupCounterTable` uses the table, or an event could be another item.

    Examples
    --------
    >>> counters = DedupCounterTable(stack, "Counters")  # doctest: +SKIP
    >>> counters.grant_accept(function, VIEW)  # doctest: +SKIP
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        table: dynamodb.ITable | None = None,
        events: Sequence[Event] = (),
        removal_policy: RemovalPolicy | None = None,
        deletion_protection: bool | None = None,
        point_in_time_recovery: bool | None = None,
        encryption: dynamodb.TableEncryptionV2 | None = None,
        max_read_request_units: int | None = None,
        max_write_request_units: int | None = None,
        warm_throughput: dynamodb.WarmThroughput | None = None,
        ranking_index: bool | None = None,
        index_max_read_request_units: int | None = None,
        index_max_write_request_units: int | None = None,
        index_warm_throughput: dynamodb.WarmThroughput | None = None,
    ) -> None:
        settings: dict[str, Any] = {
            "removal_policy": removal_policy,
            "deletion_protection": deletion_protection,
            "point_in_time_recovery": point_in_time_recovery,
            "encryption": encryption,
            "max_read_request_units": max_read_request_units,
            "max_write_request_units": max_write_request_units,
            "warm_throughput": warm_throughput,
            "ranking_index": ranking_index,
            "index_max_read_request_units": index_max_read_request_units,
            "index_max_write_request_units": index_max_write_request_units,
            "index_warm_throughput": index_warm_throughput,
        }
        _require_settings({name: value for name, value in settings.items() if value is not None}, table)
        _require_region(scope, encryption)
        events = require_events("events", events)
        super().__init__(scope, construct_id)
        self._table = table if table is not None else self._build_table(settings)
        Registry.of(self).add_table(self, self._table)
        self._register(events)
        name = chosen_name(self._table)
        check_at_synth(self, lambda: generated_name(self._table, name))
        if table is None:
            check_at_synth(self, self._warn_if_uncounted)

    @classmethod
    def from_table_name(cls, scope: Construct, construct_id: str, table_name: str) -> DedupCounterTable:
        """Name a table that another app has and counts, to read it, to write into it, and to grant either.

        Parameters
        ----------
        scope, construct_id
            Parent construct, and id within it.
        table_name : str
            The table's name, in the account and region of the stack.

        Raises
        ------
        InvalidArgumentError
            If an argument is invalid, or another `DedupCounterTable` uses the table.

        Examples
        --------
        >>> DedupCounterTable.from_table_name(stack, "Counters", "events")  # doctest: +SKIP
        """
        require_table_name("table_name", table_name)
        return _TableOfAnotherApp(scope, construct_id, table_name=table_name)

    @classmethod
    def from_table_arn(cls, scope: Construct, construct_id: str, table_arn: str) -> DedupCounterTable:
        """Name a table by its ARN; otherwise as `from_table_name`.

        Parameters
        ----------
        scope, construct_id
            Parent construct, and id within it.
        table_arn : str
            The table's ARN, of the account and region of the stack.

        Raises
        ------
        InvalidArgumentError
            If an argument is invalid, or another `DedupCounterTable` uses the table.

        Examples
        --------
        >>> DedupCounterTable.from_table_arn(stack, "Counters", arn)  # doctest: +SKIP
        """
        require_table_arn("table_arn", table_arn)
        return _TableOfAnotherApp(scope, construct_id, table_arn=table_arn)

    @property
    def table(self) -> dynamodb.ITable:
        """The table."""
        return self._table

    @property
    def table_name(self) -> str:
        """The table's name. The runtime reads it from the environment variable ``TABLE_NAME``."""
        return self._table.table_name

    @property
    def table_arn(self) -> str:
        """The table's ARN."""
        return self._table.table_arn

    @property
    def table_stream_arn(self) -> str:
        """The ARN of the table's stream; a table that another app counts has none here."""
        require_stream("table", self._table)
        return str(self._table.table_stream_arn)

    def _warn_if_uncounted(self) -> None:
        if Registry.of(self).registration(self._table).aggregator is None:
            Annotations.of(self).add_warning_v2(
                "dynamodb-counters:nothingAggregates",
                "No StreamAggregator counts this table: events are accepted and never counted. Add one for it, or "
                "acknowledge this if your code only calls increment and record_once, or counts in another app.",
            )

    def _build_table(self, settings: Mapping[str, Any]) -> dynamodb.TableV2:
        removal_policy = settings["removal_policy"] or RemovalPolicy.RETAIN
        retained = removal_policy in _RETAINING
        recoverable = settings["point_in_time_recovery"] is not False
        protection = settings["deletion_protection"]
        if not retained and not recoverable:
            Annotations.of(self).add_warning_v2(
                "dynamodb-counters:countsUnrecoverable",
                "The table is deleted with the stack and has no backup: its counts cannot be recovered. "
                "Keep the default of removal_policy or point_in_time_recovery.",
            )
        table = dynamodb.TableV2(
            self,
            "Table",
            partition_key=dynamodb.Attribute(name=PK, type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name=SK, type=dynamodb.AttributeType.STRING),
            time_to_live_attribute=TTL,
            dynamo_stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
            billing=dynamodb.Billing.on_demand(
                max_read_request_units=settings["max_read_request_units"],
                max_write_request_units=settings["max_write_request_units"],
            ),
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=recoverable
            ),
            warm_throughput=settings["warm_throughput"],
            global_secondary_indexes=[_ranking_index(settings)] if settings["ranking_index"] else None,
            encryption=settings["encryption"],
            deletion_protection=removal_policy == RemovalPolicy.RETAIN if protection is None else protection,
            removal_policy=removal_policy,
        )
        if protection is None:
            check_at_synth(self, lambda: _unprotect_unless_retained(table))
        return table


class _TableOfAnotherApp(DedupCounterTable):
    """A table without its stream: what counts it is elsewhere."""

    def __init__(self, scope: Construct, construct_id: str, **named: Any) -> None:
        Construct.__init__(self, scope, construct_id)
        # Leaderboards are read from the index, and whether there is one, synth cannot know.
        self._table = dynamodb.TableV2.from_table_attributes(self, "Table", global_indexes=[RANKING_INDEX], **named)
        Registry.of(self).add_table(self, self._table)


def _unprotect_unless_retained(table: dynamodb.TableV2) -> None:
    """Take the default protection from a table that an aspect, or `apply_removal_policy`, lets go with its stack."""
    resource = cast(CfnResource, table.node.default_child)
    if resource.cfn_options.deletion_policy != CfnDeletionPolicy.RETAIN:
        for number, _ in enumerate(resolved_property(resource, "replicas")):
            resource.add_property_override(f"Replicas.{number}.DeletionProtectionEnabled", False)


def _ranking_index(settings: Mapping[str, Any]) -> dynamodb.GlobalSecondaryIndexPropsV2:
    return dynamodb.GlobalSecondaryIndexPropsV2(
        index_name=RANKING_INDEX,
        partition_key=dynamodb.Attribute(name=LEADERBOARD, type=dynamodb.AttributeType.STRING),
        sort_key=dynamodb.Attribute(name=SCORE, type=dynamodb.AttributeType.NUMBER),
        # Keys only: a change of a watermark or of another measure then costs nothing in the index.
        projection_type=dynamodb.ProjectionType.KEYS_ONLY,
        max_read_request_units=settings["index_max_read_request_units"],
        max_write_request_units=settings["index_max_write_request_units"],
        warm_throughput=settings["index_warm_throughput"] or settings["warm_throughput"],
    )


def _require_settings(given: dict[str, object], table: dynamodb.ITable | None) -> None:
    if table is not None:
        _require_usable(table)
        for name, value in given.items():
            raise InvalidArgumentError(name, value, "None when table is given: it applies only to a table created here")
    for name, value in given.items():
        if name.startswith("index_") and not given.get("ranking_index"):
            raise InvalidArgumentError(name, value, "None without ranking_index=True")
        if name == "removal_policy":
            require_choice(name, value, (*_RETAINING, RemovalPolicy.DESTROY))
        elif name == "encryption":
            require_instance(name, value, dynamodb.TableEncryptionV2, "a TableEncryptionV2")
        elif name.removeprefix("index_").startswith("max_"):
            require_integer(name, value, 1, _MAX_UNITS)
        elif name.endswith("warm_throughput"):
            _require_warm(name, value)
        else:
            require_boolean(name, value)
    if given.get("deletion_protection") and given.get("removal_policy") == RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE:
        allowed = (
            "False with RETAIN_ON_UPDATE_OR_DELETE: a first deployment that fails must delete the table; or RETAIN"
        )
        raise InvalidArgumentError("deletion_protection", True, allowed)


def _require_warm(argument: str, value: object) -> None:
    warm = require_instance(argument, value, dynamodb.WarmThroughput, "a WarmThroughput")
    units = ((warm.read_units_per_second, _WARM_READS), (warm.write_units_per_second, _WARM_WRITES))
    if all(number is None for number, _ in units):
        raise InvalidArgumentError(argument, value, "read_units_per_second, write_units_per_second, or both")
    for number, least in units:
        if number is not None:
            require_integer(argument, number, least, _MAX_UNITS)


def _require_region(scope: Construct, encryption: dynamodb.TableEncryptionV2 | None) -> None:
    own_key = encryption is not None and encryption.type == dynamodb.TableEncryption.CUSTOMER_MANAGED
    if own_key and Token.is_unresolved(Stack.of(scope).region):
        raise InvalidArgumentError("encryption", "a customer-managed key", "a stack whose env= names a region")


def _require_usable(table: dynamodb.ITable) -> None:
    """Refuse a table with wrong keys, TTL attribute or stream; an imported one must only have a stream."""
    require_stream("table", table)
    schema = table_schema(table)
    if schema is None:
        Annotations.of(table).add_info(
            f"The imported table must have the string keys {PK!r} and {SK!r}, TTL on {TTL!r} and a stream of "
            f"{IMAGES}; if a key of yours encrypts it, import it with encryption_key=: synth cannot check any of this."
        )
        return
    if schema.keys != _KEYS:
        allowed = f"a table with partition key {PK!r} and sort key {SK!r}, both strings"
        raise _refusal(table, f"{allowed}; count the items of another one by source_table of StreamAggregator")
    if has_strong_replicas(table):
        raise _refusal(table, "a table without multi-Region strong consistency, which refuses transactions")
    if schema.ttl != TTL:
        raise _refusal(table, f"a table with time_to_live_attribute={TTL!r}")


def _refusal(table: dynamodb.ITable, allowed: str) -> InvalidArgumentError:
    return InvalidArgumentError("table", table.node.path, allowed)
