"""After an erasure nothing that is stored names the person, wherever copies lay, and the counts are as chosen."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import time
import uuid
import zlib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

import dynamodb_counters
from dynamodb_counters import Aggregate, Count, Counters, Event, Packed, Sum
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._erase.eraser import Erased, Eraser
from dynamodb_counters._streams import StreamReader
from dynamodb_counters._table import Table
from simulation.delivery.stream_api import lambda_record
from simulation.engines import Engine
from simulation.engines.dynamodb_local import DynamoDBLocal
from simulation.engines.tables import create_table
from simulation.faults.actors import Crashed
from simulation.faults.hooked_client import Dying

pytestmark = pytest.mark.night

ANN, BOB = "ann-5f0c77", "bob-91d2aa"
SALE = Event("sale", pk="SHOP#{shop}", sk="SALE#{at}#{id}#{client}", retention=timedelta(days=7), version="version")
VISIT = Event("visit", pk="SHOP#{shop}", sk="VISIT#{at}#{client}", retention=timedelta(days=7), packed=Packed("at"))
RUNS = 4
"""How many after the first reach all that comes of it, as docs/erasure.md has it."""

EVENTS = (SALE, VISIT)


def _declared() -> tuple[Aggregate, ...]:
    measures: Any = {"number": Count(), "amount": Sum("amount")}
    found = [
        Aggregate(
            f"{event.name}-{on_expiry}",
            event,
            pk=f"{event.name}-{on_expiry}",
            sk="ALL",
            measures=measures,
            on_expiry=on_expiry,
        )
        for event in EVENTS
        for on_expiry in ("keep", "subtract")
    ]
    return tuple(found)


DECLARED = _declared()


class World:
    """A table, a queue with its dead letters, an on-failure bucket, and copies of events in all of them."""

    def __init__(self, engine: Engine, sqs: Any, s3: Any, seed: int) -> None:
        self.engine, self.sqs, self.s3, self.random = engine, sqs, s3, random.Random(seed)
        self.name = f"erase-{uuid.uuid4().hex[:12]}"
        self.arn = create_table(engine.client, self.name, expires=False)
        self.counters = Counters(self.name, client=engine.client, bulk="put")
        self.queues = [sqs.create_queue(QueueName=f"{self.name}-{kind}")["QueueUrl"] for kind in ("main", "dead")]
        self.bucket = self.name
        s3.create_bucket(Bucket=self.bucket)
        self.now = int(time.time())
        self.amounts: dict[tuple[str, str, int], Any] = {}
        """Amounts of the events accepted, by declaration, client and id; "much" cannot be counted."""

    def values(self, client: str, number: int, version: int = 1) -> dict[str, Any]:
        amount: Any = "much" if number % 5 == 4 else number * 10 + version
        shop = self.random.choice("xy") if number else "x"
        values = {"shop": shop, "at": self.now - number * 400, "id": number}
        return {**values, "client": client, "version": version, "amount": amount, "note": f"for {client}"}

    def write(self) -> None:
        for client in (ANN, BOB):
            for event in EVENTS:
                sent = [self.values(client, number) for number in range(8)]
                assert {it.status for it in self.counters.accept_many(event, sent)} == {"accepted"}
                self.amounts |= {(event.name, client, it["id"]): it["amount"] for it in sent}
                self.counters.retract(event, sent[7])
                del self.amounts[event.name, client, 7]
            newer = self.values(client, 0, version=2)
            assert self.counters.accept(SALE, newer).status == "accepted"
            self.amounts["sale", client, 0] = newer["amount"]

    def spread(self, records: list[dict[str, Any]]) -> None:
        """Leave copies in queues, and in the bucket records that were counted after all."""
        for url in self.queues:
            for number in range(13):
                events = [self.values(client, number) for client in self.random.choices((ANN, BOB), k=number % 3 + 1)]
                body = json.dumps(events if len(events) > 1 else events[0])
                taken: Any = {"taken": {"DataType": "Number", "StringValue": "7"}}
                self.sqs.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=taken)
        for first in range(0, len(records), 5):
            batch = {"Records": records[first : first + 5], "shardId": "shardId-1"}
            payload: Any = json.dumps(batch, default=str) if first % 2 else batch
            body = json.dumps({"requestContext": {}, "payload": payload}, default=str)
            self.s3.put_object(Bucket=self.bucket, Key=f"aws/lambda/m/s/2026/11/22/{first}", Body=body.encode())

    def records(self) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        assert self.engine.streams is not None
        reader = StreamReader(self.engine.streams, self.arn, sleep=lambda _: None)
        for shard in (each.id for each in reader.shards()):
            records = [lambda_record(dict(record), self.arn) for record in reader.records(shard)]
            if records:
                yield shard, [dict(record) for record in records]

    def deliver(self) -> int:
        """Deliver every shard from its beginning; return how many records there are."""
        found = 0
        for shard, records in self.records():
            table = Table(self.name, self.engine.client)
            aggregator = Aggregator(table, DECLARED, quarantine_retention_seconds=14 * 86_400.0)
            aggregator.handle({"shardId": shard, "Records": records})
            found += len(records)
        return found

    def eraser(self, event: Event, client: Any = None) -> Eraser:
        table = Table(self.name, client or self.engine.client, sleep=lambda _: None)
        eraser = Eraser(table, event, {"client": ANN}, self.queues, [self.bucket], sqs=self.sqs, s3=self.s3)
        for queue in eraser._queues:
            queue._wait_seconds = 0
        return eraser

    def erase(self, counts: Any, *, crashes: bool = False) -> list[Erased]:
        for event in EVENTS if crashes else ():
            for calls in (self.random.randint(1, 60), self.random.randint(1, 200)):
                dying: Any = Dying(self.engine.client, calls, after=self.random.random() < 0.5)
                with contextlib.suppress(Crashed):
                    self.eraser(event, dying).erase(counts, "drop")
        return [self.eraser(event).erase(counts, "drop") for event in EVENTS]

    def items(self) -> list[dict[str, Any]]:
        pages = self.engine.client.get_paginator("scan").paginate(TableName=self.name, ConsistentRead=True)
        return [dict(item) for page in pages for item in page["Items"]]

    def stored(self) -> str:
        """All that is stored, unpacked."""
        texts = [repr({name: _unpacked(value) for name, value in item.items()}) for item in self.items()]
        for url in self.queues:
            messages = self._receive_all(url)
            texts += sorted(repr((message["Body"], message["MessageAttributes"])) for message in messages)
        for found in self.s3.list_objects_v2(Bucket=self.bucket).get("Contents", []):
            texts.append(repr(self.s3.get_object(Bucket=self.bucket, Key=found["Key"])["Body"].read()))
        return "\n".join(texts)

    def _receive_all(self, url: str) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        while got := self.sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], VisibilityTimeout=60
        ).get("Messages"):
            found += got
        for message in found:
            receipt = message["ReceiptHandle"]
            self.sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=receipt, VisibilityTimeout=0)
        return found

    def counts(self) -> dict[str, dict[str, Any]]:
        return {it.name: dict(self.counters.get(it, {}).measures) for it in DECLARED}

    def expected(self, *clients: str, expired: tuple[str, ...] = ()) -> dict[str, dict[str, Any]]:
        """Counts if only these clients' events ever came, and those of some were then erased as expired."""
        found = {}
        for declared in DECLARED:
            mine = {key: it for key, it in self.amounts.items() if key[0] == declared.source.name and it != "much"}
            still = clients if declared.on_expiry == "keep" else [it for it in clients if it not in expired]
            amounts = [it for key, it in mine.items() if key[1] in still]
            found[declared.name] = {"number": len(amounts), "amount": sum(amounts)}
        return found


def _unpacked(value: Mapping[str, Any]) -> Any:
    if "B" in value:
        with contextlib.suppress(zlib.error):
            return zlib.decompress(bytes(value["B"]))
    return value


@pytest.mark.parametrize(("counts", "crashes"), [("keep", True), ("take_back", False)])
def test_nothing_that_is_stored_names_the_person(
    dynamodb_local_engine: DynamoDBLocal, counts: str, crashes: bool
) -> None:
    with mock_aws():
        sqs, s3 = boto3.client("sqs", region_name="us-east-1"), boto3.client("s3", region_name="us-east-1")
        world = World(dynamodb_local_engine, sqs, s3, seed=len(counts) + crashes)
        world.write()
        world.deliver()
        world.spread([record for _, records in world.records() for record in records])
        assert world.counts() == world.expected(ANN, BOB)
        before = world.stored()
        assert before.count(ANN) > 60

        world.erase(counts, crashes=crashes)
        for _ in range(RUNS):
            world.deliver()  # Uncountable events cannot be subtracted either: they go to quarantine again.
            if world.erase(counts) == [Erased(), Erased()]:
                break
        records = world.deliver()

        stored = world.stored()
        assert ANN not in stored
        assert stored.count(BOB) == before.count(BOB)
        kept = world.expected(ANN, BOB, expired=(ANN,)) if counts == "keep" else world.expected(BOB)
        assert world.counts() == kept
        assert world.erase(counts) == [Erased(), Erased()]
        assert world.deliver() == records
        assert world.stored() == stored


def _command(endpoint: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    source = Path(dynamodb_counters.__file__).parents[1]
    return subprocess.run(
        [sys.executable, "-m", "dynamodb_counters.cli.main", *arguments],
        env=os.environ | {"PYTHONPATH": str(source), "AWS_ENDPOINT_URL": endpoint},
        input="n\n",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_command_erases_what_it_has_shown(ministack_engine: Engine) -> None:
    endpoint = str(ministack_engine.endpoint_url)
    sqs: Any = boto3.client("sqs", endpoint_url=endpoint)
    s3: Any = boto3.client("s3", endpoint_url=endpoint)
    world = World(ministack_engine, sqs, s3, seed=3)
    world.write()
    aggregator = Aggregator(Table(world.name, ministack_engine.client), DECLARED, quarantine_retention_seconds=10**6)
    aggregator.handle({})
    world.spread([])
    record = {"eventName": "INSERT", "dynamodb": {"NewImage": {"_type": {"S": "sale"}, "client": {"S": ANN}}}}
    body = json.dumps({"payload": {"Records": [record]}}).encode()
    s3.put_object(Bucket=world.bucket, Key="aws/lambda/m/s/2026/11/22/x", Body=body)
    before = world.stored()
    places = [part for url in world.queues for part in ("--queue", url)] + ["--bucket", world.bucket]
    asked = ["erase", "sale", f"client={ANN}", "--table", world.name, "--counts", "keep", *places]

    shown = _command(endpoint, *asked, "--dry-run")
    assert (shown.returncode, shown.stderr) == (0, "")
    rows = [line.rsplit(None, 1) for line in shown.stdout.splitlines() if line[-1].isdigit()]
    told = {place.strip(): number for place, number in rows}
    assert (told["the table"], told["on-failure buckets"], told["of these, to be counted yet"]) == ("7", "1", "1")
    assert _command(endpoint, *asked[:-2]).returncode == 2
    refused = _command(endpoint, *asked, "--yes")
    assert (refused.returncode, "1 copies wait to be counted" in refused.stderr) == (2, True)
    assert world.stored() == before

    done = _command(endpoint, *asked, "--yes", "--uncounted", "drop")
    assert done.returncode == 0, done.stderr
    assert "the table 7" in " ".join(done.stdout.split())
    visits = ["erase", "visit", f"client={ANN}", "--table", world.name, "--counts", "take_back", "--yes", "--json"]
    assert json.loads(_command(endpoint, *visits).stdout)["erased"]["packed"] == 8
    assert ANN not in world.stored()
    assert BOB in world.stored()

    unknown = _command(endpoint, "erase", "sales", "id=1", "--table", world.name, "--counts", "keep", "--yes")
    assert (unknown.returncode, "no deployment of the table counts an event 'sales'" in unknown.stderr) == (2, True)
