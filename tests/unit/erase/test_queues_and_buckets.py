"""Messages and objects are searched, and what they hold of others stays as it was."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import boto3
import pytest
from moto import mock_aws

from dynamodb_counters import Event
from dynamodb_counters._erase.bucket_erase import BucketCopies
from dynamodb_counters._erase.matching import Wanted
from dynamodb_counters._erase.queue_erase import QueueCopies, remaining
from dynamodb_counters._http.lossless_json import read_json, write_json
from dynamodb_counters._items.chunks import Row, decode_chunk, encode_chunk
from simulation.night import scaled
from tests.unit.fold.streams import NOW, record

VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{client}")
ANN = Wanted(VIEW, {"client": "ann"})


@pytest.fixture
def aws() -> Iterator[None]:
    with mock_aws():
        yield


def _view(client: Any, **others: Any) -> dict[str, Any]:
    return {"url": "/", "time": NOW, "client": client, **others}


class Queue:
    def __init__(self) -> None:
        self.client: Any = boto3.client("sqs", region_name="us-east-1")
        self.url = self.client.create_queue(QueueName="dead-letters")["QueueUrl"]

    def send(self, body: str, reason: str = "") -> None:
        attributes: Any = {
            "taken": {"DataType": "Number", "StringValue": str(NOW)},
            "raw": {"DataType": "Binary", "BinaryValue": b"\0\1"},
        }
        if reason:
            attributes["reason"] = {"DataType": "String", "StringValue": reason}
        self.client.send_message(QueueUrl=self.url, MessageBody=body, MessageAttributes=attributes)

    def sweep(self, wanted: Wanted = ANN, *, writes: bool = True) -> int:
        return QueueCopies(self.client, self.url, wanted, wait_seconds=0).sweep(writes=writes)

    def messages(self) -> list[dict[str, Any]]:
        """All messages, which stay visible."""
        found: list[dict[str, Any]] = []
        while got := self.client.receive_message(
            QueueUrl=self.url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], VisibilityTimeout=30
        ).get("Messages"):
            found += got
        for message in found:
            self.client.change_message_visibility(
                QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
            )
        return found

    def bodies(self) -> list[str]:
        return sorted(message["Body"] for message in self.messages())


@pytest.mark.usefixtures("aws")
def test_messages_go_and_what_remains_of_an_array_stays_with_its_attributes() -> None:
    queue = Queue()
    for client in ("ann", "bob", "ann", *(f"c{number}" for number in range(25))):
        queue.send(json.dumps(_view(client)))
    queue.send('[ {"client": "ann", "url": "/"} , {"client":"bob","price":1.50, "n":[1,2]},{"client": "ann"}]')
    queue.send("[]")
    queue.send("7")

    assert queue.sweep(writes=False) == 4
    assert len(queue.messages()) == 31
    assert queue.sweep() == 4

    assert len(queue.messages()) == 29
    assert '[{"client":"bob","price":1.50, "n":[1,2]}]' in queue.bodies()
    assert "ann" not in "".join(queue.bodies())
    for message in queue.messages():
        attributes = message["MessageAttributes"]
        assert attributes["taken"] == {"DataType": "Number", "StringValue": str(NOW)}
        assert attributes["raw"]["BinaryValue"] == b"\0\1"
    assert queue.sweep() == 0


@pytest.mark.parametrize(
    "reason", ["invalid client='ann': expected another", "invalid client='anna': expected another"]
)
@pytest.mark.usefixtures("aws")
def test_a_reason_that_quotes_the_value_goes(reason: str) -> None:
    queue = Queue()
    queue.send('[{"client":"ann"},{"client":"bob"}]', reason)

    assert queue.sweep() == 1

    [message] = queue.messages()
    kept = message["MessageAttributes"].get("reason", {}).get("StringValue")
    assert kept == (None if "'ann'" in reason else reason)


@pytest.mark.usefixtures("aws")
def test_text_that_is_no_json_goes_if_it_names_the_value() -> None:
    queue = Queue()
    for body in ('{"client": "ann"', '{"client": "annabel"', "[" * 5000 + '"ann"'):
        queue.send(body)

    assert queue.sweep() == 2
    assert queue.bodies() == ['{"client": "annabel"']


@pytest.mark.usefixtures("aws")
def test_a_message_is_never_lost_if_a_run_dies() -> None:
    queue = Queue()
    queue.send(json.dumps([_view("ann"), _view("bob")]))
    delete = queue.client.delete_message

    def die(**_: Any) -> None:
        raise OSError

    queue.client.delete_message = die
    with pytest.raises(OSError):  # noqa: PT011
        queue.sweep()
    queue.client.delete_message = delete
    for message in queue.client.receive_message(QueueUrl=queue.url)["Messages"]:
        queue.client.change_message_visibility(
            QueueUrl=queue.url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
        )
    assert "bob" in "".join(queue.bodies())


def test_numbers_and_texts_are_the_same_in_a_key() -> None:
    wanted = Wanted(VIEW, {"client": 7})
    bodies = ('{"client":7}', '{"client":"7"}', '{"client":7.0}', '{"client":true}', '{"client":null}', '{"client":70}')
    assert [remaining(body, wanted)[0] for body in bodies] == [1, 1, 1, 0, 0, 0]


def test_remaining_events_are_the_same_text() -> None:
    """Remaining events parse to the same values, whatever the array looks like."""
    for seed in range(scaled(60)):
        rng = random.Random(seed)
        events = [
            _view(rng.choice(("ann", "bob", "]", '"ann"', ",")), x=[1, {"y": Decimal("1.50")}], price=Decimal(seed) / 8)
            for _ in range(rng.randint(1, 6))
        ]
        body = rng.choice(("", " ", "\n\t")) + write_json(events).replace("},{", rng.choice(("},{", "} ,\n {"))) + " "
        events = read_json(body)
        left = [event for event in events if event["client"] != "ann"]
        found, text = remaining(body, ANN)
        assert found == len(events) - len(left), f"seed {seed}"
        assert (read_json(text) if text else []) == left, f"seed {seed}"


class Bucket:
    def __init__(self, *, versioned: bool = False) -> None:
        self.client: Any = boto3.client("s3", region_name="us-east-1")
        self.client.create_bucket(Bucket="given-up")
        if versioned:
            self.client.put_bucket_versioning(Bucket="given-up", VersioningConfiguration={"Status": "Enabled"})

    def put(self, number: int, payload: Any) -> str:
        key = f"aws/lambda/0a1b/shardId-1/2026/11/22/2026-11-22T07.00.00-{number}"
        document = {
            "requestContext": {"condition": "RecordAgeExceeded"},
            "DDBStreamBatchInfo": {"shardId": "shardId-1", "batchSize": 2},
            "payload": payload,
        }
        self.client.put_object(Bucket="given-up", Key=key, Body=json.dumps(document).encode())
        return key

    def sweep(self, *, writes: bool = True) -> int:
        return BucketCopies(self.client, "given-up", ANN).sweep(writes=writes)

    def objects(self) -> dict[str, Any]:
        found = self.client.list_objects_v2(Bucket="given-up").get("Contents", [])
        bodies = {it["Key"]: self.client.get_object(Bucket="given-up", Key=it["Key"])["Body"].read() for it in found}
        return {key: json.loads(body) for key, body in bodies.items()}


def _typed(client: str) -> dict[str, Any]:
    return {"url": {"S": "/"}, "time": {"N": str(NOW)}, "client": {"S": client}}


def _item(client: str) -> dict[str, Any]:
    return {**_typed(client), "_type": {"S": "view"}}


def _chunk(*clients: str) -> dict[str, Any]:
    blob = encode_chunk([Row("+", _typed(client)) for client in clients], "batch")
    return {"_type": {"S": "view#pack"}, "_chunk": {"B": base64.b64encode(blob).decode()}}


@pytest.mark.parametrize("as_text", [True, False])
@pytest.mark.usefixtures("aws")
def test_records_are_taken_out_of_objects(as_text: bool) -> None:
    bucket = Bucket()
    records = [
        record(1, _item("ann")),
        record(2, _item("bob")),
        record(3, None, _item("ann")),
        record(4, _chunk("ann", "bob", "ann")),
        record(5, _chunk("ann")),
        record(6, {"_type": {"S": "sums"}, "client": {"S": "ann"}}),
    ]
    batch = {"Records": records, "shardId": "shardId-1", "window": {"start": "x"}}
    some = bucket.put(1, json.dumps(batch) if as_text else batch)
    bucket.put(2, {"Records": [record(7, _item("ann"))]})
    others = bucket.put(3, {"Records": [record(8, _item("bob"))]})
    bucket.client.put_object(Bucket="given-up", Key="else", Body=b'"ann"')
    before = bucket.objects()

    assert bucket.sweep(writes=False) == 6
    assert bucket.objects() == before
    assert bucket.sweep() == 6

    after = bucket.objects()
    assert set(after) == {some, others, "else"}
    assert after[others] == before[others]
    payload = after[some].pop("payload")
    left = json.loads(payload) if as_text else payload
    assert after[some] == {name: value for name, value in before[some].items() if name != "payload"}
    first, chunk, last = left.pop("Records")
    assert [first, last] == [records[1], records[5]]
    assert left == {"shardId": "shardId-1", "window": {"start": "x"}}
    rows = decode_chunk(chunk["dynamodb"]["NewImage"]["_chunk"]).all_rows()
    assert [row.values["client"]["S"] for row in rows] == ["bob"]
    assert bucket.sweep() == 0


@pytest.mark.usefixtures("aws")
def test_the_objects_of_all_pages_are_read() -> None:
    bucket = Bucket()
    assert bucket.sweep() == 0
    bucket.client.meta.events.register(
        "provide-client-params.s3.ListObjectsV2", lambda params, **_: {**params, "MaxKeys": 2}
    )
    for number in range(5):
        bucket.put(number, {"Records": [record(number, _item("ann")), record(9, _item("bob"))]})
    assert (bucket.sweep(writes=False), bucket.sweep(), bucket.sweep()) == (5, 5, 0)


@pytest.mark.usefixtures("aws")
def test_an_object_that_goes_meanwhile_stays_gone() -> None:
    bucket = Bucket()
    key = bucket.put(1, {"Records": [record(1, _item("ann")), record(2, _item("bob"))]})
    get = bucket.client.get_object

    def then_gone(**request: Any) -> Any:
        answer = get(**request)
        body = answer["Body"].read()
        bucket.client.delete_object(Bucket="given-up", Key=key)
        return {**answer, "Body": type("Body", (), {"read": lambda _: body})()}

    bucket.client.get_object = then_gone
    bucket.sweep()
    bucket.client.get_object = get

    assert bucket.objects() == {}


@pytest.mark.usefixtures("aws")
def test_no_earlier_version_of_an_object_stays() -> None:
    bucket = Bucket(versioned=True)
    bucket.put(1, {"Records": [record(1, _item("ann")), record(2, _item("bob"))]})
    bucket.put(2, {"Records": [record(1, _item("ann"))]})

    assert bucket.sweep() == 2

    versions = bucket.client.list_object_versions(Bucket="given-up")["Versions"]
    bodies = [
        bucket.client.get_object(Bucket="given-up", Key=it["Key"], VersionId=it["VersionId"])["Body"].read()
        for it in versions
    ]
    assert [b"bob" in body and b"ann" not in body for body in bodies] == [True]
