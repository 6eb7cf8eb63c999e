"""The Lambda handler, and writers of packed events, killed with SIGKILL at random moments, over DynamoDB Local."""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import Any

from dynamodb_counters import Aggregate, Count, Counters, Event, Packed, Sum
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._declarations.codec import encode
from dynamodb_counters._declarations.packed import MIN_CHUNK_BYTES
from dynamodb_counters._table import Table
from simulation.delivery.event_source_mapping import EventSourceMapping, Settings
from simulation.engines.dynamodb_local import DynamoDBLocal
from simulation.handler_process import HandlerProcess, WriterProcess
from simulation.night import scaled
from simulation.oracle.specs import SPECS, declarations
from simulation.oracle.truth import actual, differences, expected_of_rows
from simulation.schedules.backend import LocalBackend
from simulation.schedules.writers import Writers

ROUNDS = scaled(1)
SEED = 20_261_120

URLS = ("/0", "/1", "/2")
VIEW = Event("view", pk="URL#{url}", sk="T#{time}#{id}", packed=Packed("time", chunk_bytes=MIN_CHUNK_BYTES))
VIEWS = Aggregate("views", VIEW, pk="URL#{url}", sk="VIEWS", measures={"views": Count(), "bytes": Sum("bytes")})


def _environment(engine: DynamoDBLocal, backend: LocalBackend) -> dict[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": engine.client.meta.region_name,
        "AWS_ENDPOINT_URL": str(engine.endpoint_url),
        "TABLE_NAME": backend.name,
    }


def test_no_kill_makes_a_count_wrong(dynamodb_local_engine: DynamoDBLocal) -> None:
    rng = random.Random(SEED)
    backend = LocalBackend(dynamodb_local_engine)
    writers = Writers(backend, rng, scaled(40))
    mapping = EventSourceMapping(backend.stream, backend.clock, Settings(batch_size=40, bisect=True))
    process = HandlerProcess(
        {
            **_environment(dynamodb_local_engine, backend),
            "DECLARATIONS": encode(declarations(SPECS)),
            "QUARANTINE_RETENTION_DAYS": "14",
            "POWERTOOLS_SERVICE_NAME": "aggregator",
            "POWERTOOLS_METRICS_NAMESPACE": "counters",
        }
    )
    usual = 0.2
    try:
        while True:
            for _ in range(min(10, writers.left)):
                writers.write()
            deliveries = [delivery for shard in mapping.shards() if (delivery := mapping.poll(shard))]
            if not deliveries and not writers.left:
                if process.kills >= ROUNDS:
                    break
                writers.left = 50
            for delivery in deliveries:
                # Anywhere from before its first write to after its last one.
                kill_after = rng.uniform(0, 1.2 * usual) if process.kills < ROUNDS else None
                begun = time.monotonic()
                response = process.invoke(delivery.event, kill_after)
                if response is None:
                    mapping.fail(delivery)
                else:
                    assert mapping.settle(delivery, response)
                    usual += (time.monotonic() - begun - usual) / 4
    finally:
        process.stop()
    now = backend.clock()
    rows = [(values, 1, False) for values in writers.live.values()] + [(values, 1, True) for values in writers.expired]
    wrong = differences(expected_of_rows(SPECS, rows, now), actual(backend.items(), now))
    backend.drop()
    assert not wrong, f"seed {SEED}: {wrong}"


def test_no_kill_of_a_writer_loses_a_packed_event_or_takes_it_twice(dynamodb_local_engine: DynamoDBLocal) -> None:
    rng = random.Random(SEED)
    backend = LocalBackend(dynamodb_local_engine)
    sent = _views(rng, int(backend.clock()))
    writers = [WriterProcess(_environment(dynamodb_local_engine, backend)) for _ in range(2)]
    waiting = [(batch, False) for batch in _batches(rng, sent)] + [([one], True) for one in rng.sample(sent, 60)]
    retracted = {batch[0]["id"] for batch, retracts in waiting if retracts}
    told, unanswered, kills, usual = Counter[int](), set[int](), 0, 0.3
    rng.shuffle(waiting)
    try:
        while waiting:
            batch, retracts = waiting.pop()
            writer, begun = rng.choice(writers), time.monotonic()
            # Anywhere from before its first request to after its last one.
            kill_after = None if retracts or kills == ROUNDS else rng.uniform(0, 1.2 * usual)
            answer = writer.invoke((VIEW, batch, retracts), kill_after)
            if answer is None:
                kills += kill_after is not None
                unanswered |= {one["id"] for one in batch}
                waiting.insert(rng.randrange(len(waiting) + 1), (batch, retracts))
                continue
            told.update(one["id"] for one, status in zip(batch, answer, strict=True) if status == "accepted")
            if not retracts:
                usual += (time.monotonic() - begun - usual) / 4
    finally:
        for writer in writers:
            writer.stop()
    found = _counted(backend)
    backend.drop()

    want = {url: Counter[str]() for url in URLS}
    for one in sent:
        if one["id"] not in retracted:
            want[one["url"]].update(views=1, bytes=one["bytes"])
    assert found == want, f"seed {SEED}"
    assert kills == ROUNDS
    # Each event is accepted once, unless the writer died before it said so, or the event was retracted before it came.
    assert set(told.values()) == {1}
    assert {one["id"] for one in sent} <= told.keys() | unanswered | retracted


def _views(rng: random.Random, now: int) -> list[dict[str, Any]]:
    """Views of several buckets, each with what does not compress."""
    return [
        {"url": rng.choice(URLS), "time": now - rng.randrange(900), "id": n, "bytes": n, "pad": rng.randbytes(90).hex()}
        for n in range(1000)
    ]


def _counted(backend: LocalBackend) -> dict[str, dict[str, Any]]:
    """Groups after all deliveries of the stream."""
    aggregator = Aggregator(Table(backend.name, backend.client), (VIEWS,), quarantine_retention_seconds=86_400)
    for shard in backend.stream.shards():
        aggregator.handle({"shardId": shard.id, "Records": backend.stream.read(shard.id, None, 100_000).records})
    counters = Counters(backend.name, client=backend.client)
    return {url: dict(counters.get(VIEWS, {"url": url}, consistent=True).measures) for url in URLS}


def _batches(rng: random.Random, sent: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Every event twice, in batches of up to 60."""
    all_of_them = rng.sample(sent, len(sent)) + rng.sample(sent, len(sent))
    batches = []
    while all_of_them:
        size = rng.randint(2, 60)
        batches.append(all_of_them[:size])
        all_of_them = all_of_them[size:]
    return batches
