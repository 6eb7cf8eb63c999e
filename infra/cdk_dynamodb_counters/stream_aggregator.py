"""The consumer of a table's stream, and windows that it counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from aws_cdk import Annotations, Duration, Stack, Token, Tokenization
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk_dynamodb_counters._arguments import (
    require_duration,
    require_gathering,
    require_instance,
    require_integer,
    require_list,
)
from cdk_dynamodb_counters._functions import timeout_of
from cdk_dynamodb_counters._streams import StreamReader, grant_stream
from cdk_dynamodb_counters._synth import check_at_synth, late_text, late_value
from cdk_dynamodb_counters._tables import (
    TableDeclarations,
    is_import,
    property_of,
    require_same_place,
    require_stream,
    table_keys,
)
from cdk_dynamodb_counters.dedup_counter_table import DedupCounterTable, grant
from dynamodb_counters._assumptions import MOST_NAMES
from dynamodb_counters._declarations import Aggregate, Composite, Declarable, Items, Window, require_consistent
from dynamodb_counters._declarations.codec import described, encode
from dynamodb_counters._declarations.sources import OURS
from dynamodb_counters._items.schema import RANKING_INDEX
from dynamodb_counters.errors import InvalidArgumentError

_LONGEST_LOOK: Final = 7 * 24
"""Hours that CloudWatch looks back."""
_QUARTER: Final = Duration.minutes(15)
_TWO_PULSES: Final = Duration.minutes(30)
_MISSING: Final = cloudwatch.TreatMissingData


class StreamAggregator(StreamReader):
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
    aggregates : sequence of Aggregate, Distinct, ActiveMembers, Percentiles, Extremes or Ranks, optional
        Aggregates to keep current; `add_aggregate` and `WindowedCounter` add more. Default: none.
    service_name : str, optional
        Name in logs, and the ``service`` dimension of metrics. Default: the stack's name and the path in it.
    batch_size : int, optional
        Maximum records per invocation, 1 to 10,000; Lambda ends a batch at 6 MB. Default: 1,000.
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

    Raises
    ------
    InvalidArgumentError
        If an argument is invalid, declarations contradict each other, or the table already has an aggregator.

    Examples
    --------
    >>> StreamAggregator(stack, "Aggregator", table=counters, aggregates=[VIEWS])  # doctest: +SKIP
    """

    source_event_source_mapping: lambda_.EventSourceMapping | None
    """The mapping that invokes the function with the records of the source table's stream; None without one."""
    verifier: lambda_.Function | None
    """The function that compares counts with their source items; None without ``verify_every``."""
    role: iam.Role
    """The role of the function and of the event source mapping."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        table: DedupCounterTable,
        source_table: dynamodb.ITable | None = None,
        aggregates: Sequence[Declarable] = (),
        service_name: str | None = None,
        batch_size: int = 1000,
        max_batching_window: Duration | None = None,
        function_options: lambda_.FunctionOptions | None = None,
        quarantine_retention: Duration | None = None,
        on_failure_bucket: s3.IBucket | None = None,
        verify_every: Duration | None = None,
        verify_sample: float = 1,
        alarm_actions: Sequence[cloudwatch.IAlarmAction] = (),
    ) -> None:
        max_batching_window = Duration.seconds(1) if max_batching_window is None else max_batching_window
        quarantine_retention = Duration.days(90) if quarantine_retention is None else quarantine_retention
        timeout = timeout_of(function_options, Duration.minutes(1), 30, 900)
        if source_table is not None:
            require_stream("source_table", source_table)
        _require_aggregates(aggregates)
        require_integer("batch_size", batch_size, 1, 10_000)
        require_gathering(batch_size, max_batching_window)
        require_duration("quarantine_retention", quarantine_retention, Duration.days(2), Duration.days(3650), "days")
        if verify_every is not None:
            require_duration("verify_every", verify_every, Duration.hours(1), Duration.days(30), "hours")
        if isinstance(verify_sample, bool) or not isinstance(verify_sample, int | float) or not 0 < verify_sample <= 1:
            raise InvalidArgumentError("verify_sample", verify_sample, "a number above 0, up to 1")
        super().__init__(scope, construct_id, table, function_options, alarm_actions, service_name=service_name)
        self._source_table = source_table
        self._use_bucket(on_failure_bucket, quarantine_retention, counts=True)
        self._connect()
        self.add_aggregate(*aggregates)
        self.role = self._build_own_role()
        self.function = self._build_function(
            "Function",
            description="Counts a table's events from its stream",
            handler="aggregator",
            environment=self._environment(quarantine_retention),
            role=self.role,
            memory_size=1024 if (memory := self.function_options.memory_size) is None else memory,
            timeout=timeout,
        )
        # What is declared stands in the template as JSON: `cdk diff` then shows what a deployment changes.
        declared, resource = self._declarations, self.function.node.default_child
        assert isinstance(resource, lambda_.CfnFunction)
        resource.add_metadata("Declarations", late_value(lambda: described((*declared.events, *declared.declarations))))
        gathering, apart = (batch_size, max_batching_window), source_table is not None
        self.event_source_mapping = self._build_mapping("EventSourceMapping", table.table, *gathering, is_metered=apart)
        self.source_event_source_mapping = None
        if source_table is not None:
            self.source_event_source_mapping = self._build_mapping(
                "SourceMapping", source_table, *gathering, is_metered=apart
            )
        watch = None if self._is_emulated() else self._build_rules()
        self.verifier = None if verify_every is None else self._build_verifier(verify_every, verify_sample)
        self._add_alarms(watch, verify_every)
        problems = (self._incomplete_declarations, self._missing_index, self._misnamed_keys, self._second_mapping)
        for find_problem in problems:
            check_at_synth(self, find_problem)

    def add_aggregate(self, *aggregates: Declarable) -> None:
        """Declare more: `Aggregate`, `Distinct`, `ActiveMembers`, `Percentiles`, `Extremes`, `Ranks`."""
        _require_aggregates(aggregates)
        self._declarations.add(declarations=aggregates)

    def metric_iterator_age(self, **props: Any) -> cloudwatch.Metric:
        """Return how far counting lags behind the events, in milliseconds; at 23 hours Lambda gives up on records."""
        return self.function.metric("IteratorAge", **{"statistic": "Maximum", **props})

    def metric_uncounted(self, **props: Any) -> cloudwatch.Metric:
        """Count entries in quarantine, or objects in the on-failure bucket, that wait for repair."""
        return self.metric("Uncounted", **{"statistic": "Maximum", **props})

    def _connect(self) -> None:
        """Become the table's aggregator; refuse a second one, of another replica too."""
        declarations, table, source = self._declarations, self._table, self._source_table
        if (first := declarations.aggregator) is not None:
            allowed = (
                "one StreamAggregator per table, because a stream serves two consumers at most, and one for all of its "
                f"replicas, because they share their items; declare the aggregates to the one at {first.node.path!r} "
                "with aggregates= or add_aggregate()"
            )
            raise InvalidArgumentError("table", self.node.path, allowed)
        declarations.add_reader("table", self, table)
        declarations.aggregator = self
        if source is None:
            return
        require_same_place("source_table", self, source, any_account=True)
        # Two imports of a table are two objects.
        if str(source.table_stream_arn) == str(table.table_stream_arn):
            allowed = "another table than table; its own items are counted without it"
            raise InvalidArgumentError("source_table", source.node.path, allowed)
        TableDeclarations.of(source).add_reader("source_table", self, source)
        if is_import(source) and source.encryption_key is None:
            Annotations.of(source).add_info(
                "If a key of yours encrypts the imported source table, import it with encryption_key=. A table of "
                "another account whose key AWS manages cannot be read. Synth cannot check either."
            )

    def _build_own_role(self) -> iam.Role:
        role = self._build_role("Role", "Reads a table's stream and writes counts to the table")
        grant_stream(role, self._table)
        if (source := self._source_table) is not None:
            grant_stream(role, source)
            role.add_to_policy(iam.PolicyStatement(actions=["dynamodb:DescribeTable"], resources=[_arn_of(source)]))
            if source.encryption_key is not None:
                source.encryption_key.grant_decrypt(role)
        actions = ("BatchGetItem", "DescribeTable", "GetItem", "PartiQLUpdate", "PutItem", "Query", "UpdateItem")
        grant(self._table, role, *actions)
        self._grant_failures(role)
        return role

    def _environment(self, quarantine_retention: Duration) -> dict[str, str]:
        environment = {
            "TABLE_NAME": self._table.table_name,
            "DECLARATIONS": late_text(lambda: encode(self._declarations.armed, attributes=True)),
            "QUARANTINE_RETENTION_DAYS": Tokenization.stringify_number(quarantine_retention.to_days()),
            "ON_FAILURE_BUCKET": self.on_failure_bucket.bucket_name,
        }
        if self._source_table is not None:
            environment["SOURCE_TABLE_ARN"] = _arn_of(self._source_table)
        if self._is_emulated():
            environment["SINGLE_SHARD"] = "true"
        return environment

    def _build_rules(self) -> lambda_.Alias:
        """Build the rules that invoke the function next to its stream; return what watches, which has own metrics."""
        events.Rule(
            self,
            "Deployed",
            description="Registers the names that a deployment of this stack has brought",
            # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/event-detail-stack-status-change.html
            event_pattern=events.EventPattern(
                source=["aws.cloudformation"],
                detail_type=["CloudFormation Stack Status Change"],
                detail={
                    "stack-id": [Stack.of(self).stack_id],
                    "status-details": {"status": ["CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"]},
                },
            ),
            targets=[targets.LambdaFunction(self.function)],
        )
        alias = lambda_.Alias(self, "WatchAlias", alias_name="watch", version=self.function.latest_version)
        events.Rule(
            self,
            "Watch",
            description="Counts what waits in quarantine and in the on-failure bucket; gives the stream a pulse",
            schedule=events.Schedule.rate(_QUARTER),
            targets=[targets.LambdaFunction(alias)],
        )
        return alias

    def _build_verifier(self, every: Duration, sample: float) -> lambda_.Function:
        """Build the function that verifies, and the rules that have it begin and go on."""
        table, source = self._table, self._source_table
        role = self._build_role("VerifierRole", "Compares a table's counts with their source items")
        # A source table's stream is read to the end, as it gets no heartbeat.
        granted = [([str(table.table_stream_arn)], ["DescribeStream"])]
        if source is not None:
            granted.append(([source.table_arn], ["DescribeTable", "Scan"]))
            granted.append(([str(source.table_stream_arn)], ["DescribeStream", "GetRecords", "GetShardIterator"]))
            if source.encryption_key is not None:
                source.encryption_key.grant_decrypt(role)
        for resources, names in granted:
            actions = [f"dynamodb:{name}" for name in names]
            role.add_to_policy(iam.PolicyStatement(actions=actions, resources=resources))
        grant(table, role, "BatchGetItem", "DescribeTable", "GetItem", "PutItem", "Query", "Scan")
        function = self._build_function(
            "Verifier",
            description="Compares a table's counts with their source items",
            handler="verifier",
            environment={"TABLE_NAME": table.table_name, "SAMPLE": str(sample)},
            role=role,
            # Half a million groups are held at a time.
            memory_size=2048,
            timeout=_QUARTER,
        )
        for construct_id, description, rate in (
            ("Verify", "Begins to compare counts with their source items", every),
            # As long as an invocation may take.
            ("GoOn", "Goes on comparing", _QUARTER),
        ):
            begin = events.RuleTargetInput.from_object({"begin": construct_id == "Verify"})
            target, schedule = targets.LambdaFunction(function, event=begin), events.Schedule.rate(rate)
            events.Rule(self, construct_id, description=description, schedule=schedule, targets=[target])
        return function

    def _add_alarms(self, watch: lambda_.Alias | None, verify_every: Duration | None) -> None:
        """Add the alarms for counts that are or will be wrong."""
        self._add_alarm(
            "LagAlarm",
            # The record of the watch's pulse is in each period, unless nothing polls the stream or nothing watches.
            self.metric_iterator_age(period=_TWO_PULSES),
            "Counting is an hour behind the events, or Lambda has not polled the stream for half an hour. At 23 hours, "
            "Lambda gives up on records.",
            threshold=Duration.hours(1).to_milliseconds(),
            treat_missing_data=_MISSING.BREACHING,
        )
        self._add_alarm(
            "DroppedAlarm",
            self.function.metric("DestinationDeliveryFailures", statistic="Sum"),
            "Lambda gave up on records and could not send them to the on-failure bucket. They are lost.",
        )
        self._add_alarm(
            "UncountedAlarm",
            self.metric_uncounted(),
            "Records wait for repair, in quarantine or in the on-failure bucket, and counts lack them. The log of the "
            "function says where.",
            # Of 5 minutes; what waits is reported every 15.
            evaluation_periods=9,
            datapoints_to_alarm=1,
        )
        self._add_alarm(
            "DefinitionAlarm",
            self.metric("DefinitionChanged", statistic="Maximum"),
            "Code declares a name otherwise than the table counts it, or one that contradicts what is counted: it is "
            "not counted so. Give it another name. The log of the function names it.",
        )
        if watch is not None:
            errors = watch.metric_errors(period=_QUARTER)
            self._add_schedule_alarm("WatchAlarm", errors, "looks for records that wait for repair")
        if self.source_event_source_mapping is not None:
            # Each stream by itself: the age of records is one metric of both.
            self._add_polling_alarm("PollingAlarm", self.event_source_mapping, "the stream")
            self._add_polling_alarm("SourcePollingAlarm", self.source_event_source_mapping, "the source table's stream")
        if verify_every is not None and self.verifier is not None:
            self._add_alarm(
                "DriftAlarm",
                self.metric("Drift", statistic="Maximum"),
                "A verification has found groups that differ from their source items. Look at them and repair them.",
                treat_missing_data=_MISSING.IGNORE,
            )
            errors = self.verifier.metric_errors(period=_QUARTER)
            self._add_schedule_alarm("VerifierAlarm", errors, "verifies")
            # Two verifications, of which each is given up after 20 hours; CloudWatch cannot look back further.
            hours = 0 if verify_every.is_unresolved() else 2 * int(verify_every.to_hours()) + 24
            if 0 < hours <= _LONGEST_LOOK:
                self._add_alarm(
                    "VerificationAlarm",
                    self.metric("GroupsVerified", period=Duration.hours(1), statistic="SampleCount"),
                    "Two verifications are due that have not come to an end.",
                    evaluation_periods=hours,
                    below=True,
                )

    def _add_schedule_alarm(self, construct_id: str, errors: cloudwatch.Metric, does: str) -> None:
        """Add an alarm on what only a schedule invokes: Lambda meters the errors of each invocation, 0 if none."""
        description = f"For 45 minutes, the function that {does} has failed, or has not run."
        missing = _MISSING.BREACHING
        self._add_alarm(construct_id, errors, description, evaluation_periods=3, treat_missing_data=missing)

    def _incomplete_declarations(self) -> str | None:
        """Find an aggregator without declarations, or with one whose source is not declared."""
        declared = self._declarations
        require_consistent(declared.declarations, declared.events)
        if (names := len(declared.declarations) + len(declared.thresholds)) > MOST_NAMES:
            return f"invalid number of names, {names}: expected at most {MOST_NAMES} aggregates, windows and thresholds"
        if declared.declarations:
            return None
        return "nothing is counted: pass aggregates=, call add_aggregate() or add a WindowedCounter for the table"

    def _missing_index(self) -> str | None:
        """Find a ranked aggregate on a table of the same app that lacks the ranking index."""
        table = self._declarations.table
        aggregates = (item for item in self._declarations.declarations if isinstance(item, Aggregate))
        ranked = [aggregate.name for aggregate in aggregates if aggregate.ranking is not None]
        indexes = property_of(table, "globalSecondaryIndexes") or ()
        if not ranked or is_import(table) or RANKING_INDEX in [index["indexName"] for index in indexes]:
            return None
        problem = f"the table has no {RANKING_INDEX!r} index, which {', '.join(map(repr, ranked))} needs"
        return f"{problem}: create the table with ranking_index=True"

    def _misnamed_keys(self) -> str | None:
        """Find items whose keys are named otherwise than those of their table; or a source table without items."""
        sources = [declared.source for declared in self._declarations.declarations]
        counted = {source.name: source for source in sources if isinstance(source, Items)}
        if (table := self._source_table) is None:
            expected, where = OURS, "source_table= of the StreamAggregator, which names the table they lie in"
        elif not counted:
            return "nothing of source_table is counted: declare an aggregate or window whose source is Items"
        elif is_import(table):
            return None
        else:
            expected, _ = table_keys(table)
            where = f"those of the source table {table.node.path!r}: keys={expected!r}"
        for name, items in counted.items():
            if items._table_keys != expected:
                return f"{InvalidArgumentError('keys', items._table_keys, where)} (items {name!r})"
        return None

    def _second_mapping(self) -> str | None:
        """Find a mapping that other code has added to the function."""
        children = self.function.node.children
        added = [child.node.id for child in children if isinstance(child, lambda_.EventSourceMapping)]
        if not added:
            return None
        return (
            f"the function has another event source mapping, {added[0]!r}, and records that one delivers before the "
            "other are lost: remove it, the construct has a mapping for each stream"
        )


def _arn_of(table: dynamodb.ITable) -> str:
    """Return a table's ARN; for an import, the one within its stream's ARN, as in records."""
    stream = str(table.table_stream_arn)
    return table.table_arn if Token.is_unresolved(stream) else stream.partition("/stream/")[0]


def _require_aggregates(aggregates: object) -> None:
    kinds = "a list of Aggregate, Distinct, ActiveMembers, Percentiles, Extremes or Ranks"
    require_list("aggregates", aggregates, Aggregate | Composite, f"{kinds}; declare a Window with WindowedCounter")


class WindowedCounter(Construct):
    """Counts a table's events by time: "how many in the last 24 hours".

    The table's `StreamAggregator` keeps the counts. Either may be created first, in any stack of the app.

    Parameters
    ----------
    scope, construct_id
        Parent construct, and id within it.
    table : DedupCounterTable
        The table that stores the events and the window's buckets.
    window : Window
        Events to count, by which time, and how long to keep the counts.

    Examples
    --------
    >>> WindowedCounter(stack, "Rolling", table=counters, window=JOBS_24H)  # doctest: +SKIP
    """

    window: Window
    """The window, to pass to the runtime's reads."""

    def __init__(self, scope: Construct, construct_id: str, *, table: DedupCounterTable, window: Window) -> None:
        require_instance("table", table, DedupCounterTable)
        require_stream("table", table.table)
        require_instance("window", window, Window)
        super().__init__(scope, construct_id)
        require_same_place("table", self, table.table)
        self.window = window
        declared = TableDeclarations.of(table.table)
        declared.add(declarations=[window])
        problem = f"window {window.name!r} is never counted"
        check_at_synth(self, lambda: declared.require_aggregator(table.node.path, problem))
