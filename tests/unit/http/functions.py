"""Functions as Lambda runs them, and what events go through from the queue to the counts."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module, reload
from typing import Any, Final

import pytest

from dynamodb_counters import _clients as clients
from dynamodb_counters import _counters as counters
from dynamodb_counters import _table as table
from simulation.handler_process import LAMBDA_CONTEXT
from simulation.memory.memory_stream import Record
from simulation.memory_table import MemoryTable
from simulation.queue.sqs import SQS, Queue

_ALL: Final = 10**6


class Function:
    """One of the runtime's handlers in an environment of its own, with a table or a queue as its AWS client.

    `services` has the clients of other services; without one, queues are in memory, by their URLs.
    """

    def __init__(
        self,
        handler: str,
        environment: Mapping[str, str],
        client: object,
        services: Mapping[str, object] | None = None,
    ) -> None:
        self._environment = {"AWS_LAMBDA_FUNCTION_NAME": "function", **environment}
        self._client = client
        clock = client._clock if isinstance(client, MemoryTable) else lambda: 0.0
        self.queues: defaultdict[str, Queue] = defaultdict(lambda: Queue(clock))
        self._services = {"sqs": SQS(self.queues), **(services or {})}
        name, _, self._handler = handler.rpartition(".")
        with self._running():
            # Powertools reads its variables when a module is loaded.
            self._module = reload(import_module(name))

    def __call__(self, event: dict[str, Any]) -> dict[str, Any]:
        with self._running() as patch:
            for name, reached in (("Table", table.Table), ("Counters", counters.Counters)):
                if hasattr(self._module, name) and isinstance(self._client, MemoryTable):
                    # Records of long ago are quarantined, packed events refused: functions share the table's clock.
                    patch.setattr(self._module, name, partial(reached, clock=self._client._clock))
            answer: dict[str, Any] = getattr(self._module, self._handler)(event, LAMBDA_CONTEXT)
            return answer

    @contextmanager
    def _running(self) -> Iterator[pytest.MonkeyPatch]:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self._environment.items():
                patch.setenv(name, value)
            for module in (counters, table):
                patch.setattr(module, "make_client", lambda *_: self._client)
            patch.setattr(clients, "make_service_client", lambda service, *_: self._services[service])
            yield patch


class Pipeline:
    """Writers of a table of one shard: the consumer of the queue, and the aggregator behind the stream."""

    def __init__(self, client: MemoryTable, consumer: Function, aggregator: Function) -> None:
        self._stream, self._consumer, self._aggregator = client.stream, consumer, aggregator
        [self._shard] = [shard.id for shard in client.stream.shards()]
        self._last: str | None = None

    def accept(self, *bodies: str) -> list[str]:
        """Hand messages to the consumer; return the numbers of those to be delivered again."""
        records = [
            {"messageId": str(number), "body": body, "eventSource": "aws:sqs"} for number, body in enumerate(bodies)
        ]
        return [one["itemIdentifier"] for one in self._consumer({"Records": records})["batchItemFailures"]]

    def records(self) -> list[Record]:
        """Records that the stream got since the last call."""
        found = self._stream.read(self._shard, self._last, _ALL).records
        self._last = found[-1]["dynamodb"]["SequenceNumber"] if found else self._last
        return found

    def count(self, records: Iterable[Record]) -> None:
        """Hand records to the aggregator."""
        batch = {"Records": list(records), "shardId": self._shard, "isFinalInvokeForWindow": False, "state": {}}
        assert "state" in self._aggregator(batch)

    def settle(self) -> None:
        """Count until the stream is empty: aggregates feed aggregates."""
        while records := self.records():
            self.count(records)


def message(*events: Mapping[str, Any]) -> str:
    """The body of a queue's message."""
    return json.dumps(events)
