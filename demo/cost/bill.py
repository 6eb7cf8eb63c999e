"""What one example costs, in units per event and per query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from demo.cost.meter import Meter


@dataclass(frozen=True)
class Costs:
    """Write units per event sent and per distinct event, None where not measured; read units per window query.

    `metrics` are the sums of what the aggregator reports of itself.
    """

    accept: float | None
    aggregate: float | None
    window: float
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class Bill:
    """The meters on an example's clients, and the metrics of its aggregator."""

    accepting: Meter
    reading: Meter
    metrics: Callable[[], Mapping[str, float]]

    def costs(self, sent: int, distinct: int) -> Costs:
        """Divide the units measured so far among the events."""
        metrics = self.metrics() if sent else {}
        # A refused update costs as much as a successful one.
        updates = metrics["ItemsUpdated"] + metrics["AlreadyCounted"] if metrics else None
        aggregate = None if updates is None else updates * self.reading.units_per_item
        return Costs(
            _per(self.accepting.write_units, sent), _per(aggregate, distinct), self.reading.units_per_query, metrics
        )


def _per(units: float | None, events: int) -> float | None:
    if not events:
        return 0.0
    return None if units is None else round(units / events, 4)
