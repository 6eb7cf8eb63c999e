"""The doors: each takes a request as AWS delivers it, and judges the answer."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from types import SimpleNamespace
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import fastjsonschema
from botocore.exceptions import ClientError, ConnectTimeoutError, ParamValidationError

from counters_lambda.http_api.json_schema import compile_schema
from counters_lambda.http_api.requests import EventCheck, read_json
from counters_lambda.http_api.resources import CountResources, openapi
from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.codec import encode
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of, inserted
from dynamodb_counters._writes.accept import typed_item
from simulation.faults.hooked_client import Hook, PagedClient
from simulation.handler_process import LAMBDA_CONTEXT
from simulation.hostile.costly import SCHEMA
from simulation.hostile.declarations import DECLARATIONS, HIT, SERVED, VIEW
from simulation.memory import request_checks
from simulation.memory.client_errors import failure
from simulation.memory_table import MemoryTable
from simulation.world import World

NOW: Final = 1_790_000_000.0
MAX_ANSWER_BYTES: Final = 6_000_000
"""https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"""

TENANT: Final = {"customer": "claims.sub"}
OWN: Final = "c0"

_ENVIRONMENT: Final = {
    "POWERTOOLS_SERVICE_NAME": "hostile",
    "POWERTOOLS_METRICS_NAMESPACE": "Counters",
    "POWERTOOLS_METRICS_DISABLED": "true",
    "AWS_DEFAULT_REGION": "us-east-1",
    "CACHE_CONTROL": "public, max-age=5",
}


class Answer(NamedTuple):
    """Answer to a request: `status` is None if the function failed; `wrong` says what is wrong with it, if anything."""

    status: int | None
    cpu_seconds: float
    wrong: str = ""


Handler = Callable[[Any, Any], dict[str, Any]]


@dataclass
class Door:
    """A handler in a setting of its own; `look` says what is wrong with its answer to a request."""

    name: str
    call: Callable[[Any], Any]
    posts: bool
    look: Callable[[Any, Any], str] = lambda *_: ""
    may_be_unavailable: bool = False
    cpu_clock: Callable[[], float] = time.process_time

    def answer(self, request: Any) -> Answer:
        begun = self.cpu_clock()
        try:
            with patch.dict(os.environ, _ENVIRONMENT):
                response = self.call(request)
        except Exception as error:  # noqa: BLE001
            return Answer(None, self.cpu_clock() - begun, wrong=f"{type(error).__name__}: {error!s:.200}")
        spent, status = self.cpu_clock() - begun, int(response["statusCode"])
        wrong = self.look(request, response)
        if status >= 500 and not (status == 503 and self.may_be_unavailable):
            wrong = f"status {status}"
        elif status == 503 and "Retry-After" not in response["headers"]:
            wrong = "no Retry-After"
        elif len(json.dumps(response)) > MAX_ANSWER_BYTES:
            wrong = "too long for Lambda"
        return Answer(status, spent, wrong)


_DEAD_LETTERS: Final = "https://dead-letters"


@dataclass
class Queue:
    """An SQS client that keeps what it is sent; a consumer may call whatever else it likes."""

    messages: list[str] = field(default_factory=list)

    def send_message(self, **message: Any) -> dict[str, Any]:
        # A dead letter has more room.
        assert len(message["MessageBody"]) <= 262_144 or message["QueueUrl"] == _DEAD_LETTERS
        assert message["MessageAttributes"]["taken"]["DataType"] == "Number"
        self.messages.append(message["MessageBody"])
        return {}

    def __getattr__(self, name: str) -> Callable[..., dict[str, Any]]:
        return lambda **_: {}


def _throttled(rng: random.Random) -> Hook:
    """Return a hook that refuses reads now and then."""

    def hook(name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        if name == "batch_get_item" and rng.random() < 0.8:
            return {"Responses": {}, "UnprocessedKeys": request["RequestItems"]}
        drawn = rng.random()
        if drawn < 0.3:
            raise failure(name, "ProvisionedThroughputExceededException")
        if drawn < 0.4:
            raise ConnectTimeoutError(endpoint_url="https://dynamodb")
        return send()

    return hook


def receiver(
    name: str, event: Event = VIEW, *, schema: bool = False, admission: bool = False, tenant: bool = False
) -> Door:
    from counters_lambda.handlers import ingest_http  # noqa: PLC0415

    queue, plan, table = Queue(), Plan(DECLARATIONS), MemoryTable(time.time)
    compiled, admitted = compile_schema(SCHEMA) if schema else None, plan if admission else None
    check = EventCheck(event, compiled, admitted, lambda: NOW)
    environment = {"MAX_BODY_BYTES": "1000000", "QUEUE_URL": "https://queue"}
    environment["TENANT"] = json.dumps(TENANT if tenant else {})

    def call(request: Any) -> Any:
        queue.messages.clear()
        with patch.dict(os.environ, environment), patch.multiple(ingest_http, check=lambda: check, sqs=lambda: queue):
            return ingest_http.handler(request, LAMBDA_CONTEXT)

    def look(request: Any, response: Any) -> str:
        events = [values for message in queue.messages for values in read_json(message)]
        if len(events) != (json.loads(response["body"])["events"] if response["statusCode"] == 202 else 0):
            return "another number of events was queued than was answered"
        items = [typed_item(event, values) for values in events]
        try:
            for item in items:
                request_checks.check("PutItem", {"TableName": table.name, "Item": item})
                table.put_item(TableName=table.name, Item=item)
        except (ClientError, ParamValidationError) as error:
            return f"DynamoDB refuses what got 202: {error}"
        if tenant and any(str(values["customer"]) != _claim(request) for values in events):
            return "an event of another customer got 202"
        folded = fold(plan, changes_of([inserted(item, NOW, index) for index, item in enumerate(items)]))
        is_wrong = admission and bool(folded.invalid)
        return f"what got 202 is quarantined: {folded.invalid[0].reason}" if is_wrong else ""

    # The other doors read and write by threads.
    return Door(name, call, posts=True, look=look, cpu_clock=time.thread_time)


def consumer(name: str) -> Door:
    """Direct mode: a message as anybody may post it, between two good ones that must not suffer for it."""
    from counters_lambda.handlers import ingest_queue  # noqa: PLC0415

    client = MemoryTable(time.time, seed=1)
    environment = {"DECLARATIONS": encode((VIEW,)), "TABLE_NAME": client.name}
    environment["DEAD_LETTER_QUEUE_URL"] = _DEAD_LETTERS
    with ExitStack() as stack:
        _reached(stack, client, environment)
        ingest_queue.consumer.cache_clear()
        accepting = ingest_queue.consumer()
    queue, numbers = Queue(), iter(range(10**9))

    def call(request: Any) -> Any:
        before, after = (json.dumps(_good(next(numbers), time.time())) for _ in range(2))
        body = request.get("body")
        bodies = [before, body if isinstance(body, str) else "", after]  # SQS delivers texts only.
        records = [
            {"messageId": str(index), "body": body, "eventSource": "aws:sqs", "attributes": {}, "messageAttributes": {}}
            for index, body in enumerate(bodies)
        ]
        with ExitStack() as stack:
            _reached(stack, client, environment)
            stack.enter_context(patch.object(ingest_queue, "consumer", lambda: accepting))
            stack.enter_context(patch("dynamodb_counters._table.make_service_client", lambda *_: queue))
            failed = ingest_queue.handler({"Records": records}, LAMBDA_CONTEXT)["batchItemFailures"]
        dead, queue.messages = queue.messages, []
        harmed = [report["itemIdentifier"] for report in failed] or [body for body in dead if body in (before, after)]
        return {"statusCode": 400 if dead else 202, "headers": {}, "harmed": harmed}

    def look(_: Any, response: Any) -> str:
        return "a message comes again, or a good one suffers for a bad one" if response["harmed"] else ""

    return Door(name, call, posts=True, look=look)


def counter_api(name: str, *, tenant: bool = False, throttled: bool = False) -> Door:
    from counters_lambda.handlers import api  # noqa: PLC0415

    client: Any = _counted()
    reached: Any = PagedClient(client, _throttled(random.Random(0))) if throttled else client
    counters = Counters(client.name, client=reached, clock=lambda: NOW)
    counters._table = replace(counters._table, sleep=lambda _: None)
    resources = CountResources(counters, SERVED)
    environment = {"TENANT": json.dumps(TENANT)} if tenant else {}
    environment |= {"DECLARATIONS": encode(DECLARATIONS), "EVENTS": encode((VIEW, HIT))}

    def call(request: Any) -> Any:
        with patch.object(api, "resources", lambda: resources), patch.dict(os.environ, environment):
            return api.handler(request, LAMBDA_CONTEXT)

    def look(request: Any, response: Any) -> str:
        if differs := _difference(request, response):
            return f"not as the OpenAPI document says: {differs:.200}"
        if not tenant or response["statusCode"] != 200 or not response["body"].startswith("{"):
            return ""
        customers = {*_customers(read_json(response["body"]))}
        own = set[str]()
        with suppress(AttributeError, LookupError, TypeError):  # Who has no claim may read the API's document alone.
            own = {_claim(request)}
        return f"another customer's counts: {customers}" if customers - own else ""

    return Door(name, call, posts=False, look=look, may_be_unavailable=throttled)


_DOCUMENT: Final = openapi(SERVED, TENANT)


def _difference(request: dict[str, Any], response: Any) -> str:
    """Return how an answer differs from the document; of what is not in there nothing is known."""
    method, path = request["requestContext"]["http"]["method"].lower(), request["rawPath"]
    status = response["statusCode"]
    if method not in _DOCUMENT["paths"].get(path, ()) or status == 404:
        return ""
    try:
        _check(path, method, str(status))(json.loads(response["body"]))
    except fastjsonschema.JsonSchemaException as error:
        return repr(error)
    return ""


@cache
def _check(path: str, method: str, status: str) -> Callable[[Any], Any]:
    """Return the check of an answer."""
    responses = _DOCUMENT["paths"][path][method]["responses"]
    [content] = responses.get(status, responses["default"])["content"].values()
    schema = {**content["schema"], "components": _DOCUMENT["components"]}
    check: Callable[[Any], Any] = fastjsonschema.compile(schema)
    return check


@patch.dict(os.environ, _ENVIRONMENT)
def all_doors() -> list[Door]:
    return [
        receiver("receiver"),
        receiver("receiver, packed event", HIT),
        receiver("receiver with a schema", schema=True),
        receiver("receiver with declarations", admission=True),
        receiver("receiver with both", schema=True, admission=True),
        receiver("receiver of tenants", admission=True, tenant=True),
        consumer("consumer, direct mode"),
        counter_api("API"),
        counter_api("API of tenants", tenant=True),
        counter_api("API, throttled", throttled=True),
    ]


def _reached(stack: ExitStack, client: MemoryTable, environment: Mapping[str, str]) -> None:
    stack.enter_context(patch.dict(os.environ, environment))
    for module in ("dynamodb_counters._counters", "dynamodb_counters._table", "counters_lambda.handlers.ingest_queue"):
        stack.enter_context(patch(f"{module}.make_client", lambda *_: client))


def _counted() -> MemoryTable:
    """Return a table with counts of every kind, of two customers: many groups, and texts as long as groups may have."""
    world = World(*DECLARATIONS)
    world.clock.now = NOW
    long = "\x01" * 7900
    views = [_good(number) | {"customer": customer} for number in range(300) for customer in (OWN, "c1")]
    views += [_good(number) | {"url": f"{long}{number}", "clientId": "c"} for number in range(130)]
    for event in (VIEW, HIT):
        assert {outcome.status for outcome in world.counters.accept_many(event, views)} == {"accepted"}
    world.deliver_all()
    assert not [*world.counters.quarantined()]
    return world.table


def _good(number: int, now: float = NOW) -> dict[str, Any]:
    moment = datetime.fromtimestamp(now - 60 * (number % 10_000), UTC).isoformat()
    more = {"bytes": number % 120, "tags": ["a", f"t{number % 7}"]}
    return {"customer": OWN, "url": f"/{number}", "time": moment, "clientId": f"client-{number}", **more}


def _claim(request: Any) -> str:
    authorizer = SimpleNamespace(**request["requestContext"]["authorizer"])
    return str(authorizer.jwt["claims"]["sub"])


def _customers(document: Any) -> list[str]:
    """Every customer that a document names."""
    if isinstance(document, list):
        return [name for part in document for name in _customers(part)]
    if not isinstance(document, dict):
        return []
    own = [document["customer"]] if isinstance(document.get("customer"), str) else []
    return own + [name for part in document.values() for name in _customers(part)]
