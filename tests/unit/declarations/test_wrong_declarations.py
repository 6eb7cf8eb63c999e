"""Wrong declarations are refused by argument, value and what is allowed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dynamodb_counters import Aggregate, Count, Event, InvalidArgumentError
from dynamodb_counters._declarations import require_consistent
from tests.unit.declarations.wrong import PATH, PLAYERS, WRONG, Wrong


@pytest.mark.parametrize("wrong", WRONG, ids=[wrong.mistake for wrong in WRONG])
def test_the_error_names_argument_value_and_what_is_allowed(wrong: Wrong) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        wrong.make()

    error = refused.value
    assert str(error).startswith(f"invalid {wrong.argument}={wrong.value}")
    assert str(error).endswith(f": expected {wrong.expected}")


def test_there_are_twenty_and_each_is_another() -> None:
    assert len({wrong.mistake for wrong in WRONG}) == len(WRONG) >= 20


def test_a_cycle_cannot_be_written_down() -> None:
    one = Aggregate("one", PATH, pk="ONE", sk="ALL", measures={"n": Count()})
    two = Aggregate("two", one, pk="TWO", sk="ALL", measures={"n": Count()})

    # A source must exist before what looks at it, and a declaration does not change.
    with pytest.raises(AttributeError):
        one.source = two  # type: ignore[misc]
    # Another "one" over "two" over the first "one" can be made: two of one name.
    with pytest.raises(InvalidArgumentError, match="invalid name='one': expected one declaration per name"):
        require_consistent((replace(one, source=two), two, one))
    with pytest.raises(InvalidArgumentError, match="invalid name='one': expected one declaration per name"):
        require_consistent((replace(one, source=two), two))


def test_an_aggregate_over_its_own_items_by_way_of_an_event_cannot_be_written_down() -> None:
    loop = Event("players", pk="PLAYER#{player}", sk="STATISTICS")

    with pytest.raises(InvalidArgumentError, match="invalid name='players': expected one declaration per name"):
        require_consistent((PLAYERS, Aggregate("loop", loop, pk="LOOP", sk="ALL", measures={"n": Count()})))
