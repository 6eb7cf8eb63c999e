"""How many in the last hours."""

from __future__ import annotations

import jsii
from aws_cdk import Duration, IStableStringProducer, Lazy
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from constructs import Construct, IValidation

from cdk_dynamodb_counters._arguments import require_instance, require_place
from cdk_dynamodb_counters._metrics import counters_metric
from cdk_dynamodb_counters._registry import Registration, Registry
from cdk_dynamodb_counters.dedup_counter_table import DedupCounterTable
from dynamodb_counters._declarations import Window
from dynamodb_counters._timeline.cost_estimate import CostEstimate


class WindowedCounter(Construct):
    """Counts of a table by time: "how many in the last 24 hours", kept by the table's `StreamAggregator`.

    It may stand in any stack of the app, before or after the aggregator.

    Parameters
    ----------
    scope : Construct
        Where it stands.
    construct_id : str
        Its name there.
    table : DedupCounterTable
        The table that holds the events, and the window's buckets.
    window : Window
        What is counted, and how long its buckets are kept.

    Attributes
    ----------
    window : Window
        The window, as the runtime's reads take it.
    arithmetic : CostEstimate
        The tiers it keeps, and what they cost to write and to read.

    Raises
    ------
    InvalidArgumentError
        An argument is not allowed, or the window contradicts another declaration of the table.

    Examples
    --------
    >>> WindowedCounter(stack, "Rolling", table=counters, window=JOBS_24H)  # doctest: +SKIP
    """

    def __init__(self, scope: Construct, construct_id: str, *, table: DedupCounterTable, window: Window) -> None:
        require_place(scope, construct_id)
        require_instance("table", table, DedupCounterTable, "a DedupCounterTable")
        require_instance("window", window, Window, "a Window")
        super().__init__(scope, construct_id)
        self._table = table
        self._window = window
        registration = Registry.of(table).registration(table)
        registration.add(window)
        self._registration = registration
        self.node.add_validation(_Wired(registration, window, table.node.path))

    @property
    def window(self) -> Window:
        """The window, as the runtime's reads take it."""
        return self._window

    @property
    def arithmetic(self) -> CostEstimate:
        """The tiers it keeps, and what they cost to write and to read."""
        return self._window.cost_estimate

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow to read the window, as `DedupCounterTable.grant_read_counts` does.

        Parameters
        ----------
        grantee : IGrantable
            A function or role.

        Returns
        -------
        Grant
            What was granted.
        """
        return self._table.grant_read_counts(grantee)

    def metric_late_events(self, *, period: Duration | None = None, statistic: str = "Sum") -> cloudwatch.Metric:
        """Give the events that came after the retention of their bucket, over all windows of the table.

        Parameters
        ----------
        period : Duration, optional
            Default: 5 minutes.
        statistic : str, optional
            Default: the sum.

        Returns
        -------
        Metric
            For a graph or an alarm.
        """
        # The aggregator may come later in the program, so its name is asked for at synthesis.
        name = Lazy.string(_ServiceName(self._registration))
        return counters_metric("LateEvents", name, period, statistic)


@jsii.implements(IStableStringProducer)
class _ServiceName:
    def __init__(self, registration: Registration) -> None:
        self._registration = registration

    def produce(self) -> str | None:
        aggregator = self._registration.aggregator
        return None if aggregator is None else aggregator.service_name


@jsii.implements(IValidation)
class _Wired:
    def __init__(self, registration: Registration, window: Window, table_path: str) -> None:
        self._registration = registration
        self._window = window
        self._table_path = table_path

    def validate(self) -> list[str]:
        if self._registration.aggregator is not None:
            return []
        problem = f"window {self._window.name!r} is never counted: the table at {self._table_path!r} has no aggregator"
        return [f"{problem}; create a StreamAggregator with that table anywhere in the app"]
