"""Counts that are not whole are flagged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dynamodb_counters import Aggregate, Count, Counters, Event
from dynamodb_counters._control.registry import WAITING, Registry, entries_of, write_registry
from tests.unit.fold.world import World

_VIEW = Event("view", pk="PAGE#{page}", sk="VIEW#{user}")
_VIEWS = Aggregate("views", _VIEW, pk="PAGE#{page}", sk="VIEWS", measures={"views": Count()})


@pytest.fixture
def world() -> World:
    world = World([_VIEWS])
    world.put(_VIEW, {"page": "home", "user": "ann"})
    world.settle()
    changes = [(None, replace(entry, state=WAITING)) for entry in entries_of([_VIEWS])]
    assert write_registry(world.table, Registry(), changes)
    return world


def test_counts_that_are_not_whole_are_flagged(world: World) -> None:
    group = Counters("counters", client=world.table.client).get(_VIEWS, {"page": "home"})

    assert (group["views"], group.complete) == (1, False)
