"""A random but legal history of deliveries, with faults, over two shards: every record is applied exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import count
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynamodb_counters import Aggregate, Event, Sum
from dynamodb_counters.errors import CommitError
from tests.integration.stores import OTHER_SHARD, SHARD, Store
from tests.unit.fold.streams import image, record
from tests.unit.writes.clients import failure, no_fault

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"sum": Sum("number")})
_FIRST = 10**21 - 3
"""Sequence numbers gain a digit from the fourth record on."""


@st.composite
def _schedules(draw: st.DrawFn) -> list[tuple[str, int, int, int]]:
    """Draw a legal history of one shard's deliveries: (what, start, end, seed of faults)."""
    steps: list[tuple[str, int, int, int]] = []
    done = 0
    while done < _LENGTH:
        end = draw(st.integers(done + 1, _LENGTH))
        for what in draw(st.lists(st.sampled_from(["fails", "lost", "bisected", "zombie"]), max_size=3)):
            if what == "zombie":
                # An invocation given up earlier, which began where the stream had been counted up to by then.
                start = draw(st.integers(0, done))
                steps.append((what, start, draw(st.integers(start + 1, _LENGTH)), draw(st.integers(0, 7))))
            elif what == "bisected":
                end = done + max(1, (end - done) // 2)
            else:
                steps.append((what, done, end, draw(st.integers(0, 7))))
        steps.append(("done", done, end, 0))
        done = end
    return steps


_LENGTH = 6
_RUNS = count()
"""Distinguishes the examples on one table."""


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text("abc", min_size=_LENGTH, max_size=_LENGTH), _schedules(), _schedules(), st.randoms())
def test_any_legal_history_of_deliveries_counts_each_record_once(
    store: Store, letters: str, first: list[Any], second: list[Any], shuffled: Any
) -> None:
    run = next(_RUNS)
    urls = [f"{run}-{letter}" for letter in letters]
    histories = {f"{SHARD}-{run}": list(first), f"{OTHER_SHARD}-{run}": list(second)}
    records = [record(_FIRST + n, image("view", url=url, id=str(n), number=10**n)) for n, url in enumerate(urls)]

    while pending := [shard for shard, steps in histories.items() if steps]:
        shard = shuffled.choice(pending)
        what, start, end, hit = histories[shard].pop(0)

        def fault(name: str, arguments: Mapping[str, Any], hit: int = hit) -> None:
            # A bit of the seed decides whether each of the three items fails.
            key = arguments.get("Key", {}).get("pk", {}).get("S", "")
            if name == "update_item" and key.startswith("URL#") and hit >> "abc".index(key[-1]) & 1:
                raise failure("InternalServerError", "UpdateItem")

        store.client.before = fault if what in ("fails", "zombie") else no_fault
        store.client.after = fault if what == "lost" else no_fault
        try:
            store.deliver(records[start:end], _VIEWS, shard=shard)
        except CommitError:
            assert what != "done"
    store.client.before = store.client.after = no_fault

    expected: Counter[str] = Counter()
    for n, url in enumerate(urls):
        expected[url] += 2 * 10**n
    groups = store.counters.get_many([(_VIEWS, {"url": url}) for url in expected], consistent=True)
    assert {group.values["url"]: group.measures["sum"] for group in groups} == dict(expected)
