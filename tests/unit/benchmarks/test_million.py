from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from benchmarks import million
from benchmarks.million_processes import events, read_notes, write_notes
from dynamodb_counters import Counters
from simulation.engines.dynamodb_local import DynamoDBLocal


def test_killed_on_the_way_it_is_exact(
    dynamodb_local_engine: DynamoDBLocal, capsys: pytest.CaptureFixture[str]
) -> None:
    assert million.main(["--events", "16000", "--kills", "2"]) == 0

    report = json.loads(capsys.readouterr().out)
    assert (report["exact"], report["kills"], report["events"]) == (True, 2, 16_000)
    assert 0 < report["write_units_per_event"]["accept"] < 0.02


def test_events_are_the_same_wherever_one_begins() -> None:
    assert list(events(1_500, 2_700)) == list(events(0, 4_000))[1_500:2_700]
    assert len({tuple(event.values()) for event in events(0, 4_000)}) == 4_000


class Answers:
    """Counts and events as they must be, but for one page."""

    def __init__(self, *, counted: int = 0, held: int = 0) -> None:
        self.counted, self.held = counted, held
        self.truth = Counter(event["url"] for event in events(0, 500))

    def get(self, *_: Any) -> Any:
        return SimpleNamespace(measures={"site_views": 500})

    def get_many(self, groups: Any) -> Any:
        return [
            SimpleNamespace(measures={"views": self.truth[values["url"]] + (values["url"] == "/page-0") * self.counted})
            for _, values in groups
        ]

    def events(self, _: Any) -> Any:
        return [*events(0, 500), *[{"url": "/page-0"}] * self.held]


@pytest.mark.parametrize(("errors", "wrong"), [({}, 0), ({"counted": 1}, 1), ({"counted": -1}, 1), ({"held": 1}, 1)])
def test_what_is_wrong_is_found(errors: dict[str, int], wrong: int) -> None:
    assert len(million._wrong(cast("Counters", Answers(**errors)), 500)) == wrong


def test_notes_survive_a_writer_that_dies(tmp_path: Path) -> None:
    notes = tmp_path / "accept"
    assert read_notes(notes) == {}
    write_notes(notes, {"events": 1_000})
    notes.with_suffix(".new").write_text('{"events": 20')

    assert read_notes(notes) == {"events": 1_000}
