"""The table of events and counts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from aws_cdk import Annotations, CfnDeletionPolicy, CfnResource, RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk_dynamodb_counters._arguments import require_choice, require_list, require_member, require_text
from cdk_dynamodb_counters._synth import check_at_synth, resolved_property
from cdk_dynamodb_counters._tables import (
    IMAGES,
    TableDeclarations,
    generated_name,
    is_import,
    property_of,
    require_same_place,
    require_stream,
    table_keys,
)
from dynamodb_counters._declarations import Event
from dynamodb_counters._items.schema import LEADERBOARD, LEASES_PREFIX, PK, RANKING_INDEX, SCORE, SK, TTL
from dynamodb_counters.errors import InvalidArgumentError

_RETAINING: Final = (RemovalPolicy.RETAIN, RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
_OWN: Final = (
    *("dynamo_stream", "global_secondary_indexes", "local_secondary_indexes", "multi_region_consistency"),
    *("partition_key", "point_in_time_recovery_specification", "sort_key", "time_to_live_attribute"),
)
"""Arguments of CDK's table that this one chooses itself."""
_ERASE: Final = ("DeleteItem", "PutItem", "Query", "Scan", "UpdateItem")
_TABLE_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{3,255}")
_TABLE_ARN: Final = re.compile(rf"arn:[a-z-]+:dynamodb:[a-z0-9-]+:[0-9]{{12}}:table/{_TABLE_NAME.pattern}")


class DedupCounterTable(Construct):
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
    ranking_index : bool or mapping, optional
        Whether to create the index that ranked aggregates need; a mapping has its own options, those of CDK's
        ``GlobalSecondaryIndexPropsV2``, such as ``{"max_write_request_units": 1000}``. A change of score takes 2 write
        units of it; an index that cannot keep up throttles the table as well. Default: no.
    **props
        Those of CDK's ``TableV2`` but for keys, TTL, stream, indexes and consistency across Regions, such as
        ``encryption`` or ``billing=Billing.on_demand(max_write_request_units=1000)``. Default: on-demand billing.

    Raises
    ------
    InvalidArgumentError
        If an argument is invalid, or an event could be another item.

    Notes
    -----
    Every ``grant_*`` method takes ``grantee``, a function or role, and returns the ``Grant``. It allows one job on this
    table only, and the use of the table's encryption key if that is customer managed. Those that let events in also
    take the ``events`` it is for: synth then fails if one of them could be mistaken for another item of the table.

    Examples
    --------
    >>> counters = DedupCounterTable(stack, "Counters")  # doctest: +SKIP
    >>> counters.grant_accept(function, VIEW)  # doctest: +SKIP
    """

    table: dynamodb.ITable
    """The table."""
    table_name: str
    """The table's name. The runtime reads it from the environment variable ``TABLE_NAME``."""
    table_arn: str
    """The table's ARN."""

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
        ranking_index: bool | Mapping[str, Any] | None = None,
        **props: Any,
    ) -> None:
        settings = {
            "removal_policy": removal_policy,
            "deletion_protection": deletion_protection,
            "point_in_time_recovery": point_in_time_recovery,
            "ranking_index": ranking_index,
            **props,
        }
        if table is not None:
            _require_usable(table)
            for name, value in settings.items():
                if value is not None:
                    allowed = "None when table is given: it applies only to a table created here"
                    raise InvalidArgumentError(name, value, allowed)
        for name in _OWN:
            if name in props:
                raise InvalidArgumentError(name, props[name], "no value: the construct chooses it")
        if not isinstance(ranking_index, bool | Mapping | None):
            raise InvalidArgumentError("ranking_index", ranking_index, "True, False or a mapping of its options")
        events = require_list("events", events, Event, "a list of Event")
        super().__init__(scope, construct_id)
        self.table = table if table is not None else self._build_table(**settings)
        self._declare()
        self._declarations.add(events=events)
        name = property_of(self.table, "tableName")
        check_at_synth(self, lambda: generated_name(self.table, name))
        if table is None:
            check_at_synth(self, self._warn_if_uncounted)

    @classmethod
    def from_table_name(cls, scope: Construct, construct_id: str, table_name: str) -> DedupCounterTable:
        """Name a table that another app has and counts, to read it, to write into it, and to grant either.

        It is in the account and region of the stack.
        """
        require_text("table_name", table_name, _TABLE_NAME, "a table's name, or a token")
        return _TableOfAnotherApp(scope, construct_id, table_name=table_name)

    @classmethod
    def from_table_arn(cls, scope: Construct, construct_id: str, table_arn: str) -> DedupCounterTable:
        """Name a table by its ARN, of the account and region of the stack; otherwise as `from_table_name`."""
        allowed = "a table's ARN such as 'arn:aws:dynamodb:…:table/events', or a token"
        require_text("table_arn", table_arn, _TABLE_ARN, allowed)
        return _TableOfAnotherApp(scope, construct_id, table_arn=table_arn)

    @property
    def table_stream_arn(self) -> str:
        """The ARN of the table's stream; a table that another app counts has none here."""
        require_stream("table", self.table)
        return str(self.table.table_stream_arn)

    def grant_accept(self, grantee: iam.IGrantable, *events: Event) -> iam.Grant:
        """Allow accepting the events, at least one, one by one and in batches; packed ones also to be retracted."""
        if not events:
            raise InvalidArgumentError("events", events, "at least one Event, as in grant_accept(function, VIEW)")
        self._declarations.add(events=require_list("events", events, Event, "a list of Event"))
        actions = [action for event in events for action in accepting(event)]
        return grant(self.table, grantee, *dict.fromkeys(actions))

    def grant_record_once(self, grantee: iam.IGrantable, *events: Event) -> iam.Grant:
        """Allow recording an event and its counts in one transaction."""
        self._declarations.add(events=require_list("events", events, Event, "a list of Event"))
        return grant(self.table, grantee, "GetItem", "PutItem", "UpdateItem")

    def grant_increment(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow incrementing counters, which is not idempotent."""
        return grant(self.table, grantee, "GetItem", "UpdateItem")

    def grant_leases(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow taking calls from quotas, and no change of any count."""
        return grant(self.table, grantee, "UpdateItem", keys=f"{LEASES_PREFIX}*")

    def grant_retract(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow deleting events, which subtracts what they added to the counts."""
        return grant(self.table, grantee, "DeleteItem")

    def grant_erase(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow erasing events from the table, its chunks and its quarantine; it reads the whole table."""
        return grant(self.table, grantee, *_ERASE)

    def grant_reset(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow resetting counters to zero."""
        return grant(self.table, grantee, "GetItem", "UpdateItem")

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow reading and explaining counts, windows, leaderboards and events, but no Scan of the table.

        This is the only grant that covers the table's indexes: leaderboards are read from one.
        """
        # An index can only be queried.
        items = grant(self.table, grantee, "BatchGetItem", "GetItem", reading=True)
        return items.combine(grant(self.table, grantee, "Query", reading=True, indexes=True))

    def grant_redrive(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow listing quarantined records and redriving them."""
        return grant(self.table, grantee, "Query", "UpdateItem")

    def _declare(self) -> None:
        self.table_name, self.table_arn = self.table.table_name, self.table.table_arn
        require_same_place("table", self, self.table)
        self._declarations = TableDeclarations.of(self.table)

    def _warn_if_uncounted(self) -> None:
        if self._declarations.aggregator is None:
            Annotations.of(self).add_warning_v2(
                "dynamodb-counters:nothingAggregates",
                "No StreamAggregator counts this table: events are accepted and never counted. Add one for it, or "
                "acknowledge this if your code only calls increment and record_once, or counts in another app.",
            )

    def _build_table(
        self,
        *,
        removal_policy: RemovalPolicy | None,
        deletion_protection: bool | None,
        point_in_time_recovery: bool | None,
        ranking_index: bool | Mapping[str, Any] | None,
        **props: Any,
    ) -> dynamodb.TableV2:
        policy = RemovalPolicy.RETAIN if removal_policy is None else removal_policy
        require_choice("removal_policy", policy, (*_RETAINING, RemovalPolicy.DESTROY))
        if deletion_protection and policy == RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE:
            allowed = "False with RETAIN_ON_UPDATE_OR_DELETE: a first deployment that fails deletes the table"
            raise InvalidArgumentError("deletion_protection", True, allowed)
        recoverable = True if point_in_time_recovery is None else point_in_time_recovery
        if policy not in _RETAINING and not recoverable:
            Annotations.of(self).add_warning_v2(
                "dynamodb-counters:countsUnrecoverable",
                "The table is deleted with the stack and has no backup: its counts cannot be recovered. "
                "Keep the default of removal_policy or point_in_time_recovery.",
            )
        if ranking_index not in (None, False):
            own = {"warm_throughput": props.get("warm_throughput")}
            own |= ranking_index if isinstance(ranking_index, Mapping) else {}
            props["global_secondary_indexes"] = [_ranking_index(**own)]
        table = dynamodb.TableV2(
            self,
            "Table",
            partition_key=dynamodb.Attribute(name=PK, type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name=SK, type=dynamodb.AttributeType.STRING),
            time_to_live_attribute=TTL,
            dynamo_stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=recoverable
            ),
            deletion_protection=policy == RemovalPolicy.RETAIN if deletion_protection is None else deletion_protection,
            removal_policy=policy,
            **{"billing": dynamodb.Billing.on_demand(), **props},
        )
        if deletion_protection is None:
            check_at_synth(self, lambda: _unprotect_unless_retained(table))
        return table


class _TableOfAnotherApp(DedupCounterTable):
    """A table without its stream: what counts it is elsewhere."""

    def __init__(self, scope: Construct, construct_id: str, **named: Any) -> None:
        Construct.__init__(self, scope, construct_id)
        # Leaderboards are read from the index, and whether there is one, synth cannot know.
        self.table = dynamodb.TableV2.from_table_attributes(self, "Table", global_indexes=[RANKING_INDEX], **named)
        self._declare()


def _unprotect_unless_retained(table: dynamodb.TableV2) -> None:
    """Take the default protection from a table that an aspect, or `apply_removal_policy`, lets go with its stack."""
    resource = cast(CfnResource, table.node.default_child)
    if resource.cfn_options.deletion_policy != CfnDeletionPolicy.RETAIN:
        for number, _ in enumerate(resolved_property(resource, "replicas")):
            resource.add_property_override(f"Replicas.{number}.DeletionProtectionEnabled", False)


def _ranking_index(**props: Any) -> dynamodb.GlobalSecondaryIndexPropsV2:
    return dynamodb.GlobalSecondaryIndexPropsV2(
        index_name=RANKING_INDEX,
        partition_key=dynamodb.Attribute(name=LEADERBOARD, type=dynamodb.AttributeType.STRING),
        sort_key=dynamodb.Attribute(name=SCORE, type=dynamodb.AttributeType.NUMBER),
        # Keys only: a change of a watermark or of another measure then costs nothing in the index.
        projection_type=dynamodb.ProjectionType.KEYS_ONLY,
        **props,
    )


def _require_usable(table: dynamodb.ITable) -> None:
    """Refuse a table with wrong keys, TTL attribute or stream; an imported one must only have a stream."""
    require_stream("table", table)
    if is_import(table):
        Annotations.of(table).add_info(
            f"The imported table must have the string keys {PK!r} and {SK!r}, TTL on {TTL!r} and a stream of "
            f"{IMAGES}; if a key of yours encrypts it, import it with encryption_key=: synth cannot check any of this."
        )
        return
    keys, are_texts = table_keys(table)
    allowed = None
    if (keys.partition_key, keys.sort_key, are_texts) != (PK, SK, True):
        allowed = f"a table with partition key {PK!r} and sort key {SK!r}, both strings"
        allowed += "; count the items of another one by source_table of StreamAggregator"
    elif property_of(table, "multiRegionConsistency") == dynamodb.MultiRegionConsistency.STRONG.name:
        allowed = "a table without multi-Region strong consistency, which refuses transactions"
    elif keys.ttl != TTL:
        allowed = f"a table with time_to_live_attribute={TTL!r}"
    if allowed is not None:
        raise InvalidArgumentError("table", table.node.path, allowed)


def accepting(event: Event) -> tuple[str, ...]:
    """Return the actions that accept an event."""
    return ("PutItem",) if event.packed is None else ("PutItem", "Query")


def grant(
    table: dynamodb.ITable,
    grantee: iam.IGrantable,
    *actions: str,
    reading: bool = False,
    indexes: bool = False,
    keys: str | None = None,
) -> iam.Grant:
    """Allow ``actions`` on the table, with ``indexes`` on those too, and on its key; ``reading`` only decrypts.

    With ``keys``, only on items whose partition key is like that.
    """
    require_member("grantee", grantee, "grant_principal", "something with an IAM identity, such as a function or role")
    # has_index=None grants the indexes only if the table has some.
    grants = dynamodb.TableGrants(table=table, has_index=None if indexes else False)
    granted = grants.actions(grantee, *(f"dynamodb:{action}" for action in actions))
    if keys is not None:
        for statement in (*granted.principal_statements, *granted.resource_statements):
            # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/specifying-conditions.html
            statement.add_condition("ForAllValues:StringLike", {"dynamodb:LeadingKeys": [keys]})
    if table.encryption_key is None:
        return granted
    key = table.encryption_key
    return granted.combine(key.grant_decrypt(grantee) if reading else key.grant_encrypt_decrypt(grantee))
