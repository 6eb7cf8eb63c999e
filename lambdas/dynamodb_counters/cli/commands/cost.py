"""``counters cost``: what a month costs, with this design and with the known ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any, Final, get_args

import click

from dynamodb_counters._cost.chunk_sizes import ChunkSizes
from dynamodb_counters._cost.counted_items import Counted
from dynamodb_counters._cost.dollars import idle
from dynamodb_counters._cost.month_bill import bills, in_pages
from dynamodb_counters._cost.workload_settings import TABLE_UNITS, Door, Workload
from dynamodb_counters._declarations.aggregates import MAX_WRITE_SHARDS
from dynamodb_counters._declarations.packed import MAX_PARTS
from dynamodb_counters._items.chunks import Row
from dynamodb_counters._items.item_sizes import item_bytes
from dynamodb_counters._price_file import PRICES, PriceList
from dynamodb_counters._timeline.tiers import TIERS, Tier, tiers_up_to
from dynamodb_counters._writes.event_items import typed_item
from dynamodb_counters.cli.arguments import Within, duration
from dynamodb_counters.cli.replay_files import rows
from dynamodb_counters.cli.session import Session, shared
from dynamodb_counters.cli.show import costs

_MOST_SAMPLED: Final = 20_000


def tiers_of(text: str) -> tuple[Tier, ...]:
    precision, slash, length = text.partition("/")
    if not slash:
        raise click.BadParameter(f"{text!r}: expected precision/length, such as 1m/24h")
    finest, longest = duration(precision), duration(length)
    known = [timedelta(seconds=tier.slot_seconds) for tier in TIERS]
    if finest not in known or finest > longest:
        raise click.BadParameter(f"{text!r}: expected a precision of 1s, 1m, 1h or 1d, and a length of as much or more")
    return tiers_up_to(finest.total_seconds(), longest.total_seconds())


@click.command()
@click.option("--rate", required=True, type=Within(0, 1e6), help="Events per second; 0: an idle deployment.")
@click.option(
    "--groups", multiple=True, default=(1000,), type=Within(1, 1e9), help="Groups of an aggregate; once for each."
)
@click.option("--window", "tiers", multiple=True, type=tiers_of, metavar="PRECISION/LENGTH", help="Such as 1m/24h.")
@click.option("--skew", default=0, type=Within(0, 3), help="Zipf exponent: 1 if the n-th group has 1/n of the first.")
@click.option("--own-key", is_flag=True, help="Groups are the events' partition keys: one shard feeds each.")
@click.option("--group-bytes", default=30, type=Within(1, 2000), help="A group in a page: its text, its numbers.")
@click.option("--ranked", is_flag=True, help="The first aggregate has a leaderboard.")
@click.option(
    "--write-shards", default=1, type=click.IntRange(1, MAX_WRITE_SHARDS), help="Items of a group, or leaderboard keys."
)
@click.option("--event-bytes", type=Within(1, 400_000), help="An event's item; default: 200, or the sample's.")
@click.option("--sample", metavar="FILE", help="Events as JSON lines, the key's attribute first: how they pack.")
@click.option(
    "--retention", "retention_days", default=7, type=Within(0, 36_500), help="Days for which events are kept."
)
@click.option("--duplicates", default=0, type=Within(0, 100), help="Per event.")
@click.option("--partitions", type=click.IntRange(1, 10_000), help="Stream shards; default: as the rate needs.")
@click.option("--gather", default=1, type=Within(0, 300), help="max_batching_window in seconds.")
@click.option("--batch", default=1000, type=click.IntRange(1, 10_000), help="Records of a batch.")
@click.option("--packed", type=Within(1, 1e6), help="Events per flush and part: pack them.")
@click.option("--parts", default=1, type=click.IntRange(1, MAX_PARTS), help="Parts of a packed event.")
@click.option("--door", default="sdk", type=click.Choice(get_args(Door)), help="Who accepts events.")
@click.option("--per-request", default=1, type=click.IntRange(1, 10_000), help="Events of a request.")
@click.option("--concurrency", default=1000, type=click.IntRange(1), help="Executions at a time, per account.")
@click.option("--table-units", default=TABLE_UNITS, type=Within(1, 1e9), help="The account's quota: writes per table.")
@click.option("--monitoring", is_flag=True, help="All alarms.")
@click.option("--dashboard", is_flag=True, help="A dashboard of each construct.")
@click.option("--tracing", is_flag=True, help="X-Ray.")
@click.option("--prices", metavar="FILE", help="Default: the installed list, us-east-1.")
@shared
def cost(session: Session, **given: Any) -> None:
    """Estimate dollars per month, of this design and of the known ones.

    Doors: sdk (your code accepts), queue (EventIngest's consumer does), http (an API before it), validated (and a
    function that checks). Without free tiers, without reads of counts. docs/cost.md has the formulas.
    """
    prices = price_list(given.pop("prices"))
    load = workload(**given)
    if load.rate:
        found = load, prices, bills(load, prices.of), in_pages(load, prices.of)
        session.emit(costs.document(*found), costs.shown(*found))
    else:
        fixed = idle(load, prices.of)
        session.emit(costs.idle_document(prices, fixed), costs.idle_shown(prices, fixed))


def workload(
    *,
    groups: Sequence[float],
    tiers: Sequence[tuple[Tier, ...]],
    skew: float,
    own_key: bool,
    group_bytes: float,
    ranked: bool,
    write_shards: int,
    event_bytes: float | None,
    sample: str | None,
    **same: Any,
) -> Workload:
    measured, sizes = (200.0, None) if sample is None else sampled(sample)
    usual = Counted(1, skew, scattered=not own_key, group_bytes=group_bytes)
    counted = [
        replace(usual, groups=int(number), ranked=ranked and place == 0, write_shards=write_shards)
        for place, number in enumerate(groups)
    ]
    counted += [replace(usual, groups=int(groups[0]), tiers=each) for each in tiers]
    size = measured if event_bytes is None else event_bytes
    return Workload(counted=tuple(counted), event_bytes=size, sizes=sizes, **same)


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
    found = []
    with Path(path).open("rb") as file:
        for one in islice(rows(file, "jsonl"), _MOST_SAMPLED):
            try:
                if not one.values:
                    raise ValueError(one.problem or "expected an object with attributes")
                found.append(Row("+", typed_item(None, one.values)))
            except (TypeError, ValueError) as error:
                raise click.BadParameter(f"line {one.number}: {error}", param_hint="--sample") from None
    if not found:
        raise click.BadParameter(f"{path} holds no events", param_hint="--sample")
    return fmean(item_bytes(row.values) for row in found), ChunkSizes.measured(found)
