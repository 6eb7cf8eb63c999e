"""Where a construct's functions run, what encrypts what they hold, and what bounds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from cdk_dynamodb_counters._arguments import require_instance, require_integer, require_interface, require_sequence
from dynamodb_counters.errors import InvalidArgumentError

MAX_CONCURRENCY: Final = 100_000
"""Beyond any account's quota. A reservation of 0 would switch a function off."""

_PRIVATE: Final = "a VPC with private or isolated subnets: a function in a public one has no public address"
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html
_DESCRIBE: Final = ("ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets")
_MANAGE: Final = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:UnassignPrivateIpAddresses",
)


@dataclass(frozen=True, kw_only=True)
class FunctionSettings:
    """The arguments that all constructs with functions share; whatever they need is granted with them."""

    vpc: ec2.IVpc | None = None
    vpc_subnets: ec2.SubnetSelection | None = None
    security_groups: Sequence[ec2.ISecurityGroup] | None = None
    reserved_concurrency: int | None = None
    environment_encryption: kms.IKey | None = None
    log_encryption_key: kms.IKey | None = None
    permissions_boundary: iam.IManagedPolicy | None = None

    def __post_init__(self) -> None:
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
            selected = self.vpc.select_subnets(
                availability_zones=wanted.availability_zones,
                one_per_az=wanted.one_per_az,
                subnet_filters=wanted.subnet_filters,
                subnet_group_name=wanted.subnet_group_name,
                subnets=wanted.subnets,
                subnet_type=wanted.subnet_type,
            )
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

    def grant(self, role: iam.Role) -> None:
        """Allow a function's role what its network interfaces and its environment need."""
        if self.vpc is not None:
            # Only Lambda itself may: calls of the function's code name the function.
            # https://docs.aws.amazon.com/lambda/latest/dg/permissions-source-function-arn.html
            by_lambda = {"Null": {"lambda:SourceFunctionArn": "true"}}
            # Lambda documents no narrower resource than this for deleting an interface, and none for describing.
            anything = Stack.of(role).format_arn(service="ec2", resource="*", resource_name="*")
            for actions, resource in ((_DESCRIBE, "*"), (_MANAGE, anything)):
                role.add_to_policy(
                    iam.PolicyStatement(actions=list(actions), resources=[resource], conditions=by_lambda)
                )
        if self.environment_encryption is not None:
            self.environment_encryption.grant_decrypt(role)
