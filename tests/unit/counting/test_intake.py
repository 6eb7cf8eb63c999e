"""A redriven entry counts once, at the place of the record that brings it; checkpoints settle in time."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from counters_lambda.counting.batch import intake
from counters_lambda.counting.commit import Checkpoint, Checkpoints
from dynamodb_counters import Aggregate, Count, Event
from dynamodb_counters._assumptions import SETTLED_AFTER
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._quarantine import DELTA, RECORD, quarantine_item, quarantine_key, read_quarantine_item
from dynamodb_counters._tiers import MINUTE
from simulation.specification import traces
from simulation.world import World
from tests.unit.fold.streams import NOW, image, record

_VIEW = Event("view", pk="URL#{url}", sk="VIEW")
_A, _B, _C = [Aggregate(name, _VIEW, pk=name, sk="STATISTICS", measures={"n": Count()}) for name in ("a", "b", "c")]
_PLAN = Plan((_A,))
_HELD = record(7, image("view", url="/"), created=NOW - 1000)


def _redriven(sequence: int, attribute: str, content: str, names: Sequence[str] = ()) -> dict[str, Any]:
    key = quarantine_key("shard", "1#NewImage")
    waiting = quarantine_item(key, "reason", {attribute: {"S": content}}, names, NOW)
    return record(sequence, {**waiting, "state": {"S": "released"}}, waiting)


def _entry(sequence: int) -> dict[str, Any]:
    return _redriven(sequence, RECORD, json.dumps(_HELD))


def test_an_entry_that_failed_again_holds_the_redrive_itself_and_records_ascend() -> None:
    again = _redriven(30, RECORD, json.dumps(_entry(20)))

    [change] = intake([again])

    assert (int(change.sequence), change.record) == (30, _HELD)
    with pytest.raises(AssertionError, match="a shard's records ascend"):
        intake([again, _entry(20)])


def test_a_delta_is_read_exactly() -> None:
    numbers = {"n": "123456789012345678901234567890", "p": "0.10"}
    text = json.dumps({"name": "views", "group": ["/"], "numbers": numbers})

    [change] = intake([_redriven(5, DELTA, text)])

    assert change.delta is not None
    assert change.delta[:2] == ("views", ("/",))
    assert [(name, str(number)) for name, number in change.delta[2]] == list(numbers.items())


def test_an_entry_is_counted_by_the_declarations_it_waits_for() -> None:
    deletion = record(7, None, image("view", url="/"))

    [change] = intake([_redriven(20, RECORD, json.dumps(deletion), names=["a", "c", "gone"])])
    folded = fold(Plan((_A, _B, _C)), [change])

    assert [(delta.layout.name, delta.measures) for delta in folded.deltas] == [("a", {"n": -1}), ("c", {"n": -1})]
    [again] = folded.invalid
    assert (again.entry_id, again.names) == (f"{20:040}#OldImage", ("gone",))


_SPOILED: dict[str, list[dict[str, Any]]] = {
    RECORD: [{"B": base64.b64encode(b"x").decode()}, {"S": "{"}, {"S": '{"dynamodb": 7}'}, {}],
    "names": [{"N": "7"}, {"S": "a"}, {"M": {}}, {"SS": None}],
}


@pytest.mark.parametrize(("attribute", "spoiled"), [(name, value) for name in _SPOILED for value in _SPOILED[name]])
def test_a_spoiled_entry_is_kept(attribute: str, spoiled: dict[str, Any]) -> None:
    entry = _entry(4)
    entry["dynamodb"]["NewImage"][attribute] = spoiled

    folded = fold(_PLAN, intake([entry, _entry(5)]))

    assert [(delta.layout.name, int(delta.last)) for delta in folded.deltas] == [("a", 5)]
    [item] = folded.invalid
    assert (item.record, item.entry_id) == (entry, f"{4:040}#NewImage")
    if attribute == RECORD:
        assert read_quarantine_item(entry["dynamodb"]["NewImage"]).content in ({}, {"dynamodb": 7})


_SHARD = "shardId-00000000001414576573621-f55eea83"
PAGE = Path(__file__).parents[3] / "docs" / "exactly-once.md"
NEW = f"{8:040}"
STAMP = 1_795_000_000.0
# Limits of Lambda; of a process that relies on what it has read; of clocks that differ, and requests that land late.
INVOCATION, COPY, LATE = 15 * MINUTE, MINUTE, 12 * MINUTE


def test_a_checkpoint_moves_once_in_a_hundred_items() -> None:
    world = World(founds=False)
    process = Checkpoints(world.store, world.store)
    units = [process.committed(_SHARD, f"{number:040}", 40, world.clock() + 900) for number in range(1, 8)]
    assert units == [0, 0, 1, 0, 0, 1, 0]


def test_a_checkpoint_has_settled_as_soon_as_every_invocation_knows_of_it() -> None:
    checkpoint = Checkpoint(applied_through=NEW, at=STAMP)
    assert {checkpoint.settled_through(STAMP + minutes * MINUTE) for minutes in (1, 11, 16, 26, 28)} == {""}
    assert checkpoint.settled_through(STAMP + INVOCATION + COPY + LATE + 1) == NEW


def test_the_page_and_the_specification_have_the_same_time() -> None:
    assert SETTLED_AFTER == INVOCATION + COPY + LATE == traces.SETTLING
    [minutes] = re.findall(r"\*\*A checkpoint has settled\*\* once it has stood for (\d+) minutes", PAGE.read_text())
    assert int(minutes) * MINUTE == SETTLED_AFTER
