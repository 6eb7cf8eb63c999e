"""The page's aggregators: wrong before if a batch is delivered again, exact after, by five lines at most."""

from __future__ import annotations

import contextlib
import re
import time
from pathlib import Path
from typing import Any

import boto3
import pytest

from simulation.clock import VirtualClock
from simulation.faults.actors import Crashed
from simulation.faults.hooked_client import Dying
from simulation.memory_table import MemoryTable

PAGE = Path(__file__).parents[2] / "docs" / "your-aggregator.md"
DIFFS = [diff for diff in re.findall(r"```diff\n(.*?)```", PAGE.read_text(), re.DOTALL) if "def handler" in diff]
ORDER = {"shop": {"S": "a"}, "day": {"S": "2026-11-20"}, "cents": {"N": "250"}}


class Context:
    def get_remaining_time_in_millis(self) -> int:
        return 60_000


def test_the_page_has_three_aggregators_of_five_changed_lines_each() -> None:
    assert [sum(line.startswith("+") for line in diff.splitlines()) for diff in DIFFS] == [5, 5, 5]


@pytest.mark.parametrize("diff", DIFFS)
@pytest.mark.parametrize("requests", [1, 2])
def test_a_batch_that_died_halfway_and_comes_again_is_counted_once(
    diff: str, requests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _counts(diff, "+", requests, monkeypatch)["SHOP"] > 3
    assert set(_counts(diff, "-", requests, monkeypatch).values()) == {3}


def _counts(diff: str, without: str, requests: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Return what is counted of three orders, whose batch dies after so many requests and comes again."""
    table: Any = MemoryTable(VirtualClock(), name="totals")
    source = "\n".join(line[1:] for line in diff.splitlines() if not line.startswith(without))
    change = {"ApproximateCreationDateTime": time.time(), "NewImage": ORDER}
    common = {"eventName": "INSERT", "eventSource": "aws:dynamodb", "eventSourceARN": "arn:aws:dynamodb:::table/orders"}
    records = [{**common, "dynamodb": {**change, "SequenceNumber": str(number)}} for number in range(1, 4)]

    def invoke(client: Any) -> None:
        monkeypatch.setattr(boto3, "client", lambda _: client)
        names: dict[str, Any] = {}
        exec(source, names)
        names["handler"]({"Records": records, "shardId": "shardId-1"}, Context())

    with contextlib.suppress(Crashed):
        invoke(Dying(table, requests, after=False))
    invoke(table)
    return {item["pk"]["S"]: int(item["orders"]["N"]) for item in table.items()}
