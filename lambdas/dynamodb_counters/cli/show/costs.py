"""Output of ``counters cost``: bills of designs, their ceilings, and the fixed part by construct."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from rich.console import Group, RenderableType

from dynamodb_counters._cost.ceilings import Ceiling
from dynamodb_counters._cost.month_bill import Bill
from dynamodb_counters._cost.workload_settings import Workload
from dynamodb_counters._price_file import PriceList
from dynamodb_counters.cli.show.formats import grid, number

_Columns = Mapping[str, tuple[str, ...]]
_Paged = Sequence[tuple[int, float, float]]

_WORTH: Final = 0.9
"""Pages are recommended where they cost at most this share of items."""

_IDLE: Final[_Columns] = {
    "alarms": ("CloudWatch alarms",),
    "dashboards": ("CloudWatch dashboards",),
    "metrics": ("CloudWatch metrics",),
    "functions": ("Lambda", "CloudWatch logs", "X-Ray"),
    "DynamoDB": ("DynamoDB writes", "DynamoDB reads", "DynamoDB storage"),
    "door": ("API Gateway", "SQS"),
}
_COLUMNS: Final[_Columns] = {
    "DynamoDB": _IDLE["DynamoDB"],
    "functions": (*_IDLE["functions"], *_IDLE["metrics"], *_IDLE["alarms"], *_IDLE["dashboards"]),
    "door": _IDLE["door"],
}


def document(load: Workload, prices: PriceList, found: Sequence[Bill], paged: _Paged) -> dict[str, Any]:
    shards = load.shards()
    batches = load.batches(shards)
    return {
        "prices": {"date": prices.date, "region": prices.region},
        "shards": shards,
        "events_per_batch": batches.events,
        "seconds_per_batch": batches.seconds,
        "designs": [
            {
                "title": bill.title,
                "exact": bill.exact,
                "at_most": _at_most(bill.ceiling()),
                "units_per_event": {
                    stage: {"write": units.writes, "read": units.reads} for stage, units in bill.units.items()
                },
                "dollars_per_month": {**bill.dollars, "total": bill.total},
            }
            for bill in found
        ],
        "pages": [{"groups": groups, "items": items, "pages": pages} for groups, items, pages in paged],
    }


def shown(load: Workload, prices: PriceList, found: Sequence[Bill], paged: _Paged) -> RenderableType:
    figures = ("units", *_COLUMNS, "total")
    designs = grid("dollars per month", "exact", "at most/s", *figures, numbers=("at most/s", *figures))
    for bill in found:
        ceiling = bill.ceiling()
        most = number(ceiling and round(ceiling.events_per_second, 0 if ceiling.events_per_second > 1 else 4))
        units = f"{sum(each.writes for each in bill.units.values()):.4f}"
        exact = "yes" if bill.exact else "no"
        designs.add_row(bill.title, exact, most, units, *_sums(_COLUMNS, bill.dollars))
    stages = grid(f"units per event, {found[0].title}", "write", "read", numbers=("write", "read"))
    for name, stage in found[0].units.items():
        stages.add_row(name, f"{stage.writes:.6f}", f"{stage.reads:.6f}")
    shards = load.shards()
    batches = load.batches(shards)
    told = (
        f"{shards} shards; a batch of {batches.events:,.0f} events every {batches.seconds:.3g} s in each that has any; "
        f"prices of {prices.date}, {prices.region}"
    )
    choices = grid("counting, dollars per month", "items", "pages", "cheaper", numbers=("items", "pages"))
    for groups, items, pages in paged:
        times = f"pages=True, {items / pages:.1f} times"
        cheaper = times if pages < _WORTH * items else f"items: pages gain nothing ({pages / items:.2f})"
        choices.add_row(f"{groups:,} groups", _dollars(items), _dollars(pages), cheaper)
    chosen: list[RenderableType] = [choices, ""] if paged else []
    return Group(designs, "", stages, "", *chosen, told, limited(found[0].ceiling(), load.rate))


def _at_most(found: Ceiling | None) -> dict[str, Any] | None:
    if found is None:
        return None
    bottleneck, setting = found.limit.value
    return {"events_per_second": found.events_per_second, "bottleneck": bottleneck, "setting": setting}


def idle_document(prices: PriceList, fixed: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    total = sum(sum(each.values()) for each in fixed.values())
    return {"prices": {"date": prices.date, "region": prices.region}, "dollars_per_month": {**fixed, "total": total}}


def idle_shown(prices: PriceList, fixed: Mapping[str, Mapping[str, float]]) -> RenderableType:
    figures = (*_IDLE, "total")
    found = grid("dollars per month, idle", *figures, numbers=figures)
    for name, dollars in fixed.items():
        found.add_row(name, *_sums(_IDLE, dollars))
    return Group(found, "", f"prices of {prices.date}, {prices.region}")


def _sums(columns: _Columns, dollars: Mapping[str, float]) -> Iterable[str]:
    sums = [sum(dollars.get(name, 0.0) for name in names) for names in columns.values()]
    return map(_dollars, [*sums, sum(sums)])


def limited(found: Ceiling | None, rate: float) -> str:
    """Whether a rate keeps up, and the limit that ends it."""
    if found is None:
        return "keeps up: no limit found, as partitions grow with the rate"
    bottleneck, setting = found.limit.value
    verdict = "keeps up" if rate <= found.events_per_second else "does not keep up"
    return f"{verdict}; limit: {bottleneck}; to move it: {setting}"


def _dollars(value: float) -> str:
    return f"{value:,.2f}" if value < 1000 else f"{value:,.0f}"  # noqa: PLR2004 - cents matter no more
