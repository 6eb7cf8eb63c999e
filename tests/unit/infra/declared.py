"""Declarations for the tests of the constructs."""

from __future__ import annotations

from datetime import timedelta

from cdk_dynamodb_counters import LivePage
from dynamodb_counters._declarations import ActiveMembers, Aggregate, Count, Event, Packed, Ranking, Threshold, Window

VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}", retention=timedelta(days=7))
VIEWS = Aggregate("views", VIEW, pk="URL#{url}", sk="STATISTICS", measures={"views": Count()})
PACKED = Event("hit", pk="PAGE#{url}", sk="T#{time}", retention=timedelta(days=7), packed=Packed("time"))
SITE = Aggregate("site", VIEW, pk="SITE", sk="STATISTICS", measures={"site_views": Count()})
TOP = Aggregate(
    "top",
    VIEW,
    pk="URL#{url}",
    sk="TOP",
    measures={"views": Count()},
    ranking=Ranking(measure="views", leaderboard="URLS"),
)
ROLLING = Window("rolling", VIEW, pk="URL#{url}", time="time", retention=timedelta(hours=25))
POPULAR = Threshold("popular", VIEWS, at=[100, 1000])
PLAYERS = Aggregate("players", VIEW, pk="CLIENT#{clientId}", sk="VIEWS", measures={"n": Count()})
ACTIVE = Aggregate("active", PLAYERS, pk="SITE", sk="ACTIVE", measures={"players": Count()})
# A memo has the keys of groups of VIEWS, but for its own attributes.
MEMO = Event("memo", pk="URL#{url}", sk="MEMO#{id}")
USERS = ActiveMembers("users", VIEW, member="clientId", time="time")
PAGE = LivePage(title="Blog", total=SITE, top=TOP, window=ROLLING, active=USERS)
JOB = Event("job", pk="CUSTOMER#{customer}", sk="JOB#{id}")
JOBS = Aggregate("jobs", JOB, pk="CUSTOMER#{customer}", sk="STATISTICS", measures={"jobs": Count()})
