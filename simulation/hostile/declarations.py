"""Declarations of the attacked table: one of each kind, all of them with a tenant's field."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from dynamodb_counters._declarations import (
    Aggregate,
    Average,
    Count,
    Declaration,
    Event,
    Histogram,
    Packed,
    Ranking,
    Sum,
    Window,
    flatten,
)
from dynamodb_counters._declarations.composites import ActiveMembers, Distinct, Extremes, Percentiles, Ranks, digit_of

VIEW: Final = Event("view", pk="CUSTOMER#{customer}", sk="VIEW#{time}#{url}#{clientId}", retention=timedelta(days=7))
HIT: Final = Event("hit", pk="HIT#{customer}", sk="T#{time}#{clientId}", packed=Packed("time", chunk_bytes=2048))

DECLARATIONS: Final[tuple[Declaration, ...]] = flatten(
    (
        Aggregate(
            "views",
            VIEW,
            pk="VIEWS#{customer}",
            sk="U#{url}",
            measures={"views": Count(), "bytes": Sum("bytes"), "mean": Average("bytes")},
            ranking=Ranking(measure="views", leaderboard="TOP#{customer}"),
        ),
        Aggregate(
            "tagged",
            VIEW,
            pk="TAGGED#{customer}#T#{tags[]}",
            sk="D#{time:day}",
            measures={"n": Count(), "sizes": Histogram("bytes", bounds=range(100))},
            max_groups=50,
        ),
        Aggregate("spread", VIEW, pk="SPREAD#{customer}", sk="S", measures={"n": Count()}, write_shards=4),
        Distinct("clients", VIEW, pk="CLIENTS#{customer}", sk="S", member="clientId"),
        ActiveMembers("active", VIEW, by="customer", member="clientId", time="time"),
        Percentiles("sizes", VIEW, by="customer", attribute="bytes"),
        Percentiles("hourly", VIEW, by="customer", attribute="bytes", error=0.1, time="time"),
        Extremes("largest", VIEW, by="customer", attribute="bytes", show="url"),
        Ranks("board", VIEW, by="customer", score="bytes", least=0, most=10**9),
        Window(
            "quarter",
            VIEW,
            pk="QUARTER#{customer}",
            time="time",
            precision=timedelta(seconds=1),
            longest=timedelta(minutes=15),
        ),
        Window("kept", VIEW, pk="KEPT#{customer}", time="time", retention=timedelta(days=30), late="quarantine"),
        Window(
            "fine", VIEW, pk="FINE#{customer}", time="time", precision=timedelta(seconds=1), longest=timedelta(hours=1)
        ),
    )
)
"""All count the same event, so that one that is malformed for any of them would be quarantined."""

_WHOLE: Final = [level for level in DECLARATIONS if not digit_of(level)]
SERVED: Final = (*(level for level in _WHOLE if isinstance(level, Window) or not level._longest), VIEW, HIT)
FIELDS: Final = ("customer", "url", "time", "clientId", "tags[]", "time:day")
