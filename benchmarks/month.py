"""A month's dollars of steady traffic, line by line: as `counters cost` estimates them, and as replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from benchmarks.invocations import Used, replay
from dynamodb_counters._cost import functions
from dynamodb_counters._cost.counted_items import Counted
from dynamodb_counters._cost.dollars import MONTH, idle
from dynamodb_counters._cost.month_bill import bills
from dynamodb_counters._cost.workload_settings import Workload
from dynamodb_counters._price_file import PRICES

_PAGES: Final = 50

REPLAYED: Final = ((0.01, int(0.01 * MONTH)), (1.0, 8 * 3600), (10.0, 4 * 36_000))
"""Events per second and how many: a month, eight hours, four hours. A stream's shard lives for four."""

_PER_EVENT: Final[dict[str, Callable[[Used], float]]] = {
    "dynamodb.write_unit": lambda used: used.writes,
    "dynamodb.read_unit": lambda used: used.reads,
    "lambda.request": lambda used: used.runs,
    "lambda.gb_second": lambda used: used.seconds * functions.MEMORY_GB,
    "cloudwatch.log_gb": lambda used: used.runs * functions.LOG_BYTES / 1e9,
}
"""Usage of some events, by what it is billed as."""

_METRICS: Final = "cloudwatch.metric_month"


class Line(NamedTuple):
    """Dollars of a month, as estimated and as replayed; how far the replay's second half is from the whole."""

    rate: float
    price: str
    estimated: float
    replayed: float
    drift: float

    @property
    def deviation(self) -> float:
        return self.estimated / self.replayed - 1


def month(rate: float, events: int) -> Iterator[Line]:
    """Lines of a month of so many events per second, of which so many are replayed."""
    first, second = replay(rate, events, _PAGES)
    for name, quantity in _PER_EVENT.items():
        yield _line(rate, name, *(quantity(used) / used.events * rate * MONTH for used in (first, second)))
    yield _line(rate, _METRICS, first.metrics, second.metrics)


def _line(rate: float, name: str, first: float, second: float) -> Line:
    whole = (first + second) / 2
    return Line(rate, name, _estimated(rate, name), whole * PRICES.of(name), second / whole - 1)


def _estimated(rate: float, name: str) -> float:
    """The estimate's dollars for one of the prices, without the fixed part."""
    load = Workload(rate, (Counted(_PAGES),))

    def price(asked: str) -> float:
        return PRICES.of(asked) if asked == name else 0.0

    fixed = idle(load, price).values()
    return bills(load, price)[0].total - sum(sum(dollars.values()) for dollars in fixed)


def table(lines: Iterator[Line]) -> Iterator[str]:
    yield "| events/s | billed as | counters cost | replayed | deviation | second half |"
    yield "|---|---|---|---|---|---|"
    for one in lines:
        figures = f"{one.estimated:.4g} | {one.replayed:.4g} | {one.deviation:+.1%} | {one.drift:+.1%}"
        yield f"| {one.rate:g} | `{one.price}` | {figures} |"
