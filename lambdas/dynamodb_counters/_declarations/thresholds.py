"""Thresholds: lines that a group's measure crosses, such as the calls of a customer's plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Final, Literal

from dynamodb_counters._declarations.aggregates import Aggregate
from dynamodb_counters._declarations.checks import require, require_arguments
from dynamodb_counters._declarations.composites import Distinct, read_by
from dynamodb_counters._declarations.measures import Average, Count, Sum, ascending
from dynamodb_counters._items.conversions import Number
from dynamodb_counters.errors import InvalidArgumentError

MOST_LEVELS: Final = 20
# By these two, events on EventBridge are known.
EVENT_SOURCE: Final = "dynamodb-counters"
DETAIL_TYPE: Final = "Threshold Crossed"


@dataclass(frozen=True, slots=True)
class Threshold:
    """Lines that a measure of a group crosses; each crossing is an event on EventBridge, once.

    Parameters
    ----------
    name : str
        A letter, then up to 63 letters, digits, ``-`` or ``_``; unique in a table.
    aggregate : Aggregate or Distinct
        Whose groups are watched, with one write shard.
    at : sequence of int or Decimal
        1 to 20 ascending levels: a group is above one from that number on.
    measure : str, optional
        A `Count`, `Sum` or `Average`. Default: the only one.
    direction : {"up", "down", "both"}, optional
        Which crossings count. Default ``"up"``.
    burst : {"all", "highest"}, optional
        Which levels count of several that a change crosses; downwards, ``"highest"`` is the lowest. Default ``"all"``.
    once : bool, optional
        Whether a level counts only the first time that a group crosses it in a direction. Default False.
    """

    name: str
    aggregate: Aggregate | Distinct | None
    _: KW_ONLY
    at: Sequence[Number]
    measure: str = ""
    direction: Literal["up", "down", "both"] = "up"
    burst: Literal["all", "highest"] = "all"
    once: bool = False

    def __post_init__(self) -> None:
        require_arguments(self)
        object.__setattr__(self, "at", ascending("at", self.at, MOST_LEVELS, least=1))
        if self.aggregate is not None:
            target = watched(self.aggregate)
            names = [name for name, measure in target.measures.items() if isinstance(measure, Count | Sum | Average)]
            if self.measure == "" and len(names) == 1:
                object.__setattr__(self, "measure", names[0])
            allowed = f"a Count, Sum or Average of {target.name!r}: {', '.join(names) or 'it has none'}"
            require(self.measure in names, "measure", self.measure, allowed)


def watched(aggregate: object) -> Aggregate:
    target = aggregate.total if isinstance(aggregate, Distinct) else aggregate
    if not isinstance(target, Aggregate) or read_by(target) != "get":
        allowed = "an Aggregate or Distinct, whose items show each change; instead of a Window, one by at:month"
        raise InvalidArgumentError("aggregate", aggregate, allowed)
    require(target.write_shards == 1, "aggregate", target.name, "one with write_shards=1: a group is one item")
    return target
