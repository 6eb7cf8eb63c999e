"""Lines that type checkers must let pass: read(), which needs a table, is never called."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

from dynamodb_counters import Aggregate, Attribute, Count, Counters, Declaration, Distinct, Event, Sum, Window
from dynamodb_counters import InvalidArgumentError as InvalidArgumentError

if TYPE_CHECKING:
    from cdk_dynamodb_counters import DedupCounterTable as DedupCounterTable
    from cdk_dynamodb_counters import runtime_code as runtime_code


class Purchase(TypedDict):
    user: str
    at: datetime
    amount: Decimal
    plan: NotRequired[Literal["free", "pro"]]


@dataclass
class Trade:
    id: str
    desk: str


PURCHASE = Event("purchase", key="user", attributes=Purchase)
TRADE = Event("trade", key="id", attributes=Trade)
VIEW = Event(
    "view",
    key=("url", "time"),
    attributes={
        "url": str,
        "time": datetime,
        "tags": list[str],
        "size": int | None,
        "plan": Attribute(str, one_of=["free", "pro"], required=False),
    },
)
VIEWS = Aggregate("views", VIEW, by="url", measures={"views": Count(), "size": Sum("size", default=0)})
SPENT = Window("spent", PURCHASE, by="user", time="at", measure=Sum("amount"))
VISITORS = Distinct("visitors", VIEW, by=(), member="url")
RISK = Aggregate("risk", TRADE, pk="RISK", sk="DESK#{desk}", trades=Count())

LIST: list[Declaration] = [VIEWS, SPENT, VISITORS, RISK]


def read(counters: Counters) -> tuple[int, datetime]:
    group = counters.get(VIEWS, url="/", consistent=True)
    total: int = group["views"] + counters.get(RISK, desk="a")["trades"]
    counters.record_once(VIEW, {"url": "/", "time": "2026-11-20T10:00:00Z"}, LIST)
    spent = counters.window(SPENT, user="ann").last(timedelta(hours=24))
    return total + counters.get(VISITORS)["distinct"], spent.end
