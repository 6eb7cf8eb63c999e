"""What type checkers must refuse: each line marked so, and no other. Checked, never run."""

from __future__ import annotations

from datetime import timedelta

from cdk_dynamodb_counters import DedupCountTable  # refused
from dynamodb_counters import Aggregate, Attribute, Count, Counters, Distinct, Event, Window
from dynamodb_counters import Widow  # refused

VIEW = Event("view", pk="URL#{url}", sk="T#{time}")
VIEWS = Aggregate("views", VIEW, pk="URL#{url}", sk="STATISTICS", measures={"views": Count()})
VISITORS = Distinct("visitors", VIEW, pk="SITE", sk="VISITORS", member="url")
LAST_DAY = Window("last_day", VIEW, pk="URL#{url}", time="time")

Event("view", pk="URL#{url}", sk="T#{time}", atributes={"url": str})  # refused
Event("view", pk="URL#{url}", sk="T#{time}", attributes=["url"])  # refused
Event("view", pk="URL#{url}", sk="T#{time}", retention=7)  # refused
Attribute(str, format="e-mail")  # refused
Attribute(int, minimum="1")  # refused
Aggregate("views", "view", pk="URL#{url}", sk="STATISTICS", measures={"views": Count()})  # refused
Aggregate("views", VIEW, pk="URL#{url}", sk="STATISTICS", measures=Count())  # refused
Aggregate("views", VIEW, pk="URL#{url}", sk="STATISTICS", measures={"views": Count()}, on_expiry="forget")  # refused
Window("last_day", VIEWS, pk="URL#{url}", time="time")  # refused


def read(counters: Counters) -> None:
    counters.get(LAST_DAY, {"url": "/"})  # refused
    counters.get(VISITORS, {})  # refused
    counters.get("views", {"url": "/"})  # refused
    counters.window(VIEWS, {"url": "/"}, last=timedelta(hours=24))  # refused
    counters.window(LAST_DAY, {"url": "/"}, last=24)  # refused
    counters.window(LAST_DAY, {"url": "/"})  # refused
    counters.distinct(VIEWS, {})  # refused
    counters.accept(VIEWS, {"url": "/"})  # refused
    counters.acept(VIEW, {"url": "/"})  # refused
