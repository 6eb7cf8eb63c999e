"""An explanation: the events that make one of the numbers, as `counters explain` finds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import localcontext
from typing import Any, Final

from demo.terminal import printable
from dynamodb_counters import Aggregate, Counters
from dynamodb_counters._backfill.feeds import feeds_of
from dynamodb_counters._explain.explainer import make_explainer
from dynamodb_counters._explain.lines import added
from dynamodb_counters._items.conversions import EXACT

_QUIET_PAGES: Final = 3
"""All has been counted before: nothing is on its way to the stream."""


@dataclass(frozen=True)
class Explained:
    """Why a group of an aggregate counts what it counts."""

    name: str
    group: Mapping[str, str]
    numbers: Mapping[str, Any]
    sums: Mapping[str, Any]
    lines: int
    difference: Mapping[str, Any]

    @property
    def is_exact(self) -> bool:
        return not self.difference and self.sums == self.numbers and bool(self.numbers)

    @property
    def number(self) -> str:
        return " ".join(f"{number:,}" for number in self.numbers.values()) or "nothing"

    def __str__(self) -> str:
        """`Why 7?`, and the command that lists the lines.

        >>> print(Explained("views", {"url": "/"}, {"views": 7}, {"views": 7}, 7, {}))
        Why 7?  7 lines add up to it: counters explain views url=/
        """
        fields = " ".join(f"{field}={printable(value)}" for field, value in self.group.items())
        if self.is_exact:
            return (
                f"Why {self.number}?  {self.lines:,} lines add up to it: counters explain {self.name} {fields}".strip()
            )
        return f"{self.name} {fields}: {dict(self.numbers)}, the lines add up to {dict(self.sums)}"


def explain(counters: Counters, streams: Any, aggregate: Aggregate, group: Mapping[str, str]) -> Explained:
    """Add up the lines that explain a group."""
    table = counters._table  # noqa: SLF001 - `Counters.explain` waits for what may be on its way
    feeds = feeds_of(table, streams)
    feeds = feeds._replace(stream=replace(feeds.stream, quiet_pages=_QUIET_PAGES))
    explanation = make_explainer(table, feeds, aggregate, group, (None, None)).explained(scan=True)
    lines = list(explanation.lines())
    with localcontext(EXACT):
        sums = added(line.adds for line in lines)
    return Explained(aggregate.name, group, explanation.numbers, sums, len(lines), explanation.difference)
