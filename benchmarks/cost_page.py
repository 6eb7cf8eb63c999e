"""The cost of a month, from units and prices: the first part of docs/benchmarks.md.

``python -m benchmarks --cost`` writes it alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.cost_model import (
    FILE,
    SERVICES,
    TENANTS_MEASURED,
    Door,
    Workload,
    added,
    bill,
    dynamodb,
    fixed,
    increment,
    per_million,
)

_TEXT: Final = Path(__file__).with_name("cost.md")
MEASURED: Final = "## Goals\n\n"
"""The heading with which the measured part of the page begins."""
_RATES: Final = (1, 10, 100, 1_000, 10_000)
_DOORS: Final[dict[str, Door]] = {
    "your own code": "sdk",
    "a queue": "queue",
    "HTTP, straight to the queue": "http",
    "HTTP, validated": "validated",
    "HTTP to a function URL, validated": "url",
}

WAYS: Final = {
    "from your code, 5,000 a batch": Workload(1000, gather=5, packed=5000),
    "over HTTP, 100 a request": Workload(1000, gather=5, packed=2500, door="http", per_request=100),
    "over HTTP, one a request, validated": Workload(1000, gather=5, packed=1000, door="validated"),
    "to a function URL, one a request, validated": Workload(1000, gather=5, packed=1000, door="url"),
    "one by one, counted every 5 s": Workload(1000, gather=5),
    "one by one, counted every second, as by default": Workload(1000),
}
"""The README has three of these rows. Behind a queue, two consumers share what arrives in 5 seconds, of which one takes
1,000 messages at a time."""


def ratio(rate: float, gather: float = 1.0) -> float:
    """Return how many times a plain increment a small table costs: 30 groups, events one by one."""
    load = Workload(rate, 30, gather)
    return sum(bill(load).values()) / sum(increment(load).values())


def dollars() -> dict[str, float]:
    """Return the dollars of a million events, by the ways that they come, and what small tables cost in increments."""
    small = {f"{rate} a second to increments, gathered for 10 s": ratio(rate, 10) for rate in (1, 10)}
    return {way: per_million(load, bill(load)) for way, load in WAYS.items()} | small


def text() -> str:
    """Return the part of the page."""
    tables = {
        "ways": table(("events come", "$ per million"), ((way, _million(load)) for way, load in WAYS.items())),
        "increment": f"{per_million(Workload(1000), increment(Workload(1000))):.2f}",
        "rates": _by_rate(),
        "small": _small(),
        "doors": _services({name: bill(load) for name, load in doors().items()}),
        "groups": _by_groups(),
        "writers": _by("process", {n: _costs(Workload(1000, gather=5, packed=1000, writers=n)) for n in (1, 2, 8, 32)}),
        "tenants": _by("tenant", {n: _accepting(n) for n in TENANTS_MEASURED}),
        "tenants_measured": _by("tenant", TENANTS_MEASURED),
        "fixed": _services(fixed()),
        "prices": _prices(),
        "date": str(FILE["date"]),
        "region": FILE["region"],
    }
    page = _TEXT.read_text(encoding="utf-8")
    for name, content in tables.items():
        page = page.replace(f"{{{{{name}}}}}", content)
    return f"{page}\n"


def write(folder: Path) -> None:
    """Write the part into the page."""
    page = folder / "benchmarks.md"
    measured = page.read_text(encoding="utf-8").partition(MEASURED)[2]
    page.write_text(f"{text()}{MEASURED}{measured}", encoding="utf-8")


def _costs(load: Workload) -> float:
    return per_million(load, bill(load))


def _million(load: Workload) -> str:
    return f"{_costs(load):.2f}"


def _by(kind: str, dollars: Mapping[int, float]) -> str:
    (first, least), *others = dollars.items()
    return ", ".join([f"${least:.3f} with {first} {kind}", *(f"${amount:.3f} with {n:,}" for n, amount in others)])


def _by_rate() -> str:
    rows = []
    for rate in _RATES:
        plain, packed = Workload(rate), Workload(rate, gather=5, packed=max(1, min(5 * rate, 5000)))
        dollars = (increment(plain), bill(plain), bill(packed))
        rows.append((f"{rate:,}", *(f"{sum(costs.values()):,.2f}" for costs in dollars)))
    return table(("events/s", "plain increment, not exact", "one by one", "packed, every 5 s"), rows)


def _small() -> str:
    rates = (1, 10, 100)
    rows = [(f"{gather} s", *(f"{ratio(rate, gather):.1f}" for rate in rates)) for gather in (1, 5, 10, 60)]
    return table(("`max_batching_window`", *(f"{rate} a second" for rate in rates)), rows)


def doors() -> dict[str, Workload]:
    """Return what comes by each door, 100 events a second, packed."""
    loads = {}
    for title, door in _DOORS.items():
        for per_request in (1,) if door == "sdk" else (1, 100):
            name = title if door == "sdk" else f"{title}, {per_request} a request"
            packed = 500 if door == "sdk" else 250
            loads[name] = Workload(100, gather=5, packed=packed, door=door, per_request=per_request)
    return loads


def _by_groups() -> str:
    rows = []
    for groups in (1, 50, 1_000, 100_000, 1_000_000):
        plain, packed = Workload(1000, groups), Workload(1000, groups, gather=5, packed=5000)
        rows.append((f"{groups:,}", _million(plain), _million(packed)))
    return table(("groups", "one by one", "packed"), rows)


def _accepting(tenants: int) -> float:
    """Dollars per million to accept packed events."""
    stage = Workload(1000, gather=5, packed=5000, tenants=tenants).stages(4)["accept"]
    load = Workload(1000)
    return per_million(load, dynamodb(1000 * stage.writes, 1000 * stage.reads, 0.0))


def _services(bills: dict[str, dict[str, float]]) -> str:
    services = list(added(bills.values()))
    rows = (
        (name, *(f"{dollars.get(service, 0.0):.2f}" for service in services), f"{sum(dollars.values()):.2f}")
        for name, dollars in bills.items()
    )
    return table(("dollars per month", *services, "total"), rows)


def _prices() -> str:
    rows = []
    for service, prices in SERVICES.items():
        for name, price in prices.items():
            if isinstance(price, dict):
                dollars = f"{price['dollars']:.10f}".rstrip("0").rstrip(".")
                per = " per million" if price["per"] > 1 else ""
                rows.append((f"[`{service}.{name}`]({prices['source']})", f"{dollars}{per}", price["checked"]))
    return table(("price", "dollars", "checked"), rows)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [" | ".join(map(str, row)) for row in rows]
    return "\n".join([f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {line} |" for line in lines)])
