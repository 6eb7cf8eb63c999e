"""Events of crossed thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final, Literal

from aws_cdk import Duration, Stack, Token
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk_dynamodb_counters._arguments import require_choice, require_list, require_member
from cdk_dynamodb_counters._functions import of_mapping, timeout_of
from cdk_dynamodb_counters._streams import StreamReader, grant_stream
from cdk_dynamodb_counters._synth import check_at_synth
from cdk_dynamodb_counters.dedup_counter_table import DedupCounterTable
from dynamodb_counters._declarations import Threshold, flatten
from dynamodb_counters._declarations.codec import described
from dynamodb_counters._declarations.composites import DETAIL_TYPE, EVENT_SOURCE
from dynamodb_counters._items.schema import CROSSING, TYPE
from dynamodb_counters.errors import InvalidArgumentError

# https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-pattern-operators.html
_LARGEST: Final = 5_000_000_000
_DECIMALS: Final = 6


class ThresholdEvents(StreamReader):
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

    Raises
    ------
    InvalidArgumentError
        If an argument is invalid, the table has `ThresholdEvents` already, or two other readers of its stream.

    Examples
    --------
    >>> crossed = ThresholdEvents(stack, "Crossed", table=counters, thresholds=[PLAN])  # doctest: +SKIP
    >>> crossed.on_crossed("Mail", threshold=PLAN, target=SnsTopic(topic))  # doctest: +SKIP
    """

    event_bus: events.IEventBus
    """The bus that events go to."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        table: DedupCounterTable,
        thresholds: Sequence[Threshold],
        event_bus: events.IEventBus | None = None,
        service_name: str | None = None,
        function_options: lambda_.FunctionOptions | None = None,
        on_failure_bucket: s3.IBucket | None = None,
        alarm_actions: Sequence[cloudwatch.IAlarmAction] = (),
    ) -> None:
        timeout = timeout_of(function_options, Duration.minutes(1), 30, 900)
        self._thresholds = _require_thresholds(thresholds)
        super().__init__(scope, construct_id, table, function_options, alarm_actions, service_name=service_name)
        self._use_bucket(on_failure_bucket, counts=False)
        if event_bus is None:
            event_bus = events.EventBus.from_event_bus_name(self, "DefaultBus", "default")
        require_member("event_bus", event_bus, "grant_put_events_to", "an EventBus")
        self.event_bus = event_bus
        self._require_own("region", Stack.of(self).region, self.event_bus.env.region)
        self._connect()
        self.function = self._build_function(
            "Function",
            description="Sends crossings of thresholds to EventBridge",
            handler="notifier",
            environment={"EVENT_BUS": self.event_bus.event_bus_arn},
            role=self._build_own_role(),
            timeout=timeout,
        )
        resource = self.function.node.default_child
        assert isinstance(resource, lambda_.CfnFunction)
        resource.add_metadata("Thresholds", described(self._thresholds))
        crossing = {"eventName": ["INSERT"], "dynamodb": {"NewImage": {TYPE: {"S": [CROSSING]}}}}
        size, window, filters = 100, Duration.seconds(1), [lambda_.FilterCriteria.filter(crossing)]
        mapping = self._build_mapping("EventSourceMapping", table.table, size, window, is_metered=True, filters=filters)
        self.event_source_mapping = mapping
        self._add_alarms()
        check_at_synth(self, lambda: flatten((*self._declarations.declarations, *self._thresholds)))
        problem = "thresholds are never crossed"
        check_at_synth(self, lambda: self._declarations.require_aggregator(table.node.path, problem))

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

        Raises
        ------
        InvalidArgumentError
            If an argument is invalid, no event could match, or the bus is of another account, where its rules are.

        Examples
        --------
        >>> crossed.on_crossed("Full", threshold=PLAN, level=1, target=SfnStateMachine(upgrade))  # doctest: +SKIP
        """
        # CloudFormation would make a rule of another account's bus one of the own bus of that name.
        self._require_own("account", Stack.of(self).account, self.event_bus.env.account)
        chosen = [candidate for candidate in self._thresholds if threshold in (None, candidate)]
        if not chosen:
            names = ", ".join(candidate.name for candidate in self._thresholds)
            raise InvalidArgumentError("threshold", threshold, f"one of thresholds: {names}")
        detail: dict[str, Any] = {} if threshold is None else {"threshold": [threshold.name]}
        if level is not None:
            _require_level(level, chosen)
            # By value: EventBridge compares a plain number by its text.
            detail["level"] = [{"numeric": ["=", int(level) if level == int(level) else float(level)]}]
        if direction is not None:
            ways = {way for choice in chosen for way in ("up", "down") if choice.direction in (way, "both")}
            require_choice("direction", direction, sorted(ways))
            detail["direction"] = [direction]
        if target is not None:
            require_member("target", target, "bind", "a target such as SnsTopic(topic)")
        pattern = events.EventPattern(
            source=[EVENT_SOURCE], detail_type=[DETAIL_TYPE], resources=[self._table.table_arn], detail=detail or None
        )
        targets = None if target is None else [target]
        return events.Rule(self, construct_id, event_bus=self.event_bus, event_pattern=pattern, targets=targets)

    def _require_own(self, what: str, here: str, there: str) -> None:
        if here != there and not Token.is_unresolved(here) and not Token.is_unresolved(there):
            allowed = f"a bus of {what} {here}; one of its rules may send on to {there}"
            raise InvalidArgumentError("event_bus", self.event_bus.node.path, allowed)

    def _connect(self) -> None:
        """Arm the table's thresholds; refuse a second construct, of another replica too."""
        if (first := self._declarations.notifier) is not None:
            allowed = "one ThresholdEvents per table and all of its replicas; declare the thresholds to the one at "
            raise InvalidArgumentError("table", self.node.path, f"{allowed}{first.node.path!r}")
        self._declarations.add_reader("table", self, self._table)
        self._declarations.notifier, self._declarations.thresholds = self, self._thresholds

    def _build_own_role(self) -> iam.Role:
        role = self._build_role("Role", "Sends crossings of thresholds to EventBridge")
        grant_stream(role, self._table)
        if self._table.encryption_key is not None:
            self._table.encryption_key.grant_decrypt(role)
        self._grant_failures(role)
        self.event_bus.grant_put_events_to(role)
        return role

    def _add_alarms(self) -> None:
        """Add the alarms for crossings that are delayed or given up."""
        self._add_alarm(
            "CrossingsWaitAlarm",
            self.function.metric("IteratorAge", statistic="Maximum"),
            "Crossings of thresholds have waited 15 minutes for EventBridge. At 23 hours, Lambda gives up on them.",
            threshold=Duration.minutes(15).to_milliseconds(),
        )
        self._add_polling_alarm("CrossingsPollingAlarm", self.event_source_mapping, "the stream for crossings")
        self._add_alarm(
            "CrossingsGivenUpAlarm",
            of_mapping(self.event_source_mapping, "OnFailureDestinationDeliveredEventCount"),
            "Lambda gave up on crossings that EventBridge has refused for 23 hours. They lie in the on-failure bucket.",
        )
        self._add_alarm(
            "CrossingsDroppedAlarm",
            self.function.metric("DestinationDeliveryFailures", statistic="Sum"),
            "Lambda gave up on crossings and could not send them to the on-failure bucket.",
        )
        self._add_alarm(
            "CrossingsUndeliverableAlarm",
            self.metric("CrossingsUndeliverable"),
            "EventBridge has refused crossings that it can never take. Their items are in the table.",
        )


def _require_thresholds(thresholds: object) -> tuple[Threshold, ...]:
    allowed = "a list of Threshold, each with its aggregate"
    items = require_list("thresholds", thresholds, Threshold, allowed)
    for threshold in items:
        if threshold.aggregate is None:
            raise InvalidArgumentError("thresholds", threshold, allowed)
    names = [threshold.name for threshold in items]
    if not names or len({*names}) < len(names):
        raise InvalidArgumentError("thresholds", names, "at least one, each name only once")
    return tuple(sorted(items, key=lambda threshold: str(threshold.name)))


def _require_level(level: object, thresholds: Sequence[Threshold]) -> None:
    """Refuse a level that none of the thresholds has, or that EventBridge does not compare."""
    levels = sorted({value for threshold in thresholds for value in threshold.at})
    if isinstance(level, bool) or not isinstance(level, int | Decimal) or level not in levels:
        raise InvalidArgumentError("level", level, f"one of {', '.join(f'{Decimal(value):f}' for value in levels)}")
    number = Decimal(level)
    if abs(number) > _LARGEST or number != round(number, _DECIMALS):
        allowed = f"at most {_LARGEST:,} and {_DECIMALS} decimals: leave it out, and look at detail.level in the target"
        raise InvalidArgumentError("level", level, allowed)
