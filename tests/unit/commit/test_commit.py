"""Each record is applied once, whatever batches of a shard are delivered and whichever updates fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import Aggregate, Event, Sum
from dynamodb_counters.errors import CommitError
from simulation.memory.client_errors import failure
from tests.unit.fold.world import World

_VIEW = Event("view", pk="VIEW#{id}", sk="VIEW")
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"sum": Sum("number")})
_URLS = "abc"

_faults = st.dictionaries(st.sampled_from(_URLS), st.sampled_from(["refused", "answer lost"]), max_size=2)
_deliveries = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6), _faults), max_size=8)


@given(st.text(_URLS, min_size=1, max_size=6), _deliveries)
def test_each_record_is_applied_once(urls: str, deliveries: list[tuple[int, int, Mapping[str, str]]]) -> None:
    world = World([_VIEWS], shards=1)
    for number, url in enumerate(urls):
        world.put(_VIEW, {"id": str(number), "url": url, "number": 10**number})
    [shard] = [each.id for each in world.client.stream.shards()]
    records, reached, send = world.client.stream.read(shard, None, 100).records, 0, world.client.update_item
    for start, length, faults in [*deliveries, (len(urls), len(urls), {})]:

        def update_item(faults: Mapping[str, str] = faults, **request: Any) -> dict[str, Any]:
            fault = faults.get(request["Key"]["pk"]["S"].removeprefix("URL#"))
            answer = {} if fault == "refused" else send(**request)
            if fault:
                raise failure("UpdateItem", "InternalServerError")
            return answer

        world.client.__dict__["update_item"] = update_item
        # A batch begins where the shard has been counted up to, or earlier.
        begin = min(start, reached)
        try:
            world.count(shard, records[begin : begin + length])
        except CommitError:
            continue
        reached = max(reached, min(begin + length, len(urls)))
    world.client.__dict__.pop("update_item")
    expected: Counter[str] = Counter()
    for number, url in enumerate(urls):
        expected[url] += 10**number
    assert {url: world.measures(_VIEWS, url=url)["sum"] for url in expected} == expected
