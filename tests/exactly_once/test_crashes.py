"""The Lambda handler, killed with SIGKILL at random moments, over DynamoDB Local."""

from __future__ import annotations

import random
import time

import pytest

from dynamodb_counters._declarations.codec import encode
from simulation.delivery.event_source_mapping import EventSourceMapping, Settings
from simulation.engines.dynamodb_local import DynamoDBLocal
from simulation.handler_process import HandlerProcess
from simulation.night import scaled
from simulation.pairs.audit import audit
from simulation.pairs.backend import LocalBackend
from simulation.pairs.declared import FAMILIES
from simulation.pairs.ledger import Ledger
from simulation.pairs.truth import Truth
from simulation.pairs.writers import Orders

ROUNDS = scaled(1)
SEED = 20_261_120
DECLARED = tuple(part for name in ("orders", "bins", "busy", "ranked", "tags") for part in FAMILIES[name][0])


def _environment(engine: DynamoDBLocal, backend: LocalBackend) -> dict[str, str]:
    region, url = engine.client.meta.region_name, str(engine.endpoint_url)
    aws = {"ACCESS_KEY_ID": "testing", "SECRET_ACCESS_KEY": "testing", "DEFAULT_REGION": region, "ENDPOINT_URL": url}
    tools = {"POWERTOOLS_SERVICE_NAME": "aggregator", "POWERTOOLS_METRICS_NAMESPACE": "counters"}
    own = {"TABLE_NAME": backend.name, "DECLARATIONS": encode(DECLARED), "QUARANTINE_RETENTION_DAYS": "14"}
    return {f"AWS_{name}": value for name, value in aws.items()} | tools | own


@pytest.mark.night
def test_no_kill_makes_a_count_wrong(dynamodb_local_engine: DynamoDBLocal) -> None:
    rng = random.Random(SEED)
    backend = LocalBackend(dynamodb_local_engine)
    orders, changes = Orders(backend, rng, spoils=False), scaled(40)
    mapping = EventSourceMapping(backend.stream, backend.clock, Settings(batch_size=40, bisect=True))
    process = HandlerProcess(_environment(dynamodb_local_engine, backend))
    usual = 0.2
    try:
        while True:
            for _ in range(min(10, changes)):
                orders.change()
            changes -= min(10, changes)
            deliveries = [delivery for shard in mapping.shards() if (delivery := mapping.poll(shard))]
            if not deliveries and not changes:
                if process.kills >= ROUNDS:
                    break
                changes = 50
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
    wrong = audit(backend, DECLARED, whole=False, truth=Truth(backend, Ledger()))
    backend.drop()
    assert not wrong, f"seed {SEED}: {wrong}"
