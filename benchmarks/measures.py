"""Price of active members, percentiles and extremes, and of the naive ways.

Batches hold one record, those of percentiles 100, so that nothing is shared: an event of a member on a day is delivered
alone, and so is the change of the member's page that it makes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import ceil
from typing import Any, Final

from benchmarks.databases import Database, MeteredClient, since, units
from benchmarks.designs.ours import SHARD
from benchmarks.metering import purpose
from benchmarks.queue_and_stream import Stream
from dynamodb_counters import ActiveMembers, Aggregate, Counters, Event, Extremes, Percentiles, Threshold
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._declarations import Declarable, flatten
from dynamodb_counters._table import Table
from simulation.metered_table import Usage

_START: Final = datetime(2026, 11, 20, tzinfo=UTC)
_DAY: Final = timedelta(days=1)
_SPAN: Final = 30

_VISIT: Final = Event("visit", key=("client", "time"))
_USERS: Final = ActiveMembers("users", _VISIT, member="client", time="time", longest=_SPAN * _DAY)
_REQUEST: Final = Event("request", key="id")
_LATENCY: Final = Percentiles("latency", _REQUEST, attribute="ms", error=0.01, time="at")
_SLOWEST: Final = Extremes("slowest", _REQUEST, attribute="ms")
_USAGE: Final = Aggregate("usage", _REQUEST, pk="USAGE", sk="ALL")
_CALLS: Final = 20
_SIGMAS: Final = (0.5, 1.0)
_BATCH: Final = 100
_PER_HOUR: Final = 1_000


class Counted:
    """A table that counts by a declaration; `written` has the write units of counts alone, without checkpoints."""

    def __init__(self, database: Database, name: str, *declared: Declarable, batch: int = 1) -> None:
        database.create(name, "pk", "sk")
        self.written, self._database = 0.0, database
        self._stream = Stream(database, name, batch)
        self.counters = Counters(name, client=database.client, clock=database.clock)
        client: Any = MeteredClient(database.client, self._sent)
        table = Table(name, client, clock=database.clock)
        self._aggregator = Aggregator(table, flatten(declared), quarantine_retention_seconds=86_400)

    def count(self, event: Event, events: Iterable[Mapping[str, Any]]) -> float:
        """Accept events, then count them; all units of counting."""
        # One by one: many at once come in any order.
        for each in events:
            self.counters.accept(event, each)
        before = copy(self._database.usage)
        self._stream.drain(lambda records: self._aggregator.handle({"shardId": SHARD, "Records": records}))
        return units(since(before, self._database.usage))

    def _sent(self, name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        before = copy(self._database.usage)
        try:
            return send()
        finally:
            if purpose(name, request) == "items":
                self.written += since(before, self._database.usage).writes


def measure(database: Database, visitors: Iterable[tuple[int, int]], values: int) -> dict[str, Any]:
    """All of it, for some numbers of days and of members, and for so many values."""
    return {
        "unique": {f"{days} days": _unique(database, days, members) for days, members in visitors},
        "percentiles": {f"sigma {sigma}": _percentiles(database, sigma, values) for sigma in _SIGMAS},
        "extremes": {
            order: _extremes(database, order, numbers)
            for order, numbers in (
                ("growing", [*range(1, values + 1)]),
                ("at random", random.Random(5).sample(range(1, 10 * values), values)),
            )
        },
        "thresholds": {f"{_CALLS} updates": _thresholds(database)},
    }


def _thresholds(database: Database) -> dict[str, Any]:
    """Units of updates of a group, one by one, that cross nothing or a line each, and those without thresholds."""
    found: dict[str, Any] = {}
    for title, thresholds, crossed in (
        ("without thresholds", (), 0),
        ("above no level", (Threshold("high", _USAGE, at=[10**6]),), 0),
        ("above one level more each time", (Threshold("each", _USAGE, at=range(1, _CALLS + 1)),), _CALLS),
    ):
        counting = Counted(database, f"thresholds-{title.replace(' ', '-')}", _USAGE, *thresholds)
        counting.count(_REQUEST, ())
        whole = counting.count(_REQUEST, [{"id": f"{number}", "ms": 1, "at": 0} for number in range(_CALLS)])
        least = found["without thresholds"]["units"] if found else whole
        more = whole - least
        found[title] = {"units": whole, "more": more, "more_per_crossing": more / crossed if crossed else more}
    return found


def _unique(database: Database, days: int, members: int) -> dict[str, Any]:
    """Units of members that are active on days at random, with an event on each, in order.

    A member's page holds 342 days, and those of the last 30 are written twice.
    """
    dice = random.Random(4)
    often = {f"c{number:05}": dice.uniform(0.05, 0.6) for number in range(members)}
    active = [[client for client, share in often.items() if dice.random() < share] for _ in range(days)]
    visits = [
        {"client": client, "time": (_START + day * _DAY + timedelta(seconds=number)).isoformat()}
        for day, clients in enumerate(active)
        for number, client in enumerate(clients)
    ]
    counting = Counted(database, f"unique-{days}", _USERS)
    whole = counting.count(_VISIT, visits)
    asked = range(max(days - _SPAN, _SPAN - 1), days)
    due = {last: len(set().union(*active[last - _SPAN + 1 : last + 1])) for last in asked}
    users = counting.counters.active(_USERS)

    def ours(last: int) -> int:
        return int(users.last(days=_SPAN, as_of=_START + last * _DAY).count)

    naive = _Rows(database, f"unique-naive-{days}")
    put = _used(database, lambda visit: naive.put("-", f"{visit['time'][:10]}#{visit['client']}"), visits)

    def merged(last: int) -> int:
        first, end = (str((_START + day * _DAY).date()) for day in (last - _SPAN + 1, last + 1))
        return len({sk.partition("#")[2] for sk in naive.between("-", first, end)})

    # A process asks once a minute which definitions count.
    ours(days - 1)
    series = _used(database, lambda end: users.rolling(_START, end), [_START + days * _DAY])
    return {
        "this": {
            "write_units": counting.written / len(visits),
            "with_checkpoints": whole / len(visits),
            **_reads(database, ours, due),
            "series_read_units": series.reads,
        },
        "an item per member and day": {
            "write_units": put.writes / len(visits),
            "with_checkpoints": put.writes / len(visits),
            **_reads(database, merged, due),
            "series_read_units": None,
        },
    }


def _percentiles(database: Database, sigma: float, values: int) -> dict[str, Any]:
    """Latencies in batches of a hundred, of which each touches an hour's bucket, or two where an hour begins."""
    dice = random.Random(6)
    latencies = [Decimal(str(round(dice.lognormvariate(4, sigma), 2))) for _ in range(values)]
    at = [_START + number * timedelta(hours=1) / _PER_HOUR for number in range(values)]
    events = [
        {"id": f"r{number:07}", "ms": ms, "at": moment.isoformat()}
        for number, (ms, moment) in enumerate(zip(latencies, at, strict=True))
    ]
    hours = [moment.replace(minute=0, second=0, microsecond=0) for moment in at]
    starts = range(0, values, _BATCH)
    touched = sum(len(set(hours[start : start + _BATCH])) for start in starts)
    counting = Counted(database, f"percentiles-{sigma}", _LATENCY, batch=_BATCH)
    counting.count(_REQUEST, events)
    reader = counting.counters.distributions(_LATENCY)

    def ours(hour: datetime) -> Decimal:
        found = reader.between(hour, hour + timedelta(hours=1)).p(0.99)
        assert found is not None
        return found

    naive = _Rows(database, f"percentiles-naive-{sigma}")
    put = _used(
        database, lambda value: naive.put(str(hours[value]), f"{latencies[value]:013.3f}#{value}"), range(values)
    )

    def scanned(hour: datetime) -> Decimal:
        held = naive.between(str(hour), "0", "~")
        return Decimal(held[ceil(0.99 * len(held)) - 1].partition("#")[0])

    due = {}
    for hour in dict.fromkeys(hours):
        held = sorted(ms for ms, each in zip(latencies, hours, strict=True) if each == hour)
        due[hour] = held[-(-99 * len(held) // 100) - 1]
    ours(hours[0])
    error = max(abs(ours(hour) - exact) / exact for hour, exact in due.items())
    return {
        "this": {
            "write_units": counting.written / values,
            "units_per_bucket": counting.written / touched,
            "read_units": _read_units(database, ours, due),
            "error_percent": float(100 * error),
        },
        "an item per value, all read": {
            "write_units": put.writes / values,
            "units_per_bucket": put.writes / touched,
            "read_units": _read_units(database, scanned, due),
            "error_percent": float(100 * max(abs(scanned(hour) - exact) / exact for hour, exact in due.items())),
        },
    }


def _extremes(database: Database, order: str, values: Sequence[int]) -> dict[str, Any]:
    """Values one after the other, each in a batch of its own; the join by processes that each count half of them."""
    events = [{"id": f"{number:07}", "ms": value} for number, value in enumerate(values)]
    counting = Counted(database, f"{_SLOWEST.name}-{order.replace(' ', '-')}", _SLOWEST)
    counting.count(_REQUEST, events)
    counting.counters.largest(_SLOWEST)

    read = _used(database, counting.counters.largest, [_SLOWEST])
    [largest] = counting.counters.largest(_SLOWEST)
    found: dict[str, Any] = {
        "index of values": {
            "units_per_value": counting.written / len(values),
            "read_units": read.reads,
            "exact": largest.value == max(values),
        }
    }
    naive = _Rows(database, f"extremes-naive-{order.replace(' ', '-')}")
    took = _used(database, naive.raise_to, values)
    read = _used(database, lambda consistent: naive.number(consistent=consistent), [False])
    found["read, then write if larger"] = {
        "units_per_value": units(took) / len(values),
        "read_units": read.reads,
        "exact": naive.number() == max(values),
    }
    return found


def _used(database: Database, work: Callable[[Any], object], asked: Iterable[Any]) -> Usage:
    before = copy(database.usage)
    for each in asked:
        work(each)
    return since(before, database.usage)


def _read_units(database: Database, read: Callable[[Any], object], asked: Iterable[Any]) -> float:
    """The mean of some reads."""
    wanted = [*asked]
    return _used(database, read, wanted).reads / len(wanted)


def _reads(database: Database, read: Callable[[int], int], due: Mapping[int, int]) -> dict[str, Any]:
    return {
        "read_units": _read_units(database, read, due),
        "exact": all(read(each) == count for each, count in due.items()),
    }


class _Rows:
    """A table of the naive ways."""

    def __init__(self, database: Database, name: str) -> None:
        database.create(name, "pk", "sk")
        self._client, self._name = database.client, name

    def put(self, pk: str, sk: str) -> None:
        self._client.put_item(TableName=self._name, Item={"pk": {"S": pk}, "sk": {"S": sk}})

    def between(self, pk: str, first: str, end: str) -> list[str]:
        values = {":pk": {"S": pk}, ":a": {"S": first}, ":b": {"S": end}}
        pages = self._client.get_paginator("query").paginate(
            TableName=self._name,
            KeyConditionExpression="pk = :pk AND sk BETWEEN :a AND :b",
            ExpressionAttributeValues=values,
        )
        return [item["sk"]["S"] for page in pages for item in page["Items"]]

    def number(self, *, consistent: bool = True) -> int:
        key = {"pk": {"S": "-"}, "sk": {"S": "-"}}
        answer = self._client.get_item(TableName=self._name, Key=key, ConsistentRead=consistent)
        return int(answer["Item"]["value"]["N"]) if "Item" in answer else 0

    def raise_to(self, value: int) -> None:
        if value > self.number():
            item = {"pk": {"S": "-"}, "sk": {"S": "-"}, "value": {"N": str(value)}}
            self._client.put_item(TableName=self._name, Item=item)
