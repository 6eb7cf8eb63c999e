"""The door refuses exactly what the fold would quarantine, so that strangers cannot fill the quarantine."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import Aggregate, Attr, Average, Count, Distinct, Event, Histogram, Sum, Window
from dynamodb_counters._declarations import flatten
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of, inserted
from dynamodb_counters._writes.event_items import typed_item
from dynamodb_counters.errors import InvalidArgumentError
from tests.unit.fold.streams import NOW

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_DECLARATIONS = flatten(
    (
        Aggregate("by", _VIEW, pk="URL#{url}", sk="S", measures={"n": Count(), "b": Sum("bytes", cap=1000)}),
        Aggregate("daily", _VIEW, pk="DAY#{at:day}", sk="S", measures={"mean": Average("bytes")}),
        Aggregate("tagged", _VIEW, pk="TAG#{tags[]}", sk="U#{url}", measures={"n": Count()}, max_groups=3),
        Aggregate(
            "sizes",
            _VIEW,
            pk="SIZES",
            sk="S",
            measures={"h": Histogram("bytes", bounds=(1, 10))},
            where=Attr("bytes").gt(0),
        ),
        Window("recent", _VIEW, pk="URL#{place.city}", time="at", retention=timedelta(days=7), late="quarantine"),
        Window("kept", _VIEW, pk="ALL", time="at", retention=timedelta(days=7), future_tolerance=None),
        Distinct("visitors", _VIEW, pk="URL#{url}", sk="V", member="id"),
    )
)
_PLAN = Plan(_DECLARATIONS)
_GOOD: dict[str, Any] = {
    "url": "/",
    "id": "1",
    "at": NOW,
    "bytes": 5,
    "tags": ["a", "b"],
    "place": {"city": "Oslo"},
}

_TIMES = st.sampled_from(
    [
        NOW,
        str(NOW),
        NOW * 1000,
        NOW + 901,
        NOW - 8 * 86_400,
        10**15,
        "2026-09-21T14:13:20Z",
        "2026-19-39T29:59:59Z",
        "2026-09-21",
        "9999-12-31T23:59:59-23:59",
        "0001-01-01T00:00:00+01:00",
    ]
)
_NUMBERS = st.sampled_from([0, -1, 5, Decimal("0.5"), 10**37, Decimal("9.9E+125"), Decimal("1E-130")])
_TEXTS = st.sampled_from(["", "/", "x" * 9000, "ä" * 4200, "#%"]) | st.text(max_size=5)
_ANY = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXTS | _TIMES,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(["city", "x"]), inner, max_size=2),
    max_leaves=6,
)
_EVENTS = st.fixed_dictionaries(
    {"url": _TEXTS, "id": _TEXTS},
    optional={
        "at": _TIMES | _ANY,
        "bytes": _NUMBERS | _ANY,
        "tags": st.lists(_TEXTS | _ANY, max_size=5) | _ANY,
        "place": st.fixed_dictionaries({"city": _TEXTS | _ANY}) | _ANY,
    },
)


@given(st.just({}) | _EVENTS, _EVENTS)
def test_the_door_refuses_exactly_what_the_fold_would_quarantine(some: dict[str, Any], more: dict[str, Any]) -> None:
    # Mostly well formed, so that one attribute at a time decides.
    for values in ({**_GOOD, **some}, more, *({**_GOOD, name: value} for name, value in more.items())):
        try:
            item = typed_item(_VIEW, values)
        except InvalidArgumentError:
            continue
        folded = fold(_PLAN, changes_of([inserted(item, NOW)]))
        assert (_PLAN.refusal(item, NOW) is None) == (folded.unfoldable == [])
