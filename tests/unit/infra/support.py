"""Apps and template helpers for the tests of the constructs."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Template
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer
from constructs import Construct

from cdk_dynamodb_counters import CounterApi, DedupCounterTable, EventIngest, StreamAggregator, ThresholdEvents
from cdk_dynamodb_counters.stream_aggregator import WindowedCounter
from dynamodb_counters import Items, TableKeys
from dynamodb_counters._declarations.codec import decode
from tests.unit.infra.declared import POPULAR, ROLLING, VIEW, VIEWS

_Built = TypeVar("_Built")

PROJECT = Path(__file__).resolve().parents[3]

# A bare App() does not read cdk.json: tests and deployments would synthesize different templates.
CONTEXT: dict[str, Any] = json.loads((PROJECT / "cdk.json").read_text())["context"]

REQUIRED: dict[Any, tuple[str, dict[str, Any]]] = {
    DedupCounterTable: ("Counters", {}),
    StreamAggregator: ("Aggregator", {"aggregates": [VIEWS]}),
    ThresholdEvents: ("Crossed", {"thresholds": [POPULAR]}),
    WindowedCounter: ("Rolling", {"window": ROLLING}),
    EventIngest: ("Ingest", {"event": VIEW, "authorizer": HttpIamAuthorizer()}),
    CounterApi: ("Api", {"shown": [VIEWS]}),
}
"""Id and required arguments of each construct, but for its table."""

ORDER = Items("order", keys=TableKeys("id", ttl="expiresAt"))
STRING, NUMBER = dynamodb.AttributeType.STRING, dynamodb.AttributeType.NUMBER


def copy_of_project(target: Path, *names: str) -> Path:
    """Copy some files and folders of the project."""
    target.mkdir(parents=True)
    for name in names:
        if (PROJECT / name).is_dir():
            shutil.copytree(PROJECT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(PROJECT / name, target / name)
    return target


@cache
def _output() -> str:
    # All apps of a process share a directory, so the runtime asset is copied once, not by every test.
    output = tempfile.mkdtemp(prefix="dynamodb-counters-tests-")
    atexit.register(shutil.rmtree, output, ignore_errors=True)
    return output


def new_app(**context: object) -> App:
    """Create an app with the project's feature flags and no version reporting."""
    return App(context=CONTEXT | context, analytics_reporting=False, outdir=_output())


def new_stack(name: str = "Test", *, region: str | None = None, **context: object) -> Stack:
    """Create a stack in its own app."""
    return Stack(new_app(**context), name, env=Environment(region=region))


def build(construct: Callable[..., _Built], scope: Construct, /, **arguments: Any) -> _Built:
    """Build a construct from what it requires, its table included unless it is given."""
    construct_id, required = REQUIRED[construct]
    if construct is not DedupCounterTable and "table" not in arguments:
        arguments["table"] = DedupCounterTable(scope, "Counters")
    return construct(**{"scope": scope, "construct_id": construct_id, **required, **arguments})


def new_role(scope: Stack, construct_id: str = "Role", **more: Any) -> iam.Role:
    return iam.Role(scope, construct_id, assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"), **more)


def private_vpc(scope: Stack) -> ec2.Vpc:
    """Build a network without a way out."""
    isolated = ec2.SubnetConfiguration(name="isolated", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
    # CDK would restrict the default group by a function of its own.
    return ec2.Vpc(scope, "Vpc", subnet_configuration=[isolated], restrict_default_security_group=False)


def synthesized(scope: Construct) -> Template:
    """Return the template of the stack that ``scope`` is or is in."""
    return Template.from_stack(Stack.of(scope))


def problem(scope: Construct) -> str:
    """Return what synth refuses."""
    with pytest.raises(RuntimeError) as failed:
        synthesized(scope)
    return str(failed.value)


def specs(template: Template, resource_type: str) -> list[dict[str, Any]]:
    """Return the properties of all resources of a type."""
    return [resource["Properties"] for resource in template.find_resources(resource_type).values()]


def properties(template: Template, resource_type: str) -> dict[str, Any]:
    """Return the properties of the only resource of a type."""
    [spec] = specs(template, resource_type)
    return spec


def actions(statement: dict[str, Any]) -> list[str]:
    action = statement["Action"]
    return [action] if isinstance(action, str) else list(action)


def granted(template: Template) -> list[tuple[str, Any]]:
    """Return each action that identity policies allow, with its resource."""
    policies = [policy["PolicyDocument"]["Statement"] for policy in specs(template, "AWS::IAM::Policy")]
    return [(action, rule["Resource"]) for statements in policies for rule in statements for action in actions(rule)]


def environment(template: Template) -> dict[str, Any]:
    """Return the environment of the only function."""
    variables: dict[str, Any] = properties(template, "AWS::Lambda::Function")["Environment"]["Variables"]
    return variables


def declared(template: Template) -> list[str]:
    """Return the names of what the only function counts."""
    return [declaration.name for declaration in decode(environment(template)["DECLARATIONS"])]
