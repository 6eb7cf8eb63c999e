"""Mistakes of newcomers, by where they write them; `test_mistakes.py` runs each line for its message.

One per line, as in the documentation.
"""

# ruff: noqa: E501

from __future__ import annotations

from typing import Final

DECLARATIONS: Final = """\
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from dynamodb_counters import Aggregate, Attr, Attribute, Average, Count, Counter, Counters, Distinct
from dynamodb_counters import Event, Packed, Quota, Ranking, Sum, Threshold, Window

VIEW = Event("view", key=("url", "time"))
VIEWS = Aggregate("views", VIEW, by="url")
VISITORS = Distinct("visitors", VIEW, member="url")
LAST_DAY = Window("last_day", VIEW, by="url", time="time", retention=timedelta(days=2))

ORDER = Event("order", key="id", attributes={"id": str, "shop": str, "total": Decimal})
SHOPS = Aggregate("shops", ORDER, by="shop", orders=Count(), total=Sum("total"))

CALL = Event("call", key="id", attributes={"id": str, "status": int, "ms": Attribute(int, required=False)})

HIT = Event("hit", key=("page", "time"), retention=timedelta(days=7), packed=Packed("time"))
HITS = Aggregate("hits", HIT, by="page")

READING = Event("reading", key=("sensor", "at"))  # its attributes are not declared
HEAT = Aggregate("heat", READING, by="sensor", degrees=Average("degrees"))
RECENT = Window("recent", READING, by="sensor", time="at", retention=timedelta(days=2), late="quarantine")

STOCK = Counter("stock", by="sku")
SEATS = Counter("seats", by="show", free=Count(), sold=Count())

DAILY = Aggregate("daily", VIEW, by=("url", "time:day"))
CALLS = Quota("calls", limit=100, per="day", by="customer")
MANY = Threshold("many", VIEWS, at=[100, 1000])
"""
"""Declarations and values that the lines use."""

DECLARING: Final = (
    "from dynamodb_counters import Widow",
    'Event("view", key=("url", "time"), atributes={"url": str})',
    'Event("page view", key=("url", "time"))',
    'Event("view", key=("url", "time"), pk="URL#{url}")',
    'Event("view", key=("ttl", "time"))',
    'Event("view", pk="URL#{}", sk="T#{time}")',
    'Event("view", key=("url", "time"), retention=7)',
    'Event("view", key=("url", "time"), attributes=["url"])',
    'Event("order", key="id", attributes={"id": "string"})',
    'Attribute(str, format="e-mail")',
    'Aggregate("views", "view", by="url")',
    'Aggregate("views", VIEW, by="url", views=Count)',
    'Aggregate("views", VIEW, gy="url")',
    'Counter("stock", VIEW, by="url")',
    'Counter("stock", by="sku", total=Sum("total"))',
    'Aggregate("views", VIEW, by="url", where="url = /")',
    'Aggregate("shops", ORDER, by="store", orders=Count())',
    'Aggregate("shops", ORDER, by="shop", total=Sum("totl"))',
    'Aggregate("shops", ORDER, by="shop", total=Sum("shop"))',
    'Aggregate("speed", CALL, by="ms:class")',
    'Aggregate("speed", CALL, ms=Sum("ms"))',
    'Aggregate("speed", CALL, by="id:class")',
    'Sum("total", cap=9.99)',
    'Attr("total") > 100',
    'Attr("total").gt(100) and Attr("shop").eq("a")',
    'Distinct("visitors", VIEW, member="url", retention=timedelta(days=7))',
    'Threshold("many", LAST_DAY, at=[100])',
    'Threshold("many", VIEWS, at=[1000, 100])',
    'Threshold("many", VIEWS, at=100)',
    'Threshold("plan", VIEWS, at=[0.8, 1])',
    'Threshold("paid", SHOPS, at=[1000])',
)

WINDOWS: Final = (
    'Window("last_day", VIEWS, by="url", time="time")',
    'Window("last_day", ORDER, by="shop", time="created_at")',
    'Window("last_day", VIEW, by="url", time="time", retention=24)',
    'Window("last_day", VIEW, by="url", time="time", precision=timedelta(minutes=5))',
    'Event("hit", key=("page", "id"), packed=Packed("time"))',
    'Quota("calls", limit=100, per="daily")',
    'Quota("calls", limit=100, per="day", tz="Berlin")',
)

WRITING: Final = (
    'Counters("counters", client=boto3.resource("dynamodb", region_name="eu-west-1"))',
    'counters.accept(VIEW, {"url": "/"})',
    'counters.accept(VIEW, {"url": "/", "time": datetime(2026, 11, 20)})',
    'counters.accept(VIEW, {"url": "/", "time": "2026-11-20T10:00Z", "ms": 0.1 + 0.2})',
    'counters.accept(VIEW, {"url": "/", "time": "2026-11-20T10:00Z", "ttl": 1})',
    'counters.accept(VIEW, {"url": "/", "time": "2026-11-20T10:00Z", "body": "x" * 500_000})',
    'counters.accept(ORDER, {"id": "7", "shp": "a", "total": 9})',
    'counters.accept(VIEWS, {"url": "/"})',
    'counters.accept("view", {"url": "/"})',
    'counters.accept_many(VIEW, {"url": "/", "time": "2026-11-20T10:00Z"})',
    'counters.accept_many(VIEW, [{"url": "/"}])',
    'counters.accept(ORDER, {"id": "1", "shop": "a", "total": 1}); counters.accept(ORDER, {"id": "1", "shop": "a", "total": 2})',
    'counters.accept(HIT, {"page": "/", "time": "2025-11-20T10:00Z"})',
    'counters.record_once(VIEW, {"url": "/", "time": "2026-11-20T10:00Z"}, VIEWS)',
    'counters.increment(VIEWS, url="/")',
    'counters.reset(VIEWS, url="/")',
    'counters.increment(STOCK, sku="a", amount=0.1 + 0.2)',
    'counters.increment(SEATS, show="a")',
    'counters.increment(Counter("pages", by="url"), url="/")',
    'counters.redrive("1")',
    'counters.leases(LAST_DAY, url="/")',
)

COUNTING: Final = (
    'counters.accept(READING, {"sensor": "s", "at": "2026-11-20T10:00Z", "degree": 20})',
    'counters.accept(READING, {"sensor": "s", "at": "2026-11-20T10:00Z", "degrees": "20"})',
    'counters.accept(READING, {"sensor": "s", "at": "2026-11-20T10:00", "degrees": 20})',
    'counters.accept(READING, {"sensor": "s", "at": "2026-11-01T10:00Z", "degrees": 20})',
)

READING: Final = (
    "counters.get(VIEWS)",
    'counters.get(VIEWS, url="/", day="2026-11-20")',
    'counters.get(VIEWS, url="/")["view"]',
    'counters.get("views", url="/")',
    'counters.get(replace(VIEWS, name="veiws"), url="/")',
    'counters.get(DAILY, {"url": "/", "time:day": "20.11.2026"})',
    'counters.get(DAILY, {"url": "/", "time:day": datetime(2026, 11, 20, tzinfo=UTC)})',
    'counters.get(LAST_DAY, url="/")',
    'counters.get(VISITORS, url="/")',
    "counters.top(VIEWS)",
    'counters.window(VIEWS, url="/").last(timedelta(hours=24))',
    'counters.window(LAST_DAY, url="/").last(24)',
    'counters.window(LAST_DAY, url="/").last(timedelta(days=30))',
    'counters.window(LAST_DAY, url="/").between(datetime(2026, 11, 19), datetime(2026, 11, 20))',
    "list(counters.events(VIEW))",
)

TESTING: Final = (
    "with counters_in_memory(VIEWS): pass",
    'with counters_in_memory([VIEWS, replace(VIEWS, sk="OTHER")]): pass',
    'with counters_in_memory([HEAT]) as counters: counters.accept(READING, {"sensor": "s", "at": "2026-11-20T10:00Z"})',
    'stable_template("CountersStack")',
)

OPERATING: Final = (
    "counters got views url=/ --table counters",
    "counters get vews url=/ --table counters",
    "counters get views page=/ --table counters",
    "counters get last_day url=/ --last 24 --table counters",
    "counters accept view url=/ --table counters",
    "counters accept order id=1 shop=a total=many --table counters",
    "counters backfill vews --yes --table counters",
    "counters diff --table counters --template missing.json",
    "counters events many --table counters",
)

POSTING: Final = (
    ("VIEW", '{"url": "/"}'),
    ("VIEW", '{"url": "/", "time": '),
    ("ORDER", '{"id": "1", "shop": "a", "total": "9.99"}'),
    ("READING", '{"sensor": "s", "at": "2026-11-20T10:00Z"}'),
)
"""Bodies, each with the event that is taken."""
