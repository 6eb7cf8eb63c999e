"""Each role allows what its function calls, and each grant its job, and nothing else: the calls are noted."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Final

import pytest
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms

from cdk_dynamodb_counters import DedupCounterTable
from counters_lambda.counting.batch import Aggregator
from dynamodb_counters import Aggregate, Count, Counter, Counters, Event, Packed, Quota, Sum, Window
from dynamodb_counters._declarations.codec import decode
from dynamodb_counters._erasure import Eraser
from dynamodb_counters._table import Table
from tests.gate import jobs
from tests.gate.jobs import Calls, Permission
from tests.gate.template import Resource, Template, granted, references, variables
from tests.gate.templates import names, templates
from tests.unit.fold.streams import image, record
from tests.unit.infra.support import new_role, new_stack, synthesized

_RUN_IN: Final = {
    "aggregator": "aggregator_minimal",
    "api": "api_everything",
    "ingest_http": "ingest_minimal",
    "ingest_queue": "ingest_minimal",
    "ingest_queue, packed": "ingest_packed",
    "notifier": "thresholds_minimal",
    "verifier": "aggregator_verified",
}
"""The template that each handler runs in."""
_KEY_ACTIONS: Final = "kms:"
_ENCRYPTED: Final = ("AWS::DynamoDB::GlobalTable", "AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SQS::Queue")

VIEW = Event("view", pk="URL#{url}", sk="T#{time}")
HIT = Event("hit", pk="HIT#{url}", sk="T#{time}", packed=Packed("time"))
VIEWS = Aggregate("views", VIEW, pk="URL#{url}", sk="STATISTICS", measures={"views": Count(), "bytes": Sum("bytes")})
ROLLING = Window("rolling", VIEW, pk="URL#{url}", time="time")
STOCK = Counter("stock", by="sku")
TIME = "2026-01-01T00:00:00Z"
VALUES = {"url": "/", "time": TIME, "bytes": 1}


def handler(function: Resource) -> str:
    """Return the handler, and whether its events are packed: other calls write them."""
    name = str(function["Handler"]).split(".")[-2]
    declared = decode(variables(function)["DECLARATIONS"]) if name == "ingest_queue" else ()
    packed = any(getattr(declaration, "packed", None) is not None for declaration in declared)
    return f"{name}, packed" if packed else name


@cache
def called(name: str) -> Calls:
    """Return what a handler calls, and the metrics that it emits."""
    template = templates()[_RUN_IN[name]]
    [function] = [item for item in template.functions() if handler(item) == name or f"{handler(item)}, packed" == name]
    return jobs.run(template, function)


def allowed(template: Template, function: Resource) -> set[Permission]:
    """Permissions by the policies of a function's role, but for keys."""
    permissions = {(action, template.named(resource)) for action, resource in template.allowed(function["Role"])}
    return {(action, resource) for action, resource in permissions if not action.startswith(_KEY_ACTIONS)}


def of_services(template: Template, function: Resource) -> Iterator[Permission]:
    """Permissions that Lambda itself uses of a function's role.

    Logs and traces: https://docs.aws.amazon.com/lambda/latest/dg/lambda-intro-execution-role.html
    Streams: https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html
    Queues: https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
    Destinations: https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-errors.html
    Networks: https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html
    """
    yield from (("logs:CreateLogStream", "log group"), ("logs:PutLogEvents", "log group"))
    if (function["TracingConfig"] or {}).get("Mode") == "Active":
        yield from (("xray:PutTelemetryRecords", "*"), ("xray:PutTraceSegments", "*"))
    if function["VpcConfig"]:
        describes = ("DescribeNetworkInterfaces", "DescribeSubnets")
        interfaces = ("CreateNetworkInterface", "DeleteNetworkInterface")
        addresses = ("AssignPrivateIpAddresses", "UnassignPrivateIpAddresses")
        yield from ((f"ec2:{action}", "*") for action in describes)
        yield from ((f"ec2:{action}", "network") for action in (*interfaces, *addresses))
    for mapping, target in template.mappings("stream"):
        if target is function:
            stream = template.named(mapping["EventSourceArn"])
            reads = ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")
            yield from ((f"dynamodb:{action}", stream) for action in reads)
            yield from (("s3:ListBucket", "bucket"), ("s3:PutObject", "bucket/*"))
    for _, target in template.mappings("queue"):
        if target is function:
            polls = ("DeleteMessage", "GetQueueAttributes", "ReceiveMessage")
            yield from ((f"sqs:{action}", "queue") for action in polls)


def needed(template: Template, function: Resource) -> set[Permission]:
    """Return what a function and the services around it need, of what is in its template."""
    permissions = {*called(handler(function)).permissions, *of_services(template, function)}
    if "SOURCE_TABLE_ARN" in variables(function):
        # Once, before it registers the first names: tests/exactly_once/test_backfill_source.py.
        permissions.add(("dynamodb:DescribeTable", "source table"))
    elif not any(template.instances("DynamoDB::Table")):
        permissions = {permission for permission in permissions if not permission[1].startswith("source table")}
    if not any("GlobalSecondaryIndexes" in table.properties for table in template.instances("DynamoDB::GlobalTable")):
        permissions = {permission for permission in permissions if "/index/" not in permission[1]}
    return permissions


def _covers(granted: Permission, need: Permission) -> bool:
    return granted[0] == need[0] and fnmatchcase(need[1], granted[1])


def keys(template: Template, function: Resource) -> tuple[set[str], set[str]]:
    """Return the keys that a function's role may use, and those of what it touches."""
    policies = template.allowed(function["Role"])
    usable = {name for action, of in policies if action.startswith(_KEY_ACTIONS) for name in references(of)}
    touched = {name for _, of in policies for name in references(of)} & {*template.resources}
    stored = [template.resources[name] for name in touched]
    encrypted = [resource.properties for resource in stored if resource.type in _ENCRYPTED]
    mentioned = references([function["KmsKeyArn"], *encrypted])
    return usable, {key.id for key in template.instances("KMS::Key") if key.id in mentioned}


@pytest.mark.parametrize("template", names())
def test_each_role_fits_what_its_function_does(template: str) -> None:
    whole = templates()[template]
    for function in whole.functions():
        allows, needs = allowed(whole, function), needed(whole, function)
        denied = {need for need in needs if not any(_covers(permission, need) for permission in allows)}
        assert denied == set(), f"{function.id} may not"
        unused = {permission for permission in allows if not any(_covers(permission, need) for need in needs)}
        assert unused == set(), f"{function.id} may, and does not"
        usable, encrypted = keys(whole, function)
        assert usable == encrypted, f"{function.id}: keys"


def _batch(first: int, *sizes: int | str) -> dict[str, Any]:
    images = [image("view", pk="URL#/", sk=f"T#{TIME}", url="/", time=TIME, bytes=size) for size in sizes]
    records = [record(10**21 + number, new, created=time.time()) for number, new in enumerate(images, start=first)]
    return {"Records": records, "shardId": "shardId-1", "state": {}}


def _accept_packed(counters: Counters) -> None:
    assert [outcome.status for outcome in counters.accept_many(HIT, [VALUES, VALUES])] == ["accepted", "duplicate"]
    # Another process, which reads what this one has written.
    again = Counters("table", client=counters._table.client)
    assert again.accept(HIT, VALUES).status == "duplicate"
    assert again.retract(HIT, VALUES)


def _redrive(counters: Counters) -> None:
    [entry, *_] = counters.quarantined()
    assert counters.redrive(entry)


def _erase(counters: Counters) -> None:
    counters.accept(VIEW, VALUES)
    counters.accept_many(HIT, [VALUES])
    for event in (VIEW, HIT):
        erased = Eraser(counters._table, event, {"time": TIME}).erase("keep")
        assert (erased.events + erased.packed, bool(erased.quarantined)) == (1, event == VIEW)


def _read(counters: Counters) -> None:
    counters.get(VIEWS, {"url": "/"})
    counters.get_many([(VIEWS, {"url": url}) for url in "ab"])
    counters.window(ROLLING, url="/").last(timedelta(hours=24))
    assert [*counters.events(VIEW, {"url": "/"}), *counters.events(HIT)] == []
    assert counters.explain(VIEWS, {"url": "/"}).difference


def _lease(counters: Counters) -> None:
    with counters.leases(Quota("calls", limit=10, per="day", by=("customer",)), {"customer": "c1"}) as leases:
        assert [leases.take(), leases.take(2)] == [True, True]


GRANTS: Final[dict[str, tuple[Callable[[Counters], object], tuple[Event, ...]]]] = {
    "accept": (lambda counters: (counters.accept(VIEW, VALUES), counters.accept_many(VIEW, [VALUES])), (VIEW,)),
    "accept, packed": (_accept_packed, (HIT,)),
    "record_once": (lambda counters: counters.record_once(VIEW, VALUES, [VIEWS, ROLLING]), ()),
    "increment": (lambda counters: counters.increment(STOCK, sku="a"), ()),
    "erase": (_erase, ()),
    "leases": (_lease, ()),
    "retract": (lambda counters: counters.retract(VIEW, VALUES), ()),
    "reset": (lambda counters: (counters.increment(STOCK, sku="a"), counters.reset(STOCK, sku="a")), ()),
    "redrive": (_redrive, ()),
    "read": (_read, ()),
}
"""The job of each grant, and the events that it names."""


@pytest.mark.parametrize("grant", GRANTS)
def test_each_grant_fits_its_job(grant: str) -> None:
    calls, (job, events) = Calls(), GRANTS[grant]
    client: Any = jobs.table_of(Calls())
    aggregator = Aggregator(Table("table", client), (VIEWS, ROLLING, STOCK), quarantine_retention_seconds=86_400.0)
    # One is counted, one quarantined; the second batch's sum has more digits than an item can hold.
    for batch in (_batch(1, 1, "x"), _batch(3, 10**38 - 1, 10**38 - 1)):
        aggregator.handle(batch)
    if grant == "erase":  # Nothing is erased while a copy waits.
        assert all(map(Counters("table", client=client).redrive, Counters("table", client=client).quarantined()))
    job(Counters("table", client=calls.note("dynamodb", client)))

    stack = new_stack(region="us-east-1")
    encryption = dynamodb.TableEncryptionV2.customer_managed_key(kms.Key(stack, "Key"))
    counters = DedupCounterTable(stack, "Counters", encryption=encryption, ranking_index=True)
    getattr(counters, f"grant_{grant.partition(',')[0]}")(new_role(stack), *events)
    template = Template(grant, dict(synthesized(stack).to_json()))
    [policy] = template.instances("IAM::Policy")
    policies = granted(policy["PolicyDocument"])
    allows = {(action, template.named(resource), json.dumps(condition)) for action, resource, condition in policies}
    only = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["LEASES#*"]}} if grant == "leases" else None
    expected = {(action, resource, json.dumps(only)) for action, resource in calls.permissions}
    expected |= {("dynamodb:Query", "table/index/*", "null")} if grant == "read" else set()
    ciphers = ["Decrypt"] if grant == "read" else ["Decrypt", "Encrypt", "GenerateDataKey*", "ReEncrypt*"]
    assert allows == expected | {(f"kms:{key}", "key", "null") for key in ciphers}


def test_every_grant_has_a_job() -> None:
    grants = {name.removeprefix("grant_") for name in dir(DedupCounterTable) if name.startswith("grant_")}
    assert {name.partition(",")[0] for name in GRANTS} == grants
