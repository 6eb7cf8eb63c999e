"""Counts that are not whole, as a reader has asked for them: flagged or raised."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Counters, Event, IncompleteError, InvalidArgumentError
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


def _reader(world: World, **settings: Any) -> Counters:
    return Counters("counters", client=world.table.client, **settings)


def test_counts_that_are_not_whole_are_flagged(world: World) -> None:
    group = _reader(world).get(_VIEWS, {"page": "home"})

    assert (group["views"], group.complete) == (1, False)


def test_counts_that_are_not_whole_are_refused_to_who_asks_for_that(world: World) -> None:
    with pytest.raises(IncompleteError, match="'views' does not count all there is: backfill it"):
        _reader(world, incomplete="raise").get(_VIEWS, {"page": "home"})


def test_an_unknown_treatment_of_such_counts_is_refused(world: World) -> None:
    with pytest.raises(InvalidArgumentError, match="invalid incomplete='error': expected 'flag' or 'raise'"):
        _reader(world, incomplete="error")
