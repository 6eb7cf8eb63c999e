"""One event that asks for too much waits in quarantine; its shard goes on."""

from __future__ import annotations

import pytest

from dynamodb_counters._declarations import Aggregate, Count, Event
from simulation.workbench import Workbench

_VIEW = Event("view", pk="VIEW#{id}", sk="VIEW")
_URLS = Aggregate("urls", _VIEW, pk="URL#{url}", sk="ALL", measures={"n": Count()})
_TAGS = Aggregate("tags", _VIEW, pk="TAG#{tags[]}", sk="CAT#{cats[]}", measures={"n": Count()})


@pytest.mark.parametrize(
    ("url", "members"), [("x" * 390_000, 1), ("/", 200)], ids=["a text that fills the item", "40,000 groups"]
)
def test_an_event_that_asks_for_too_much_stops_nothing(url: str, members: int) -> None:
    bench = Workbench([_URLS, _TAGS])
    lists = {name: [f"{name}{number}" for number in range(members)] for name in ("tags", "cats")}
    for number, values in enumerate(({"tags": ["a"], "cats": ["b"], "url": "/"}, {**lists, "url": url}) * 2):
        assert bench.counters.accept(_VIEW, {"id": number, **values}).status == "accepted"

    bench.deliver_all()

    # It waits for the one aggregate of which it asks too much; the other counts it.
    assert bench.counters.get(_URLS, {"url": "/"}).measures == {"n": 4 if url == "/" else 2}
    assert bench.counters.get(_TAGS, {"tags[]": "a", "cats[]": "b"}).measures == {"n": 2}
    assert ["invalid group" in entry.reason for entry in bench.counters.quarantined()] == [True, True]
