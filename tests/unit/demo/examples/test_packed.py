from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

from demo.cost import Costs
from demo.examples.blog.example import Blog
from demo.examples.blog.traffic import View
from demo.examples.packed.example import Packed
from dynamodb_counters import Counters, Event
from examples.packed.declarations import VIEW
from tests.unit.demo.fakes import NOW, NameLengths, finding, silent

VIEWS = [View("/a", NOW.isoformat(), client) for client in ("c", "d", "c")]
PACKED = Packed(VIEWS, NOW)


class Table(NameLengths):
    """Holds these events."""

    def __init__(self, *held: View) -> None:
        super().__init__()
        self.held = held

    def events(self, event: Event) -> Iterator[dict[str, Any]]:
        assert event == VIEW
        return (view.as_event() for view in self.held)


@pytest.mark.parametrize(
    ("held", "differences"),
    [
        (VIEWS[:2], []),
        (VIEWS, ["packed: events of /a: 3, must be 2"]),
        (VIEWS[:1], ["packed: events of /a: 1, must be 2"]),
        ([*VIEWS[:2], View("/b", NOW.isoformat(), "c")], ["packed: events of /b: 1, must be 0"]),
    ],
)
def test_the_events_are_read_back(held: list[View], differences: list[str]) -> None:
    reading = PACKED.read(cast("Counters", Table(*held)), silent())

    assert finding(PACKED, reading.counts).differences() == differences


def test_its_totals_are_told_from_the_blogs() -> None:
    assert set(PACKED.expected_totals()).isdisjoint(Blog(VIEWS, NOW).expected_totals())
    assert set(PACKED.totals(cast("Counters", Table()))) == set(PACKED.expected_totals())


def test_what_could_not_be_measured_is_unknown() -> None:
    counts = PACKED.read(cast("Counters", Table(*VIEWS[:2])), silent()).counts
    found = replace(finding(PACKED, counts), costs=Costs(0.01, None, 0.5, {}))

    assert PACKED.section(found)["write_units_per_event_packed"] == {"accept": 0.01, "aggregate": None}
    assert "unknown to aggregate" in "\n".join(PACKED.lines(found))
