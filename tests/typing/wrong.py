"""Lines that type checkers must refuse: each one that is marked, and no other. Checked, never run."""

from __future__ import annotations

from datetime import timedelta

from cdk_dynamodb_counters import DedupCountTable  # refused
from dynamodb_counters import Aggregate, Attr, Attribute, Count, Counter, Counters, Distinct, Event, Quota, Sum, Window
from dynamodb_counters import Widow  # refused

VIEW = Event("view", key=("url", "time"))
VIEWS = Aggregate("views", VIEW, by="url")
STOCK = Counter("stock", by="sku")
VISITORS = Distinct("visitors", VIEW, member="url")
LAST_DAY = Window("last_day", VIEW, by="url", time="time")

Event("view", key=("url", "time"), atributes={"url": str})  # refused
Event("view", key=("url", "time"), attributes=["url"])  # refused
Event("view", key=("url", "time"), retention=7)  # refused
Attribute(str, format="e-mail")  # refused
Attribute(int, minimum="1")  # refused
Aggregate("views", "view", by="url")  # refused
Aggregate("views", VIEW, by="url", measures=Count())  # refused
Aggregate("views", VIEW, by="url", on_expiry="forget")  # refused
Aggregate("views", VIEW, by="url", views=Count)  # refused
Aggregate("views", VIEW, gy="url")  # refused
Aggregate("views", VIEW, by="url", where="url = /")  # refused
Sum("total", cap=9.99)  # refused
Attr("total") > 100  # refused
Window("last_day", VIEWS, by="url", time="time")  # refused
Window("last_day", VIEW, by="url", time="time", retention=24)  # refused
Window("last_day", VIEW, by="url", time="time", late="ignore")  # refused
Quota("calls", limit=100, per="daily")  # refused
Quota("calls", limit=100, per="day", by={"customer"})  # refused


def read(counters: Counters) -> None:
    counters.get(LAST_DAY, url="/")  # refused
    counters.groups(LAST_DAY)  # refused
    counters.get("views", url="/")  # refused
    counters.window(VIEWS, url="/").last(timedelta(hours=24))  # refused
    counters.window(LAST_DAY, url="/").last(24)  # refused
    counters.window(LAST_DAY, url="/").last(hour=24)  # refused
    counters.accept(VIEWS, {"url": "/"})  # refused
    counters.acept(VIEW, {"url": "/"})  # refused
    counters.accept("view", {"url": "/"})  # refused
    counters.accept_many(VIEW, {"url": "/", "time": "2026-11-20T10:00Z"})  # refused
    counters.record_once(VIEW, {"url": "/", "time": "2026-11-20T10:00Z"}, VIEWS)  # refused
    counters.increment(STOCK, sku="a", amount="1")  # refused
    counters.redrive("1")  # refused
    counters.leases(LAST_DAY, url="/")  # refused
    counters.window(LAST_DAY, url="/").calendar("today")  # refused
