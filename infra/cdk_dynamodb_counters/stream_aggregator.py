"""The consumer of a table's stream."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk_dynamodb_counters._aggregator_parts import (
    alarm_specs,
    build_bucket,
    build_environment,
    build_mapping,
    build_role,
    build_rules,
    graphs,
    kept_days,
    summarize,
)
from cdk_dynamodb_counters._arguments import (
    require_duration,
    require_instance,
    require_integer,
    require_interface,
    require_sequence,
)
from cdk_dynamodb_counters._batching import require_gathering
from cdk_dynamodb_counters._functions import Observed, build_function, timeout_of
from cdk_dynamodb_counters._metrics import AggregatorMetrics
from cdk_dynamodb_counters._monitoring import build_alarms, build_dashboard
from cdk_dynamodb_counters._registry import Registry
from cdk_dynamodb_counters._synth import check_at_synth, late_number
from cdk_dynamodb_counters._table_schemas import require_stream
from cdk_dynamodb_counters._validations import (
    MAX_BATCH_SIZE,
    default_batch_size,
    incomplete_declarations,
    misnamed_keys,
    missing_ranking_index,
    note_key_of_import,
    oversized_batch,
    second_mapping,
    warn_if_corrections_may_count_twice,
    warn_if_pages_gain_nothing,
)
from cdk_dynamodb_counters._verifying import build_verifier
from cdk_dynamodb_counters.dedup_counter_table import DedupCounterTable
from dynamodb_counters._declarations import Aggregate, Composite, Declarable
from dynamodb_counters.errors import InvalidArgumentError


class StreamAggregator(Observed, AggregatorMetrics):
    """Keeps the declared aggregates and windows of a table exact. A table has one aggregator.

    Parameters
    ----------
    scope, construct_id
        Parent construct, and id within it.
    table : DedupCounterTable
        The table of the counts.
    source_table : ITable, optional
        Another table, whose items `Items` declarations count, by its stream of new and old images: a `TableV2`, a
        `Table`, or an import with a stream ARN; an import by ARN may be of another account. Nothing is written to it.
        Default: `Items` lie in the table itself.
    aggregates : sequence of Aggregate, Distinct, ActiveMembers, Percentiles or Extremes, optional
        Aggregates to keep current; `add_aggregate` and `WindowedCounter` add more. Default: none.
    service_name : str, optional
        Name in logs, and the ``service`` dimension of metrics. Default: the stack's name and the path in it.
    batch_size : int, optional
        Maximum records per invocation, 1 to 10,000. Default: 1,000; fewer if large chunks of packed events
        would exceed the 6 MB of an invocation.
    max_batching_window : Duration, optional
        How long records may wait for a fuller batch, up to 5 minutes. Each batch pays one write unit per item it
        changes, so waiting saves money. At least 1 second for a batch above 10. Default: 1 second.
    function_options : aws_lambda.FunctionOptions, optional
        How the functions run. Concurrency to reserve: at least one invocation per shard of the stream, of which a new
        table has 4, and one more. With fewer, counts lag. Timeout: 30 seconds at least. Default:
        1,024 MiB and 1 minute; see `CounterApi` for what else differs from Lambda's defaults.
    quarantine_retention : Duration, optional
        How long records that could not be counted are kept for repair, 2 to 3,650 whole days; no longer than their
        event, but for 2 days at least, and in a bucket that is created for 7 to 30. Default: 90 days.
    on_failure_bucket : IBucket, optional
        Where Lambda sends batches it gives up on. Default: a bucket is created, encrypted and retained.
    verify_every : Duration, optional
        How often to compare all counts with their source items, 1 hour to 30 days in whole hours; an alarm says if they
        differ. Default: never.
    verify_sample : float, optional
        Share of the groups that are compared, above 0 and up to 1. Default: 1.
    alarm_actions : sequence of IAlarmAction, optional
        Actions of alarms. Default: none.
    dashboard : bool, optional
        Whether to create a dashboard. Default: no.

    Raises
    ------
    InvalidArgumentError
        If an argument is invalid, declarations contradict each other, or the table already has an aggregator.

    Examples
    --------
    >>> StreamAggregator(stack, "Aggregator", table=counters, aggregates=[VIEWS])  # doctest: +SKIP
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        table: DedupCounterTable,
        source_table: dynamodb.ITable | None = None,
        aggregates: Sequence[Declarable] = (),
        service_name: str | None = None,
        batch_size: int | None = None,
        max_batching_window: Duration | None = None,
        function_options: lambda_.FunctionOptions | None = None,
        quarantine_retention: Duration | None = None,
        on_failure_bucket: s3.IBucket | None = None,
        verify_every: Duration | None = None,
        verify_sample: float = 1,
        alarm_actions: Sequence[cloudwatch.IAlarmAction] = (),
        dashboard: bool = False,
    ) -> None:
        max_batching_window = Duration.seconds(1) if max_batching_window is None else max_batching_window
        timeout = timeout_of(function_options, Duration.minutes(1), 30, 900)
        quarantine_retention = Duration.days(90) if quarantine_retention is None else quarantine_retention

        require_instance("table", table, DedupCounterTable, "a DedupCounterTable")
        require_stream("table", table.table)
        if source_table is not None:
            require_stream("source_table", source_table)
        _require_aggregates(aggregates)
        if batch_size is not None:
            require_integer("batch_size", batch_size, 1, 10_000)
        require_duration("max_batching_window", max_batching_window, Duration.seconds(0), Duration.minutes(5))
        require_gathering(MAX_BATCH_SIZE if batch_size is None else batch_size, max_batching_window)
        require_duration("quarantine_retention", quarantine_retention, Duration.days(2), Duration.days(3650), "days")
        if on_failure_bucket is not None:
            require_interface("on_failure_bucket", on_failure_bucket, "IBucket", "a Bucket")
        super().__init__(scope, construct_id, service_name, function_options, alarm_actions)
        self._registration = Registry.of(table).connect(self, table.table)
        if source_table is not None:
            Registry.of(table).add_source(self, source_table, table.table)
            note_key_of_import(source_table)
        self.add_aggregate(*aggregates)

        self._bucket = on_failure_bucket or build_bucket(
            self, lambda: kept_days(self._registration, quarantine_retention)
        )
        Registry.of(table).add_bucket(self, self._bucket, of_aggregator=True)
        self._role = build_role(self, table.table, source_table, self._bucket)
        self._function = build_function(
            self,
            "Function",
            description="Counts a table's events from its stream",
            handler="aggregator",
            environment=build_environment(
                self,
                table.table,
                self._registration,
                quarantine_retention,
                self._bucket,
                source_table=source_table,
            ),
            role=self._role,
            memory_size=self.function_options.memory_size or 1024,
            timeout=timeout,
        )
        summarize(self._function, self._registration)
        # The declarations are complete only at synth.
        records = late_number(lambda: default_batch_size(self._registration)) if batch_size is None else batch_size
        self._mapping = build_mapping(
            self,
            "EventSourceMapping",
            table.table,
            self._bucket,
            batch_size=records,
            max_batching_window=max_batching_window,
        )
        self._source_mapping = None
        if source_table is not None:
            self._source_mapping = build_mapping(
                self,
                "SourceMapping",
                source_table,
                self._bucket,
                batch_size=batch_size or MAX_BATCH_SIZE,
                max_batching_window=max_batching_window,
            )
        watch = build_rules(self)
        self._verifier = build_verifier(self, table.table, source_table, every=verify_every, sample=verify_sample)
        specs = alarm_specs(self, watch=watch, verify_every=verify_every)
        self._alarms = build_alarms(self, specs, alarm_actions)
        self._dashboard = build_dashboard(self, graphs(self), self._alarms) if dashboard else None
        check_at_synth(self, lambda: incomplete_declarations(self._registration))
        check_at_synth(self, lambda: missing_ranking_index(self._registration))
        check_at_synth(self, lambda: misnamed_keys(self._registration, source_table) or second_mapping(self._function))
        warn_if_pages_gain_nothing(self, self._registration, batch_size)
        warn_if_corrections_may_count_twice(self, self._registration)
        if batch_size is not None:
            check_at_synth(self, lambda: oversized_batch(self._registration, batch_size))

    def add_aggregate(self, *aggregates: Declarable) -> None:
        """Declare more aggregates of the table.

        Parameters
        ----------
        *aggregates : Aggregate, Distinct, ActiveMembers, Percentiles or Extremes
            Aggregates to keep current.

        Raises
        ------
        InvalidArgumentError
            If an argument is not an aggregate, or contradicts another declaration of the table.

        Examples
        --------
        >>> aggregator.add_aggregate(VISITORS)  # doctest: +SKIP
        """
        _require_aggregates(aggregates)
        self._registration.add(*aggregates)

    @property
    def role(self) -> iam.Role:
        """The role of the function and of the event source mapping."""
        return self._role

    @property
    def on_failure_bucket(self) -> s3.IBucket:
        """The bucket for batches that Lambda gave up on."""
        return self._bucket


def _require_aggregates(aggregates: object) -> None:
    kinds = "Aggregate, Distinct, ActiveMembers, Percentiles or Extremes"
    for aggregate in require_sequence("aggregates", aggregates, f"a list of {kinds}"):
        if not isinstance(aggregate, Aggregate | Composite):
            allowed = f"an {kinds}; declare a Window with WindowedCounter"
            raise InvalidArgumentError("aggregates", aggregate, allowed)
