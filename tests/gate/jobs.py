"""Jobs for each handler, so that it makes every call it ever makes: permissions and metrics are noted."""

from __future__ import annotations

import io
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module, reload
from types import SimpleNamespace
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from aws_lambda_powertools import Metrics
from aws_lambda_powertools.metrics import MetricUnit

from counters_lambda.counting.verification import Verification
from counters_lambda.handlers import _metering
from counters_lambda.handlers.verifier import work_on_schedule
from dynamodb_counters import Aggregate, Count, Event, Packed, Ranking, Sum, Window
from dynamodb_counters._declarations.codec import encode
from dynamodb_counters._items.schema import LEADERBOARD, RANKING_INDEX, SCORE
from dynamodb_counters._table import Table
from simulation.faults.hooked_client import Hook, PagedClient
from simulation.handler_process import LAMBDA_CONTEXT
from simulation.memory.client_errors import failure
from simulation.memory.memory_stream import MemoryStream
from simulation.memory_table import MemoryTable
from simulation.queue.sqs import SQS, Message, Queue
from tests.exactly_once.test_two_streams import SOURCE, Past
from tests.gate.template import Resource, Template, variables
from tests.unit.failure_bucket import Bucket
from tests.unit.fold.streams import image, record
from tests.unit.handlers.test_notifier import BUSY, Bus, crossed
from tests.unit.http_api.handlers import request

_JSON: Final = {"content-type": "application/json"}
_LONG: Final = SimpleNamespace(**{**vars(LAMBDA_CONTEXT), "get_remaining_time_in_millis": lambda: 900_000})
Invoke = Callable[[dict[str, Any]], dict[str, Any]]

Permission = tuple[str, str]
"""An action, and the resource: its name, and what of it."""


@dataclass
class Calls:
    """What clients were asked for, and what handlers have logged; while `throttled`, DynamoDB refuses everything."""

    permissions: set[Permission] = field(default_factory=set)
    metrics: set[str] = field(default_factory=set)
    throttled: bool = False

    def note(self, service: str, client: Any, resource: str = "") -> Any:
        """Return a client that notes its calls; `resource` is what its requests do not name."""

        def note(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
            action = "".join(map(str.title, name.split("_")))
            needed = _of_dynamodb(action, request) if service == "dynamodb" else [(action, resource or _named(request))]
            self.permissions |= {(f"{service.removesuffix('streams')}:{action}", named) for action, named in needed}
            if self.throttled and service == "dynamodb":
                raise failure(action, "ThrottlingException")
            return send()

        noting: Any = PagedClient(client, note)
        if service == "s3":
            noting.get_paginator = lambda name: SimpleNamespace(paginate=partial(_list_bucket, client, note, name))
        return noting

    @contextmanager
    def logged(self) -> Iterator[None]:
        """Note the metrics in the log, zeros included: no situation need be made to see a metric's name."""
        log = io.StringIO()
        with redirect_stdout(log), pytest.MonkeyPatch.context() as patch:
            patch.setattr(_metering, "add_metrics", _add_all)
            yield
        documents = [json.loads(line) for line in log.getvalue().splitlines() if line.startswith("{")]
        directives = [item for document in documents for item in document.get("_aws", {}).get("CloudWatchMetrics", ())]
        self.metrics |= {metric["Name"] for item in directives for metric in item["Metrics"]}


def _list_bucket(client: Bucket, note: Hook, operation: str, **request: Any) -> Any:
    """List objects, which needs the permission of another name."""
    return note("list_bucket", lambda: client.get_paginator(operation).paginate(**request), request)


def _add_all(metrics: Metrics, values: Mapping[str, float], unit: MetricUnit = MetricUnit.Count) -> None:
    for name, value in values.items():
        metrics.add_metric(name=name, unit=unit, value=value)


def _named(request: Mapping[str, Any]) -> str:
    return str(request.get("QueueUrl") or request.get("Bucket") or request["Entries"][0]["EventBusName"])


def _of_dynamodb(action: str, request: Mapping[str, Any]) -> Iterable[Permission]:
    """Yield what one call needs.

    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazondynamodb.html
    """
    if action == "TransactWriteItems":
        for kind, write in ((kind, write) for item in request["TransactItems"] for kind, write in item.items()):
            yield "ConditionCheckItem" if kind == "ConditionCheck" else f"{kind}Item", write["TableName"]
    elif action == "BatchGetItem":
        yield from ((action, table) for table in request["RequestItems"])
    elif action == "BatchExecuteStatement":
        for statement in request["Statements"]:
            kind, _, rest = statement["Statement"].partition(" ")
            yield f"PartiQL{kind.title()}", rest.split('"')[1]
    else:
        yield action, request["TableName"] + (f"/index/{request['IndexName']}" if "IndexName" in request else "")


class Function:
    """One of the runtime's handlers in an environment of its own, with a table and clients of other services."""

    def __init__(self, handler: str, environment: Mapping[str, str], table: Any, services: Mapping[str, Any]) -> None:
        self._environment = {"AWS_LAMBDA_FUNCTION_NAME": "function", **environment}
        self._table, self._services = table, services
        name, _, self._handler = handler.rpartition(".")
        with self._running():
            # Powertools reads its variables when a module is loaded.
            self._module = reload(import_module(name))

    def __call__(self, event: dict[str, Any]) -> dict[str, Any]:
        with self._running():
            answer: dict[str, Any] = getattr(self._module, self._handler)(event, LAMBDA_CONTEXT)
            return answer

    @contextmanager
    def _running(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self._environment.items():
                patch.setenv(name, value)
            for module in ("_counters", "_table"):
                patch.setattr(f"dynamodb_counters.{module}.make_client", lambda *_: self._table)
            patch.setattr("dynamodb_counters._table.make_service_client", lambda service, *_: self._services[service])
            yield


def table_of(calls: Calls) -> Any:
    """Return an empty table of which the calls are noted."""
    table = MemoryTable(time.time, name="table", indexes={RANKING_INDEX: (LEADERBOARD, SCORE)})
    return calls.note("dynamodb", table)


def run(template: Template, function: Resource) -> Calls:
    """Have a function do its job in two processes; its table, queues and bucket are named by their kinds."""
    handler, calls = str(function["Handler"]).split(".")[-2], Calls()
    if handler == "verifier":
        verify(calls)
        return calls
    values = variables(function)
    environment = {name: value if isinstance(value, str) else template.named(value) for name, value in values.items()}
    table, queues = table_of(calls), defaultdict[str, Queue](lambda: Queue(time.time))
    services = {
        "events": calls.note("events", Bus()),
        "s3": calls.note("s3", Bucket(time.time())),
        "sqs": calls.note("sqs", SQS(queues)),
    }
    with calls.logged(), pytest.MonkeyPatch.context() as patch:
        # Pauses between tries are none of our business.
        defaults = tuple(_no_pause if value is time.sleep else value for value in Table.__init__.__defaults__ or ())
        patch.setattr(Table.__init__, "__defaults__", defaults)
        # The second process knows nothing of what the first one has done, and does some of it for that reason.
        for process in range(2):
            invoke = Function(str(function["Handler"]), environment | DECLARED.get(handler, {}), table, services)
            JOBS[handler](invoke, calls, [*events_of_rules(template, function)], process)
    return calls


def _no_pause(seconds: float) -> None:
    """Wait for nothing."""


VIEW: Final = Event("view", key=("url", "time", "clientId"))
HIT: Final = Event("hit", key=("url", "time"), retention=timedelta(days=7), packed=Packed("time"))
VIEWS: Final = Aggregate(
    "views", VIEW, by="url", views=Count(), bytes=Sum("bytes"), ranking=Ranking(measure="views", leaderboard="URLS")
)
ROLLING: Final = Window("rolling", VIEW, by="url", time="time", retention=timedelta(hours=25))
SPREAD: Final = Aggregate("spread", VIEW, pk="SPREAD", sk="S", measures={"n": Count()}, write_shards=3)
SHARDS: Final = 50
"""So many that the watermarks of an item which all of them feed are worth pruning."""


def _now(**ago: float) -> str:
    return (datetime.now(UTC) - timedelta(**ago)).isoformat()


def _view(number: int, **more: Any) -> dict[str, Any]:
    return {"url": "/", "time": _now(seconds=number), "clientId": f"c{number}", **more}


def aggregate(invoke: Invoke, calls: Calls, rules: list[dict[str, Any]], process: int) -> None:
    """Count, quarantine what cannot be, meet many shards, end a window, take a deployment over, run on schedule."""
    for event in rules:
        invoke(event)
    first, far = 10**21 + 100 * process, 10**38 - 1
    invoke(_batch(first, _image(1, bytes=1), image("view", url="/", bytes="x"), shard="shardId-1"))
    invoke(_batch(first + 5, _image(2, bytes=far), _image(3, bytes=far), shard="shardId-1"))
    for number in range(2, SHARDS):
        batch = _batch(first + 9, _image(number, bytes=1), shard=f"shardId-{number}")
        state = invoke(batch)["state"]
        if number % 10 == 0:
            invoke({**batch, "Records": [], "isFinalInvokeForWindow": True, "state": state})
            invoke(batch)


def _image(number: int, **more: Any) -> Any:
    values = _view(number)
    key = {"pk": f"URL#{values['url']}", "sk": f"T#{values['time']}#CID#{values['clientId']}"}
    return image("view", **key, **values, **more)


def _batch(first: int, *images: Any, shard: str) -> dict[str, Any]:
    records = [record(number, item, created=time.time()) for number, item in enumerate(images, start=first)]
    return {"Records": records, "shardId": shard, "isFinalInvokeForWindow": False, "state": {}}


def events_of_rules(template: Template, function: Resource) -> Iterator[dict[str, Any]]:
    """Yield the events that EventBridge sends to a function: those of a pattern, and those of a schedule.

    https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-events.html
    """
    for rule in template.instances("Events::Rule"):
        for target in rule["Targets"] or ():
            if template.invoked(target["Arn"]) is not function:
                continue
            if "Input" in target:
                yield json.loads(target["Input"])
            elif rule["ScheduleExpression"]:
                yield {"source": "aws.events", "detail-type": "Scheduled Event", "resources": [rule.id], "detail": {}}
            else:
                pattern = rule["EventPattern"]
                status = pattern["detail"]["status-details"]["status"][0]
                detail = {"stack-id": "stack", "status-details": {"status": status}}
                yield {"source": pattern["source"][0], "detail-type": pattern["detail-type"][0], "detail": detail}


def consume(invoke: Invoke, calls: Calls, rules: list[dict[str, Any]], process: int) -> None:
    """Accept, meet duplicates, no event, what no item can hold, what is too late, what is not JSON, throttling."""
    views = [_view(number) for number in range(5)]
    unfit = _view(7, more="x" * 500_000), _view(8, **{f"attribute{number}": number for number in range(1000)})
    posted: list[Any] = [views, views[0], {"url": "/incomplete"}, *unfit, {**views[0], "time": _now(days=30)}]
    bodies = [*map(json.dumps, posted), "no JSON"]
    for _ in range(2):
        invoke({"Records": [_message(number, body) for number, body in enumerate(bodies)]})
    if process == 0:
        # A message that is refused for a while must come back.
        calls.throttled = True
        [again] = invoke({"Records": [_message(9, json.dumps(_view(9)))]})["batchItemFailures"]
        assert again == {"itemIdentifier": "9"}
        calls.throttled = False


def _message(number: int, body: str) -> dict[str, Any]:
    now = time.time()
    attributes = {"taken": {"DataType": "Number", "StringValue": str(int(now))}}
    return Message(str(number), body, attributes, now, now, receives=1).record()


def receive(invoke: Invoke, calls: Calls, rules: list[dict[str, Any]], process: int) -> None:
    """Take an event, and so many that they are several messages."""
    for events in ([_view(1)], [_view(number, more="x" * 1500) for number in range(200)]):
        answer = invoke(request("POST", "/events", body=json.dumps(events), headers=_JSON))
        assert answer["statusCode"] == 202, answer


def read(invoke: Invoke, calls: Calls, rules: list[dict[str, Any]], process: int) -> None:
    """Ask for everything that is served."""
    of_url, span = {"url": "/"}, {"last": "1h"}
    paths: list[tuple[str, dict[str, str]]] = [
        *(("views", of_url), ("views/top", {}), ("spread", {}), ("view/events", of_url)),
        *(("rolling", of_url | span), ("rolling/series", of_url | span | {"step": "1h"})),
        ("hit/events", {"start": _now(hours=1), "end": _now()}),
    ]
    for path, parameters in paths:
        answer = invoke(request("GET", f"/v1/{path}", urlencode(parameters)))
        assert answer["statusCode"] == 200, (path, answer)


def notify(invoke: Invoke, calls: Calls, rules: list[dict[str, Any]], process: int) -> None:
    """Deliver crossings."""
    assert invoke({"Records": crossed(BUSY, units=[1, 1, 1])}) == {"batchItemFailures": []}


@dataclass
class Streams:
    """A client of streams, each by its ARN; one is read at a time."""

    _streams: dict[str, Any]
    exceptions = MemoryStream.exceptions

    def describe_stream(self, **request: Any) -> Any:
        return self._streams[request["StreamArn"]].describe_stream(**request)

    def get_shard_iterator(self, **request: Any) -> Any:
        self._current = self._streams[request["StreamArn"]]
        return self._current.get_shard_iterator(**request)

    def get_records(self, **request: Any) -> Any:
        return self._current.get_records(**request)


def verify(calls: Calls) -> None:
    """Compare the counts of a table and of a source table, of which a record is not counted yet."""
    shop = Past()
    shop.fill()
    client: Any = shop.table
    describe = client.describe_table

    def described(**request: Any) -> Any:
        answer = describe(**request)
        answer["Table"]["StreamSpecification"] = {"StreamViewType": "NEW_AND_OLD_IMAGES"}
        return answer

    client.describe_table = described
    named = {"table": shop.both.stream, "source table": shop.both.orders.stream}
    noted = {str(stream.arn): calls.note("dynamodbstreams", stream, f"{name}/stream") for name, stream in named.items()}
    streams = Streams(noted)
    table = shop.reached(calls.note("dynamodb", client), sleep=shop.sleep)
    make = partial(Verification.of_table, table, streams, now=shop.clock, segments=1)
    with calls.logged(), pytest.MonkeyPatch.context() as patch:
        for variable in ("AWS_LAMBDA_FUNCTION_NAME", "POWERTOOLS_METRICS_NAMESPACE", "POWERTOOLS_SERVICE_NAME"):
            patch.setenv(variable, "verifier")
        module = reload(import_module("counters_lambda.handlers.verifier"))
        patch.setattr(module, "verifier", lambda: partial(work_on_schedule, table, make, shop.clock))
        shop.order(100, 7)
        module.handler({"begin": True}, _LONG)
    kinds = {"counters": "table", SOURCE: "source table"}
    calls.permissions = {(action, kinds.get(resource, resource)) for action, resource in calls.permissions}


JOBS: Final[dict[str, Callable[[Invoke, Calls, list[dict[str, Any]], int], None]]] = {
    "aggregator": aggregate,
    "notifier": notify,
    "api": read,
    "ingest_queue": consume,
    "ingest_http": receive,
}
DECLARED: Final[dict[str, dict[str, str]]] = {
    "aggregator": {"DECLARATIONS": encode((ROLLING, VIEWS))},
    "ingest_http": {"DECLARATIONS": encode((VIEW,)), "MAX_BODY_BYTES": "1000000"},
    "api": {"DECLARATIONS": encode((ROLLING, SPREAD, VIEWS)), "EVENTS": encode((HIT, VIEW))},
}
"""Declarations of the handlers instead of the template's: all that they know."""
