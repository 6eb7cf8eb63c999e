"""The options that all constructs with functions share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs

from cdk_dynamodb_counters._arguments import (
    require_choice,
    require_duration,
    require_instance,
    require_integer,
    require_interface,
    require_sequence,
)
from dynamodb_counters.errors import InvalidArgumentError

MAX_CONCURRENCY: Final = 100_000
"""Beyond any account's quota. A reservation of 0 would switch a function off."""

_PRIVATE: Final = "a VPC with private or isolated subnets: a function in a public one has no public address"
RUNTIMES: Final = (
    lambda_.Runtime.PYTHON_3_11,
    lambda_.Runtime.PYTHON_3_12,
    lambda_.Runtime.PYTHON_3_13,
    lambda_.Runtime.PYTHON_3_14,
)
"""Oldest first; the last one is the default."""

# Metrics are log lines without a level, which Lambda treats as INFO: a higher level would drop them.
# https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html
_LOG_LEVELS: Final = (lambda_.ApplicationLogLevel.INFO, lambda_.ApplicationLogLevel.DEBUG)


@dataclass(frozen=True, kw_only=True)
class FunctionOptions:
    """Options of a construct's functions, and of the roles and log groups that come with them.

    Each option brings the permissions that it needs.

    Parameters
    ----------
    memory_size : int, optional
        Memory of each function in MiB, 128 to 10,240. Default: 1,024 for `StreamAggregator`, 512 for the others.
    timeout : Duration, optional
        Maximum duration of an invocation: 30 seconds to 15 minutes for `StreamAggregator` and `ThresholdEvents`, 5
        seconds to 15 minutes for the consumer of `EventIngest`, 1 to 29 seconds for `CounterApi`. Default: 1 minute; 10
        seconds for `CounterApi`.
    runtime : Runtime, optional
        The Python version, 3.11 to 3.14. Default: 3.14.
    architecture : Architecture, optional
        The processor architecture. Default: ARM64.
    tracing : Tracing, optional
        Whether X-Ray traces the functions, which it bills by the trace. Default: no.
    log_level : ApplicationLogLevel, optional
        ``INFO`` or ``DEBUG``. Default: ``INFO``.
    log_retention : RetentionDays, optional
        How long logs are kept. Default: one month.
    vpc : IVpc, optional
        The functions' network. It must reach DynamoDB, from `StreamAggregator` also S3, with ``verify_every`` also
        DynamoDB Streams, from `EventIngest` also SQS; from `ThresholdEvents`, only EventBridge. Default: none.
    vpc_subnets : SubnetSelection, optional
        Private or isolated subnets of `vpc`. Default: all private ones, or else all isolated ones.
    security_groups : sequence of ISecurityGroup, optional
        Security groups in `vpc`, at least one. Default: a new one per function, which lets everything out, nothing in.
    reserved_concurrency : int, optional
        Invocations at a time, 1 to 100,000, kept free for each function, and the most it gets. Default: no reservation.
    environment_encryption : IKey, optional
        The key of the environment variables. Default: a key that Lambda owns.
    log_encryption_key : IKey, optional
        The key of the logs; its policy is extended. Default: a key that CloudWatch Logs owns.
    permissions_boundary : IManagedPolicy, optional
        The boundary of each role that the construct creates. Default: none.

    Raises
    ------
    InvalidArgumentError
        If an argument is invalid.

    Examples
    --------
    >>> large = FunctionOptions(memory_size=2048)
    >>> StreamAggregator(stack, "Aggregator", table=counters, function_options=large)  # doctest: +SKIP
    """

    memory_size: int | None = None
    timeout: Duration | None = None
    runtime: lambda_.Runtime | None = None
    architecture: lambda_.Architecture | None = None
    tracing: lambda_.Tracing = lambda_.Tracing.DISABLED
    log_level: lambda_.ApplicationLogLevel = lambda_.ApplicationLogLevel.INFO
    log_retention: logs.RetentionDays = logs.RetentionDays.ONE_MONTH
    vpc: ec2.IVpc | None = None
    vpc_subnets: ec2.SubnetSelection | None = None
    security_groups: Sequence[ec2.ISecurityGroup] | None = None
    reserved_concurrency: int | None = None
    environment_encryption: kms.IKey | None = None
    log_encryption_key: kms.IKey | None = None
    permissions_boundary: iam.IManagedPolicy | None = None

    def __post_init__(self) -> None:
        if self.memory_size is not None:
            require_integer("memory_size", self.memory_size, 128, 10_240)
        if self.timeout is not None:
            require_duration("timeout", self.timeout, Duration.seconds(1), Duration.minutes(15))
        if self.runtime is not None:
            name = require_instance("runtime", self.runtime, lambda_.Runtime, "a Runtime").name
            require_choice("runtime", name, [known.name for known in RUNTIMES])
        require_choice("log_level", self.log_level, _LOG_LEVELS)
        self._require_network()
        if self.reserved_concurrency is not None:
            require_integer("reserved_concurrency", self.reserved_concurrency, 1, MAX_CONCURRENCY)
        for argument in ("environment_encryption", "log_encryption_key"):
            if (key := getattr(self, argument)) is not None:
                require_interface(argument, key, "IKey", "a KMS key such as Key(self, 'Key')")
        if self.permissions_boundary is not None:
            require_interface("permissions_boundary", self.permissions_boundary, "IManagedPolicy", "a ManagedPolicy")

    def _require_network(self) -> None:
        if self.vpc is None:
            for argument in ("vpc_subnets", "security_groups"):
                if (value := getattr(self, argument)) is not None:
                    raise InvalidArgumentError(argument, value, "None unless vpc is given")
            return
        require_interface("vpc", self.vpc, "IVpc", "a Vpc")
        chosen = "vpc" if self.vpc_subnets is None else "vpc_subnets"
        wanted = ec2.SubnetSelection() if self.vpc_subnets is None else self.vpc_subnets
        require_instance("vpc_subnets", wanted, ec2.SubnetSelection, "a SubnetSelection")
        try:
            selected = _selected(self.vpc, wanted)
        except RuntimeError as error:
            raise InvalidArgumentError(chosen, self.vpc.node.path, f"{_PRIVATE} ({error})") from None
        if selected.has_public or not selected.subnets:
            raise InvalidArgumentError(chosen, self.vpc.node.path, _PRIVATE)
        if self.security_groups is None:
            return
        allowed = "a list of at least one SecurityGroup"
        groups = require_sequence("security_groups", self.security_groups, allowed)
        for group in groups:
            require_interface("security_groups", group, "ISecurityGroup", allowed)
        if not groups:
            raise InvalidArgumentError("security_groups", groups, allowed)


def is_isolated(options: FunctionOptions) -> bool:
    """Whether a function runs in a subnet without a way out of its network."""
    if options.vpc is None:
        return False
    isolated = {subnet.subnet_id for subnet in options.vpc.isolated_subnets}
    selected = _selected(options.vpc, options.vpc_subnets or ec2.SubnetSelection())
    return any(subnet.subnet_id in isolated for subnet in selected.subnets)


def _selected(vpc: ec2.IVpc, wanted: ec2.SubnetSelection) -> ec2.SelectedSubnets:
    return vpc.select_subnets(
        availability_zones=wanted.availability_zones,
        one_per_az=wanted.one_per_az,
        subnet_filters=wanted.subnet_filters,
        subnet_group_name=wanted.subnet_group_name,
        subnets=wanted.subnets,
        subnet_type=wanted.subnet_type,
    )


def options_of(given: object) -> FunctionOptions:
    """Return what a construct was given as ``function_options``, or the defaults."""
    if given is None:
        return FunctionOptions()
    return require_instance("function_options", given, FunctionOptions, "a FunctionOptions of cdk_dynamodb_counters")
