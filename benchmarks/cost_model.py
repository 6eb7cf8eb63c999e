"""``python -m benchmarks.cost_model``: the units of `counters cost`, and what the benchmark measures in memory.

The model is given each measurement's settings (batches, groups, shards, how events compress) and must agree with it.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, ClassVar, Final, NamedTuple

from benchmarks import cost, flushing, invocations, month, packing, partitions, windows, workloads
from benchmarks.databases import READ_PRICE, TABLE, MemoryDatabase
from benchmarks.designs import DESIGNS
from benchmarks.designs.ours import PACKED_VIEW, VIEW, Ours, OursOnThree, PackedEvents
from benchmarks.partitions import cadence
from benchmarks.queue_and_stream import Stream, chunks
from demo.blog.traffic import View
from dynamodb_counters import Aggregate
from dynamodb_counters._cost.batches import SHARD_LIFETIME, Batches
from dynamodb_counters._cost.counted_items import Counted, updates_of
from dynamodb_counters._cost.invocations import invocations as runs_of
from dynamodb_counters._cost.known_units import KNOWN
from dynamodb_counters._cost.own_units import (
    Packing,
    Stage,
    accept_packed,
    accept_plain,
    checkpoint_writes,
    count_units,
)
from dynamodb_counters._cost.workload_settings import Workload
from dynamodb_counters._timeline.tiers import TIERS, tiers_up_to
from dynamodb_counters._timeline.times import DAY, HOUR, MINUTE

_EVENT_BYTES: Final = 150
_PAGES: Final = 50
_ON_DAYS: Final = tuple(tier for tier in TIERS if tier.name in ("hour", "day", "month"))


class Compared(NamedTuple):
    """Units of one stage at one setting, per event unless it says otherwise."""

    setting: str
    stage: str
    model: float
    measured: float

    @property
    def deviation(self) -> float:
        return self.model / self.measured - 1


@dataclass(frozen=True)
class Sizes:
    """How much is measured: events of a workload, packed ones, simulated days.

    `flushed` are events per second and flush interval, `invoked` events per second and how many.
    """

    events: int = 100_000
    batch: int = 1_000
    packed: int = 20_000
    days: float = 2.0
    tail_days: int = 20
    partitions: tuple[int, ...] = (1, 4, 16)
    flushed: tuple[tuple[int, int], ...] = ((10, 5), (10, 20), (100, 5), (100, 20), (1_000, 1))
    invoked: tuple[tuple[float, int], ...] = ((0.01, 1_000), (1, 4_000), (10, 20_000))


TINY: Final = Sizes(
    events=2_000,
    batch=125,
    packed=2_000,
    days=0.125,
    tail_days=4,
    flushed=((10, 5), (10, 20), (100, 5)),
    invoked=((0.01, 300), (1, 1_500), (10, 6_000)),
)


class _Packed(PackedEvents):
    """Few chunks a batch, so that there are several batches."""

    records_per_batch: ClassVar[int] = 20


class _InPages(Ours):
    declarations = (Aggregate("views", VIEW, by="url", pages=True),)


def compare(sizes: Sizes) -> Iterator[Compared]:
    yield from _designs(sizes)
    yield from _packed(sizes)
    for batch in (1_000, 100):
        yield _in_pages(2_000, batch)
    for number in sizes.partitions:
        yield from _partitions(number, sizes.days)
        yield from _rare(number, sizes.tail_days)
    yield from _windows()
    for rate, events in sizes.invoked:
        model = runs_of(Workload(rate, (Counted(_PAGES),), gather=1.0)).runs / rate
        measured = sum(used.runs for used in invocations.replay(rate, events, _PAGES)) / events
        yield Compared(f"{rate:g} events/s, invocations", "per event", model, measured)


def _designs(sizes: Sizes) -> Iterator[Compared]:
    """Backlogs of every design, with pages that are hot or scattered; events that keep coming; three aggregates."""
    tail = sizes.events // 2
    known = {design.name: design for design in KNOWN}
    batches = Batches(sizes.batch, per_shard=sizes.events / sizes.batch)
    for name, views, counted in (
        ("hot", workloads.hot(sizes.events), Counted(_PAGES, skew=1.0)),
        ("scattered", workloads.long_tail(sizes.events, tail), Counted(tail)),
    ):
        for design in DESIGNS:
            if design.name in known:
                stages = known[design.name].units(_EVENT_BYTES, (counted,), batches, 1)
                found = cost.cost(design, views, sizes.batch)
                yield Compared(f"{name}, {design.title}", "all", _writes(stages), found["write_units"])
        yield from _own(f"{name}, {Ours.title}", Ours, views, (counted,), batches)
    views = workloads.hot(sizes.events)
    three = (Counted(_PAGES, skew=1.0), Counted(10 * 5_000), Counted(1))
    yield from _own("three aggregates", OursOnThree, views, three, batches)
    steady = cost.steady(Ours, views, sizes.batch)["write_units"]
    own = _steady(sizes.batch)
    yield Compared("hot, while events come", "all", 1 + _writes(count_units((Counted(_PAGES, 1.0),), own, 1)), steady)


def _in_pages(groups: int, batch: int, events: int = 10_000) -> Compared:
    """Pages that a first delivery has made are counted in once more, many of their groups at once or few."""
    design, written = _InPages(database := MemoryDatabase()), 0.0
    stream, views = Stream(database, TABLE, batch), workloads.long_tail(events, groups)
    for client in ("first", "second"):
        # One call at a time: calls of many threads come into the stream in another order each run.
        for part in chunks(views, design.events_per_call):
            design.accept([view._replace(client=f"{client} {view.client}") for view in part])
        written = database.usage.writes
        stream.drain(design.aggregate)
    urls = {view.url for view in views}
    # The text of a group, its mark and its number.
    counted = Counted(len(urls), pages=True, group_bytes=fmean(map(len, urls)) + 4)
    model = _writes(count_units((counted,), Batches(batch, per_shard=events / batch), 1))
    setting = f"{len(urls):,} groups in pages, {batch:,} events a batch"
    return Compared(setting, "count", model, (database.usage.writes - written) / events)


def _own(
    setting: str, design: type[Ours], views: Sequence[View], counted: Sequence[Counted], batches: Batches
) -> Iterator[Compared]:
    found = cost.cost(design, views, int(batches.events))["write_units"]
    accepted = cost.accepting(views)["write_units"]
    yield Compared(setting, "accept", accept_plain(_EVENT_BYTES).writes, accepted)
    yield Compared(setting, "count", _writes(count_units(counted, batches, 1)), found - accepted)


def _steady(batch: int) -> Batches:
    """Batches that the table's own changes take part of."""
    events = float(batch)
    for _ in range(50):
        events = (events + batch - updates_of(Counted(_PAGES, 1.0), Batches(events), 1).number) / 2
    return Batches(events)


def _packed(sizes: Sizes) -> Iterator[Compared]:
    steady = [view.as_event() for view in workloads.hot(sizes.packed)]
    samples: dict[str, Sequence[Mapping[str, Any]]] = {"packed": steady}
    if workloads.LOG.exists():
        full = workloads.log_in_full()[: sizes.packed]
        samples["packed, real log"] = [{name: event[name] for name in PACKED_VIEW.fields} for event in full]
    for name, events in samples.items():
        chunked = packing.chunk_sizes(events)
        for number in (16, 64, 256, 1024):
            found = packing._accepting(events[: 200 * number], number, 4096)
            # The layout's item is written once.
            model = accept_packed(Packing(number, 0, chunked)).writes + 1 / len(events[: 200 * number])
            yield Compared(f"{name}, {number} a flush", "accept", model, found["write_units"])
    # The layout's record takes the place of one chunk.
    flush, batch = _Packed.events_per_call, 20
    number = flush * (batch * max(4, sizes.packed // flush // batch) - 1)
    for name, views, counted in (
        ("hot", workloads.hot(number), Counted(_PAGES, skew=1.0)),
        ("scattered", workloads.long_tail(number, number // 2), Counted(number // 2)),
    ):
        batches = Batches(flush * batch, per_shard=number / flush / batch)
        accepted = accept_packed(Packing(flush, 0, packing.chunk_sizes([view.as_event() for view in views])))
        model = accepted.writes + _writes(count_units((counted,), batches, 1)) + 1 / number
        yield Compared(f"packed, {name}", "all", model, cost.cost(_Packed, views, batch)["write_units"])
    for rate, interval in sizes.flushed:
        yield from _flushed(rate, interval, sizes.packed)


def _flushed(rate: int, interval: int, events: int) -> Iterator[Compared]:
    """Two writers take turns; units with reads at their price, as the benchmark has them."""
    events = max(events, 12 * rate * interval)
    found = flushing._units(rate, interval, events)
    chunked = packing.chunk_sizes([view.as_event() for view in workloads.hot(6_000, rate=rate)])
    bucket = max(1, flushing._EVENTS_PER_BUCKET // rate)
    packed = Packing(found["events_per_call"], interval, chunked, writers=2, bucket_seconds=bucket)
    flushes = max(2, min(200, events // (rate * interval)))
    stages = count_units((Counted(_PAGES, 1.0),), Batches(rate * interval, interval, flushes), 1)
    setting = f"packed, {rate} events/s flushed every {interval} s"
    # The layout's item is written once.
    accepted = _priced([accept_packed(packed)]) + 1 / (flushes * rate * interval)
    yield Compared(setting, "accept", accepted, found["accept"])
    yield Compared(setting, "count", _priced(stages.values()), found["aggregate"])


def _partitions(number: int, days: float) -> Iterator[Compared]:
    """Every shard feeds a total, a window of three tiers, pages of its own and a leaderboard's one player."""
    pace = cadence(number)
    found = partitions.busy(number, days, staggered=True)
    seconds = pace.minutes * MINUTE
    views, scores = Batches.every(pace.views, seconds), Batches.every(1, seconds)
    total = updates_of(Counted(1), views, number)
    window = updates_of(Counted(1, tiers=_ON_DAYS), views, number)
    pages = updates_of(Counted(60 * number, scattered=False), views, number)
    player = updates_of(Counted(1, ranked=True), scores, number)
    updates = total.number + window.number + pages.number + player.number
    setting = f"{number} partitions"
    yield Compared(setting, "updates per batch", updates, found["updates_per_batch"])
    groups = found["groups"]
    for name, model, measured in (
        ("hot total", [total], ["hot total"]),
        ("window", [window], ["hour bucket", "day bucket", "month bucket"]),
        ("leaderboard", [player], ["leaderboard"]),
    ):
        shards = checkpoint_writes(updates, views) / updates
        # All but what shards cost, which is measured over all updates.
        of_model = sum(each.writes + each.pruning + each.index for each in model) / sum(each.number for each in model)
        of_group = [groups[each]["write_units"] * groups[each]["updates"] for each in measured]
        of_groups = sum(of_group) / sum(groups[each]["updates"] for each in measured)
        yield Compared(f"{setting}, {name}", "per update", of_model + shards, of_groups)
    reads = count_units((Counted(1),), views, number)["checkpoint"].reads * views.events / updates
    measured_reads = sum(found["reads"].get(kind, 0.0) for kind in ("checkpoints", "deployments", "quarantine"))
    yield Compared(setting, "reads per update", reads, measured_reads)


def _rare(number: int, days: int) -> Iterator[Compared]:
    """Groups that are touched now and then, from any shard."""
    for rate, measured in partitions.long_tail(number, 0.0, days).items():
        seconds = DAY / int(rate) * number
        found = updates_of(Counted(1), Batches(1, seconds, SHARD_LIFETIME / seconds), number)
        model = (found.writes + found.pruning) / found.number
        setting = f"{number} partitions, a group touched {rate} times per day"
        yield Compared(setting, "per update", model, measured["write_units"])


def _windows() -> Iterator[Compared]:
    """A day at minute precision; this measurement has no tumbling window."""
    jobs, batch = workloads.jobs(), 10
    seconds = 37 * HOUR / len(jobs) * batch
    batches = Batches(batch, seconds, len(jobs) / batch, tumbling_seconds=math.inf)
    counted = Counted(len(workloads.PROVIDERS), tiers=tiers_up_to(MINUTE, DAY))
    found = windows.measure(MemoryDatabase(), batch)["packed_buckets"]
    model = _writes(count_units((counted,), batches, 1))
    yield Compared("window, a day by minutes", "count", model, found["write_units"])


def _writes(stages: Mapping[str, Stage]) -> float:
    return sum(stage.writes for stage in stages.values())


def _priced(stages: Iterable[Stage]) -> float:
    return sum(stage.writes + READ_PRICE * stage.reads for stage in stages)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.cost_model", description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="as small as the test")
    parser.add_argument("--month", action="store_true", help="dollars of a month instead, which is replayed")
    options = parser.parse_args()
    if options.month:
        for row in month.table(line for replayed in month.REPLAYED for line in month.month(*replayed)):
            print(row, flush=True)
        return
    print("| setting | stage | model | measured | deviation |\n|---|---|---|---|---|")
    worst = 0.0
    for each in compare(TINY if options.tiny else Sizes()):
        worst = max(worst, abs(each.deviation))
        figures = f"{each.model:.4g} | {each.measured:.4g} | {each.deviation:+.1%}"
        print(f"| {each.setting} | {each.stage} | {figures} |", flush=True)
    print(f"\nLargest deviation: {worst:.1%}")


if __name__ == "__main__":
    main()
