"""Apps, declarations and template helpers for the tests of the constructs."""

from __future__ import annotations

import atexit
import json
import re
import shutil
import tempfile
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from aws_cdk import App, Environment, Stack
from aws_cdk.assertions import Template

from cdk_dynamodb_counters import DedupCounterTable, StreamAggregator
from dynamodb_counters._declarations import Aggregate, Count, Event, Ranking, Window
from dynamodb_counters._declarations.codec import decode

PROJECT = Path(__file__).resolve().parents[3]

# A bare App() does not read cdk.json: tests and deployments would synthesize different templates.
CONTEXT: dict[str, Any] = json.loads((PROJECT / "cdk.json").read_text())["context"]

VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}", retention=timedelta(days=7))
VIEWS = Aggregate("views", VIEW, pk="URL#{url}", sk="STATISTICS", measures={"views": Count()})
SITE = Aggregate("site", VIEW, pk="SITE", sk="STATISTICS", measures={"site_views": Count()})
TOP = Aggregate(
    "top",
    VIEW,
    pk="URL#{url}",
    sk="TOP",
    measures={"views": Count()},
    ranking=Ranking(by="views", leaderboard="URLS"),
)
ROLLING = Window("rolling", VIEW, pk="URL#{url}", time="time", retention=timedelta(hours=25))


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


def counting_stack(**arguments: Any) -> tuple[Stack, DedupCounterTable, StreamAggregator]:
    stack = new_stack()
    counters = DedupCounterTable(stack, "Counters")
    return stack, counters, StreamAggregator(stack, "Aggregator", table=counters, aggregates=[VIEWS], **arguments)


def synthesized(stack: Stack) -> Template:
    return Template.from_stack(stack)


def properties(template: Template, resource_type: str) -> dict[str, Any]:
    """Return the properties of the only resource of a type."""
    [resource] = template.find_resources(resource_type).values()
    found: dict[str, Any] = resource["Properties"]
    return found


def statements(template: Template) -> list[dict[str, Any]]:
    """Return all statements of all identity policies."""
    policies = template.find_resources("AWS::IAM::Policy").values()
    return [statement for policy in policies for statement in policy["Properties"]["PolicyDocument"]["Statement"]]


def actions(statement: dict[str, Any]) -> list[str]:
    action = statement["Action"]
    return [action] if isinstance(action, str) else list(action)


def environment(template: Template) -> dict[str, Any]:
    """Return the environment of the only function."""
    variables: dict[str, Any] = properties(template, "AWS::Lambda::Function")["Environment"]["Variables"]
    return variables


def declared(template: Template) -> list[str]:
    """Return the names of what the only function counts."""
    return [declaration.name for declaration in decode(environment(template)["DECLARATIONS"])]


def normalized(value: Any) -> Any:
    """Replace what depends on the runtime's code rather than the template: asset hashes and encoded declarations."""
    if isinstance(value, list):
        return [normalized(part) for part in value]
    if isinstance(value, dict):
        return {
            name: [repr(d) for d in decode(part)] if name == "DECLARATIONS" and part else normalized(part)
            for name, part in value.items()
        }
    return re.sub(r"[0-9a-f]{64}", "<hash>", value) if isinstance(value, str) else value
