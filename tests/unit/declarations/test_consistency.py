"""Declarations that share a table: no two may have one name or could write one item."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dynamodb_counters import Aggregate, Count, Event, InvalidArgumentError, Window
from dynamodb_counters._declarations import Declaration, require_consistent
from dynamodb_counters._fold.plan import Plan

_VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}")


def _aggregate(name: str, pk: str, sk: str, source: Event = _VIEW) -> Aggregate:
    return Aggregate(name, source, pk=pk, sk=sk, measures={"n": Count()})


def _window(name: str, pk: str, source: Event = _VIEW) -> Window:
    return Window(name, source, pk=pk, time="time")


_VIEWS = _aggregate("views", "URL#{url}", "STATISTICS")


_CLASHES: dict[str, tuple[Declaration, ...]] = {
    "the same twice": (_VIEWS, _VIEWS),
    "two aggregates of one name": (_VIEWS, _aggregate("views", "OTHER#{url}", "STATISTICS")),
    "a window and an aggregate of one name": (_VIEWS, _window("views", "W#{url}")),
    "an aggregate named like an event": (_aggregate("view", "W#{url}", "STATISTICS"),),
    "two events of one name": (_VIEWS, _aggregate("jobs", "C#{c}", "N", Event("view", pk="C#{c}", sk="JOB#{id}"))),
    "two aggregates with one key": (_VIEWS, _aggregate("other", "URL#{url}", "STATISTICS")),
    "two aggregates with one key, fields named differently": (_VIEWS, _aggregate("o", "URL#{page}", "STATISTICS")),
    "a constant key that a value can take": (_VIEWS, _aggregate("root", "URL#home", "STATISTICS")),
    "a prefix that a value can continue": (_aggregate("a", "X#A{a}", "S"), _aggregate("b", "X#AB{a}", "S")),
    "an aggregate over its own events": (_aggregate("a", "URL#{url}", "T#{time}#CID#{clientId}"),),
    "an aggregate that an event can be": (_aggregate("a", "URL#{url}", "T#{x}#CID#TOTAL"),),
    "two events that can be each other": (
        _VIEWS,
        _aggregate("n", "N", "N", Event("visit", pk="URL#{url}", sk="T#{time}#CID#{visitor}")),
    ),
    "a bucket that an aggregate can be": (_aggregate("a", "URL#{url}", "WINDOW#{x}#H#{y}"), _window("w", "URL#{url}")),
    "a bucket that an event can be": (_window("w", "C#{c}", Event("job", pk="C#{c}", sk="{a}#{b}#{c}#{d}")),),
}


@pytest.mark.parametrize("clash", _CLASHES)
@pytest.mark.parametrize("check", [require_consistent, Plan])
def test_declarations_that_meet_are_refused(clash: str, check: Callable[[tuple[Declaration, ...]], object]) -> None:
    declarations = _CLASHES[clash]
    for order in (declarations, declarations[::-1]):
        with pytest.raises(InvalidArgumentError) as refused:
            check(order)

        assert refused.value.argument in ("name", "sk", "declarations")
        assert refused.value.expected


def test_no_item_may_stand_where_quarantine_keeps_its_records() -> None:
    forger = Event("forger", pk="{a}#{b}", sk="{c}#{d}")

    with pytest.raises(InvalidArgumentError):
        require_consistent((_aggregate("n", "N", "N", forger),))


_NOTE = Event("note", pk="URL#{url}", sk="{id}")


@pytest.mark.parametrize(
    ("declarations", "events", "argument"),
    [
        ((_VIEWS,), [_NOTE], "sk"),
        ((_window("recent", "URL#{url}"),), [Event("note", pk="URL#{url}", sk="{a}#{b}#{c}#{d}")], "sk"),
        ((_VIEWS,), [Event("view", pk="V#{url}", sk="{id}")], "name"),
        ((_VIEWS,), [Event("views", pk="V#{url}", sk="{id}")], "name"),
        ((), [_NOTE, Event("memo", pk="URL#{url}", sk="{memo}")], "sk"),
        ((), [Event("forger", pk="{a}#{b}", sk="{c}#{d}")], "pk"),
    ],
    ids=["count", "bucket", "other-event", "name-of-a-count", "each-other", "reserved"],
)
def test_events_that_nothing_counts_are_checked_too(
    declarations: tuple[Declaration, ...], events: list[Event], argument: str
) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        require_consistent(declarations, events)
    assert refused.value.argument == argument


def test_events_that_are_counted_may_be_given_again() -> None:
    require_consistent((_VIEWS,), [_VIEW, Event("note", pk="NOTE#{url}", sk="{id}")])
