"""The constructs' pages name every argument, grant and metric; `tests/site` runs their examples."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from cdk_dynamodb_counters import CounterApi, DedupCounterTable, EventIngest, StreamAggregator, WindowedCounter
from tests.unit.infra.support import PROJECT

PAGES = {
    DedupCounterTable: PROJECT / "docs" / "constructs" / "dedup-counter-table.md",
    StreamAggregator: PROJECT / "docs" / "constructs" / "stream-aggregator.md",
    WindowedCounter: PROJECT / "docs" / "constructs" / "windowed-counter.md",
    EventIngest: PROJECT / "docs" / "constructs" / "event-ingest.md",
    CounterApi: PROJECT / "docs" / "constructs" / "counter-api.md",
}


@pytest.mark.parametrize("construct", PAGES)
def test_page_names_everything_public(construct: Any) -> None:
    page = PAGES[construct].read_text()
    arguments = list(inspect.signature(construct.__init__).parameters)[3:]
    inherited = {"is_construct", "node", "to_string", "with_"}
    members = [name for name in dir(construct) if not name.startswith("_") and name not in inherited]
    assert members
    assert [name for name in {*arguments, *members} if f"`{name}" not in page] == []
