"""A table of many events: a group of 17 takes one Query; a group that takes a Scan, little memory.

3,000 events by default; ``EXPLAINED_EVENTS=1000000 pytest -s tests/unit/reads/test_explained_events.py`` has a million,
and prints the seconds, and the memory that they took.
"""

from __future__ import annotations

import os
import re
import resource
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event, InvalidArgumentError, Sum
from dynamodb_counters._reads.events import Explanation, explain
from dynamodb_counters._reads.question import Question
from simulation.counters_in_memory import counters_in_memory

EVENTS = int(os.environ.get("EXPLAINED_EVENTS", "3000"))
CALL = Event("call", pk="C#{customer}", sk="T#{id}")
USAGE = Aggregate("usage", CALL, by="customer", calls=Count())
ALL = Aggregate("all", CALL, calls=Count(), units=Sum("units"))
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
Explain = Callable[..., Explanation]
_PAGE = 1000
_BYTES = 80


class Large:
    """A client of a table with so many more events of one customer, which a Scan reads page by page."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.scans, self.queries, self.queried = 0, 0, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def describe_table(self, **request: Any) -> Any:
        described = self._client.describe_table(**request)
        described["Table"]["TableSizeBytes"] += EVENTS * _BYTES
        return described

    def query(self, **request: Any) -> Any:
        page = self._client.query(**request)
        calls = sum(item.get("_type") == {"S": "call"} for item in page["Items"])
        self.queries, self.queried = self.queries + bool(calls), self.queried + calls
        return page

    def get_paginator(self, operation: str) -> Any:
        return SimpleNamespace(paginate=self._scanned) if operation == "scan" else self._client.get_paginator(operation)

    def _scanned(self, **request: Any) -> Iterator[Any]:
        self.scans += 1
        yield from self._client.get_paginator("scan").paginate(**request)
        for first in range(0, EVENTS, _PAGE):
            yield {"Items": [_call("other", number) for number in range(first, min(EVENTS, first + _PAGE))]}


def _call(customer: str, number: int) -> dict[str, Any]:
    key = {"pk": {"S": f"C#{customer}"}, "sk": {"S": f"T#{number:07}"}, "_type": {"S": "call"}}
    return {**key, "customer": {"S": customer}, "id": {"S": f"{number:07}"}, "units": {"N": "2"}}


@pytest.fixture
def large() -> Iterator[tuple[Large, Explain]]:
    with counters_in_memory([USAGE, ALL], now=NOW) as counters:
        counters.accept_many(CALL, [{"customer": "acme", "id": f"{number:07}", "units": 2} for number in range(17)])
        [group] = [one for one in counters.client.scan(TableName="counters")["Items"] if one["_type"] == {"S": "all"}]
        # As if the others had been counted, too.
        change = {":calls": {"N": str(EVENTS)}, ":units": {"N": str(2 * EVENTS)}}
        key = {name: group[name] for name in ("pk", "sk")}
        update = {"UpdateExpression": "ADD calls :calls, units :units", "ExpressionAttributeValues": change}
        counters.client.update_item(TableName="counters", Key=key, **update)
        client: Any = Large(counters.client)
        table = replace(counters._table, client=client)

        def explained(declared: Aggregate, *, scan: bool = False, **values: str) -> Explanation:
            return explain(table, Question(now=NOW.timestamp(), declared=declared, values=values), scan=scan)

        yield client, explained


def test_a_group_of_its_own_partition_takes_one_query_of_its_events(large: tuple[Large, Explain]) -> None:
    found = large[1](USAGE, customer="acme")
    assert (found.numbers, found.difference) == ({"calls": 17}, {})
    assert (large[0].queries, large[0].queried, large[0].scans) == (1, 17, 0)


def test_the_price_of_a_scan_is_known_before_anything_is_read(large: tuple[Large, Explain]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"a Scan that takes [\d,]+ read units") as refused:
        large[1](ALL)
    [units] = re.findall(r"([\d,]+) read units", str(refused.value))
    assert int(units.replace(",", "")) >= EVENTS * _BYTES / 4096
    assert (large[0].scans, large[0].queries) == (0, 0)


def test_memory_is_bounded_however_many_events_a_scan_finds(large: tuple[Large, Explain]) -> None:
    begun = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if EVENTS <= _PAGE * 3:
        tracemalloc.start()
    try:
        found = large[1](ALL, scan=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{found.count:,} lines in {time.perf_counter() - begun:.0f} s; memory grew by {grown:.0f} MB")
    assert (found.numbers, found.difference) == ({"calls": EVENTS + 17, "units": 2 * EVENTS + 34}, {})
    assert (found.count, len(found.lines)) == (EVENTS + 17, 1000)
    # A page of items alone takes 2 MB here; all lines would take more.
    assert peak < 4_000_000
    assert grown < 100
