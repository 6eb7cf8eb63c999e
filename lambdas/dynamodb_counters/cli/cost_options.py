"""Options of ``counters cost``: numbers, windows, a sample of events, other prices."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from statistics import fmean
from typing import Any

import click

from dynamodb_counters._cost.chunk_sizes import ChunkSizes
from dynamodb_counters._cost.price_list import PriceList
from dynamodb_counters._http.lossless_json import read_json
from dynamodb_counters._items.chunks import Row
from dynamodb_counters._items.item_sizes import item_bytes
from dynamodb_counters._price_file import PRICES
from dynamodb_counters._timeline.cost_estimate import choose_tiers
from dynamodb_counters._timeline.tiers import TIERS, Tier
from dynamodb_counters._writes.event_items import typed_item
from dynamodb_counters.cli.arguments import duration

_MOST_SAMPLED = 20_000


class Number(click.ParamType[float]):
    """A finite number within bounds."""

    name = "number"

    def __init__(self, least: float, most: float) -> None:
        self.least, self.most = least, most

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> float:
        """Read it."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not self.least <= number <= self.most:
            self.fail(f"{value!r}: expected a number from {self.least:,g} to {self.most:,g}", parameter, context)
        return number


def tiers_of(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> list[tuple[Tier, ...]]:
    """The tiers of windows given as precision/length."""
    return [_tiers(text) for text in given]


def _tiers(text: str) -> tuple[Tier, ...]:
    precision, slash, length = text.partition("/")
    if not slash:
        raise click.BadParameter(f"{text!r}: expected precision/length, such as 1m/24h")
    finest, longest = duration(precision), duration(length)
    known = [timedelta(seconds=tier.slot_seconds) for tier in TIERS]
    if finest not in known or finest > longest:
        raise click.BadParameter(f"{text!r}: expected a precision of 1s, 1m, 1h or 1d, and a length of as much or more")
    return choose_tiers(finest.total_seconds(), longest.total_seconds())


def price_list(path: str | None) -> PriceList:
    """The installed prices, or those of a file of the same format."""
    if path is None:
        return PRICES
    try:
        found = PriceList.parse(Path(path).read_text(encoding="utf-8"))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise click.BadParameter(f"{path} is no price file: {error}", param_hint="--prices") from None
    if missing := PRICES.prices.keys() - found.prices.keys():
        raise click.BadParameter(f"{path} lacks {', '.join(sorted(missing))}", param_hint="--prices")
    return found


def sampled(path: str) -> tuple[float, ChunkSizes]:
    """Bytes of an event as an item, and the sizes of chunks, of the events in a file of JSON lines."""
    rows = []
    with Path(path).open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                rows.append(Row("+", _attributes(line, number)))
            if len(rows) == _MOST_SAMPLED:
                break
    if not rows:
        raise click.BadParameter(f"{path} holds no events", param_hint="--sample")
    return fmean(item_bytes(row.values) for row in rows), ChunkSizes.measured(rows)


def _attributes(line: str, number: int) -> Mapping[str, Any]:
    try:
        values = read_json(line)
        if isinstance(values, dict) and values:
            return typed_item(None, values)
        reason = "expected an object with attributes"
    except (TypeError, ValueError) as error:
        reason = str(error)
    raise click.BadParameter(f"line {number}: {reason}", param_hint="--sample")
