"""Events of crossed thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final, Literal

from aws_cdk import Annotations, Duration, Stack, Token
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk_dynamodb_counters._aggregator_parts import build_bucket, build_mapping, kept_days
from cdk_dynamodb_counters._arguments import (
    require_choice,
    require_instance,
    require_interface,
    require_sequence,
)
from cdk_dynamodb_counters._functions import Observed, build_function, is_isolated, timeout_of
from cdk_dynamodb_counters._monitoring import build_alarms, build_dashboard
from cdk_dynamodb_counters._registry import Registry
from cdk_dynamodb_counters._synth import check_at_synth
from cdk_dynamodb_counters._table_schemas import require_stream
from cdk_dynamodb_counters._threshold_parts import (
    alarm_specs,
    build_role,
    build_schema,
    crossed_pattern,
    graphs,
    require_level,
)
from cdk_dynamodb_counters._validations import missing_aggregator, unarmed_thresholds
from cdk_dynamodb_counters.dedup_counter_table import DedupCounterTable
from dynamodb_counters._declarations import Threshold
from dynamodb_counters._declarations.codec import described
from dynamodb_counters._items.table_schema import CROSSING, TYPE
from dynamodb_counters.errors import InvalidArgumentError

_BATCH: Final = 100


class ThresholdEvents(Observed):
    """Puts an event on EventBridge for each line that a group of a table crosses. A table has one.

    The table's `StreamAggregator` finds the crossings. Either may be created first, in any stack of the app.

    Parameters
    ----------
    scope, construct_id
        Parent construct, and id within it.
    table : DedupCounterTable
        The table of the counts.
    thresholds : sequence of Threshold
        The lines, at least one, of aggregates that are declared to the table's `StreamAggregator`.
    event_bus : IEventBus, optional
        Where events go, in the same Region. Default: the account's default bus.
    schema_registry : str, optional
        The name of an EventBridge schema registry that the event's schema goes to. Default: it goes to none.
    service_name : str, optional
        Name in logs, and the ``service`` dimension of metrics. Default: the stack's name and the path in it.
    function_options : aws_lambda.FunctionOptions, optional
        How the function runs. Timeout: 30 seconds at least. Default: 512 MiB and 1 minute; see `CounterApi` for what
        else differs from Lambda's defaults.
    on_failure_bucket : IBucket, optional
        Where Lambda sends batches it gives up on; not that of a `StreamAggregator`, which takes all in its own for
        uncounted. Default: a bucket is created, encrypted and retained.
    alarm_actions : sequence of IAlarmAction, optional
        Actions of alarms. Default: none.
    dashboard : bool, optional
        Whether to create a dashboard. Default: no.

    Raises
    ------
    InvalidArgumentError
        If an argument is invalid, the table has `ThresholdEvents` already, or two other readers of its stream.

    Examples
    --------
    >>> crossed = ThresholdEvents(stack, "Crossed", table=counters, thresholds=[PLAN])  # doctest: +SKIP
    >>> crossed.on_crossed("Mail", threshold=PLAN, target=SnsTopic(topic))  # doctest: +SKIP
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        table: DedupCounterTable,
        thresholds: Sequence[Threshold],
        event_bus: events.IEventBus | None = None,
        schema_registry: str | None = None,
        service_name: str | None = None,
        function_options: lambda_.FunctionOptions | None = None,
        on_failure_bucket: s3.IBucket | None = None,
        alarm_actions: Sequence[cloudwatch.IAlarmAction] = (),
        dashboard: bool = False,
    ) -> None:
        timeout = timeout_of(function_options, Duration.minutes(1), 30, 900)
        require_instance("table", table, DedupCounterTable, "a DedupCounterTable")
        require_stream("table", table.table)
        self._thresholds = _require_thresholds(thresholds)
        if event_bus is not None:
            require_interface("event_bus", event_bus, "IEventBus", "an EventBus")
        if schema_registry is not None and not (isinstance(schema_registry, str) and schema_registry):
            raise InvalidArgumentError("schema_registry", schema_registry, "the name of a registry")
        if on_failure_bucket is not None:
            require_interface("on_failure_bucket", on_failure_bucket, "IBucket", "a Bucket")
        super().__init__(scope, construct_id, service_name, function_options, alarm_actions)
        self._table = table
        registration = Registry.of(table).notify(self, table.table, self._thresholds)
        if is_isolated(self.function_options):
            Annotations.of(self).add_warning_v2(
                "dynamodb-counters:eventsUnreachable",
                "From isolated subnets, EventBridge is reached by an interface endpoint only: crossings wait, and are "
                "given up after 23 hours. Add one for InterfaceVpcEndpointAwsService.EVENTBRIDGE and acknowledge this.",
            )
        self._bus = event_bus or events.EventBus.from_event_bus_name(self, "DefaultBus", "default")
        _require_here(self, self._bus)
        self._bucket = on_failure_bucket or build_bucket(self, lambda: kept_days(registration))
        Registry.of(table).add_bucket(self, self._bucket, of_aggregator=False)
        self._function = build_function(
            self,
            "Function",
            description="Sends crossings of thresholds to EventBridge",
            handler="notifier",
            environment={"EVENT_BUS": self._bus.event_bus_arn},
            role=build_role(self, table.table, self._bus, self._bucket),
            memory_size=self.function_options.memory_size or 512,
            timeout=timeout,
        )
        resource = self._function.node.default_child
        assert isinstance(resource, lambda_.CfnFunction)
        resource.add_metadata("Thresholds", described(self._thresholds))
        crossing = {"eventName": ["INSERT"], "dynamodb": {"NewImage": {TYPE: {"S": [CROSSING]}}}}
        self._mapping = build_mapping(
            self,
            "EventSourceMapping",
            table.table,
            self._bucket,
            batch_size=_BATCH,
            max_batching_window=Duration.seconds(1),
            filters=[lambda_.FilterCriteria.filter(crossing)],
        )
        if schema_registry is not None:
            build_schema(self, schema_registry)
        self._alarms = build_alarms(self, alarm_specs(self, self._mapping), alarm_actions)
        self._dashboard = build_dashboard(self, graphs(self, self._mapping), self._alarms) if dashboard else None
        check_at_synth(self, lambda: missing_aggregator(registration, table.node.path, "thresholds are never crossed"))
        check_at_synth(self, lambda: unarmed_thresholds(registration))

    def on_crossed(
        self,
        construct_id: str,
        *,
        threshold: Threshold | None = None,
        level: int | Decimal | None = None,
        direction: Literal["up", "down"] | None = None,
        target: events.IRuleTarget | None = None,
    ) -> events.Rule:
        """Create a rule of the bus for crossings of this table.

        Parameters
        ----------
        construct_id : str
            The rule's id within this construct.
        threshold : Threshold, optional
            One of the thresholds. Default: all.
        level : int or Decimal, optional
            One of their levels, as declared; from -5,000,000,000 to 5,000,000,000 with at most 6 decimals, which is how
            EventBridge compares numbers. Default: all.
        direction : {"up", "down"}, optional
            Default: both.
        target : IRuleTarget, optional
            Receiver of the events. Default: those that ``add_target`` of the rule adds.

        Returns
        -------
        Rule

        Raises
        ------
        InvalidArgumentError
            If an argument is invalid, no event could match, or the bus is of another account, where its rules are.

        Examples
        --------
        >>> crossed.on_crossed("Full", threshold=PLAN, level=1, target=SfnStateMachine(upgrade))  # doctest: +SKIP
        """
        _require_own_account(self, self._bus)
        meant = [each for each in self._thresholds if threshold in (None, each)]
        if not meant:
            names = ", ".join(each.name for each in self._thresholds)
            raise InvalidArgumentError("threshold", threshold, f"one of thresholds: {names}")
        if level is not None:
            require_level(level, meant)
        if direction is not None:
            possible = {one for each in meant for one in ("up", "down") if each.direction in (one, "both")}
            require_choice("direction", direction, sorted(possible))
        if target is not None:
            require_interface("target", target, "IRuleTarget", "a target such as SnsTopic(topic)")
        return events.Rule(
            self,
            construct_id,
            event_bus=self._bus,
            event_pattern=crossed_pattern(self._table.table_arn, threshold, level, direction),
            targets=None if target is None else [target],
        )

    @property
    def event_bus(self) -> events.IEventBus:
        """The bus that events go to."""
        return self._bus

    @property
    def event_source_mapping(self) -> lambda_.EventSourceMapping:
        """The mapping that invokes the function with crossings."""
        return self._mapping

    @property
    def on_failure_bucket(self) -> s3.IBucket:
        """The bucket for batches that Lambda gave up on."""
        return self._bucket


def _require_thresholds(thresholds: object) -> tuple[Threshold, ...]:
    given = tuple(require_sequence("thresholds", thresholds, "a list of Threshold"))
    for each in given:
        if not isinstance(each, Threshold) or each.aggregate is None:
            raise InvalidArgumentError("thresholds", each, "a list of Threshold, each with its aggregate")
    if not given or len({each.name for each in given}) < len(given):
        raise InvalidArgumentError("thresholds", [each.name for each in given], "at least one, each name only once")
    return tuple(sorted(given, key=lambda each: each.name))


def _require_here(scope: Construct, bus: events.IEventBus) -> None:
    here, there = Stack.of(scope).region, bus.env.region
    if _differ(here, there):
        raise InvalidArgumentError("event_bus", bus.node.path, f"a bus of {here}; a rule of it may send on to {there}")


def _require_own_account(scope: Construct, bus: events.IEventBus) -> None:
    """Refuse rules of another account's bus: CloudFormation would make them of the own bus of that name."""
    here, there = Stack.of(scope).account, bus.env.account
    if _differ(here, there):
        allowed = f"a bus of account {here}; in account {there}, make the rule with the pattern of this one's events"
        raise InvalidArgumentError("event_bus", bus.node.path, allowed)


def _differ(here: str, there: str) -> bool:
    return here != there and not Token.is_unresolved(here) and not Token.is_unresolved(there)
