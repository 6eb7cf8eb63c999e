"""The event source mapping and the aggregator of counters in memory: whatever the stream has is counted at once."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from typing import Any, Final

from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._fold.origins import table_of
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.times import DAY, HOUR
from dynamodb_counters.testing._dynamodb.memory_client import MemoryDynamoDB
from dynamodb_counters.testing._dynamodb.memory_stream import MemoryStream, Record
from dynamodb_counters.testing._faults import Faults

_MOST_RECORDS: Final = 10_000

_MOST_CRASHES: Final = 3
"""Most crashes of the invocations of one batch, so that it is counted in the end."""

_MOST_CALLS: Final = 6
"""A crash comes no later than at this call of an invocation."""

_REPLAYED: Final = 20
"""Records before a batch that may be delivered again with it."""


class CrashedError(BaseException):
    """Ends an invocation as the death of its process would: nothing in the runtime catches it."""


class OneByOne(Executor):
    """A thread pool without threads: everything runs in its order, so that the seed decides everything."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **named))
        except Exception as error:  # noqa: BLE001
            future.set_exception(error)
        return future


class Counting:
    """Delivers the records of streams to the aggregator, in order by shard, with faults."""

    def __init__(
        self,
        memory: MemoryDynamoDB,
        declarations: tuple[Declaration, ...],
        clock: Callable[[], float],
        rng: random.Random,
        faults: Faults,
    ) -> None:
        self._memory, self._declarations, self._clock = memory, declarations, clock
        self._random, self._faults = rng, faults
        self._streams = [table.stream for table in memory.tables.values()]
        self._source_table = table_of(self._streams[-1].arn) if len(self._streams) > 1 else None
        self._counted: dict[tuple[str, str], str | None] = {}
        self._name, *_ = memory.tables
        self._aggregator = self._cold_start()
        self._aggregator.handle({})

    def catch_up(self) -> None:
        if self._faults.split and self._random.random() < self._faults.split:
            stream = self._random.choice(self._streams)
            stream.split(self._random.choice(stream.open_shards()), self._random.choice((1, 2)))
        while any(self._count_next(stream, shard) for stream, shard in self._shards()):
            pass

    def _shards(self) -> Iterable[tuple[MemoryStream, str]]:
        """Parents come before children, as Lambda has it."""
        for stream in self._streams:
            left = {shard.id: shard.parent for shard in stream.shards() if not self._is_ended(stream, shard.id)}
            free = [shard for shard, parent in left.items() if parent not in left]
            if self._faults:
                self._random.shuffle(free)
            yield from ((stream, shard) for shard in free)

    def _is_ended(self, stream: MemoryStream, shard: str) -> bool:
        page = stream.read(shard, self._counted.get((stream.arn, shard)), 1)
        return page.ended and not page.records

    def _count_next(self, stream: MemoryStream, shard: str) -> bool:
        place = stream.arn, shard
        most = self._random.choice((1, 2, 5, _MOST_RECORDS)) if self._faults else _MOST_RECORDS
        records = stream.read(shard, self._counted.get(place), most).records
        if not records:
            return False
        self._deliver(shard, records)
        self._counted[place] = records[-1]["dynamodb"]["SequenceNumber"]
        if self._faults.redeliver and self._random.random() < self._faults.redeliver:
            self._deliver(shard, self._once_more(stream, shard, records))
        return True

    def _once_more(self, stream: MemoryStream, shard: str, records: list[Record]) -> list[Record]:
        known = stream.read(shard, None, 10**9).records
        known = known[: known.index(records[-1]) + 1]
        # A batch that Lambda delivers again is young: a batch that is counted is repeated within minutes.
        young = [one for one in known if one["dynamodb"]["ApproximateCreationDateTime"] > self._clock() - HOUR]
        return young[-len(records) - self._random.randrange(_REPLAYED) :] or records

    def _deliver(self, shard: str, records: list[Record]) -> None:
        event = {"shardId": shard, "Records": records}
        for _ in range(_MOST_CRASHES):
            if self._random.random() >= self._faults.crash:
                break
            doomed = _Mortal(self._memory, self._random.randint(1, _MOST_CALLS), after=self._random.random() < 0.5)  # noqa: PLR2004
            try:
                self._cold_start(doomed).handle(event)
            except (CrashedError, TimeoutError):
                self._aggregator = self._cold_start()
        try:
            self._aggregator.handle(event)
        except TimeoutError:
            # It waits for invocations that have crashed, as it would in Lambda: none lasts for an hour.
            self._cold_start(waited=HOUR).handle(event)

    def _cold_start(self, client: Any = None, *, waited: float = 0.0) -> Aggregator:
        reached: Any = client or self._memory
        return Aggregator(
            one_by_one(Table(self._name, reached, clock=lambda: self._clock() + waited, sleep=lambda _: None)),
            self._declarations,
            quarantine_retention_seconds=14 * DAY,
            source_table=self._source_table,
        )


class _Mortal:
    def __init__(self, memory: MemoryDynamoDB, calls: int, *, after: bool) -> None:
        self._memory, self._left, self._after = memory, calls, after
        self.exceptions, self.meta = memory.exceptions, memory.meta

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._memory, name)

        def called(*arguments: Any, **request: Any) -> Any:
            self._left -= 1
            if self._left == 0 and not self._after:
                raise CrashedError
            answer = call(*arguments, **request)
            if self._left == 0:
                raise CrashedError
            return answer

        return called


def one_by_one(table: Table) -> Table:
    vars(table)["pool"] = OneByOne()
    return table
