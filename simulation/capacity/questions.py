"""Capacity questions: what `counters cost` answers, and what the simulator does just below and above that ceiling."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from dynamodb_counters._cost.ceilings import Ceiling, ceiling_of
from dynamodb_counters._cost.workload_settings import Workload
from dynamodb_counters.cli.commands import cost
from dynamodb_counters.cli.session import Session
from simulation.aws import partition_limit
from simulation.capacity.world import Declared, Outcome, World
from simulation.clock import VirtualClock
from simulation.queue.throttles import Limits

BELOW: Final = 0.9
ABOVE: Final = 1.2
GROWS: Final = 0.02
"""Growth of a backlog, as a share of the events that came, from which on a workload does not keep up."""

_SAMPLED: Final = 2_000


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the options of `counters cost` that ask it, and how it is tried.

    A run takes so many `seconds` of virtual time. Limits of DynamoDB, executions and events per second are divided by
    `scale`, which the question's partitions, batches and round trips are not.
    """

    text: str
    options: str
    seconds: float = 12.0
    scale: float = 1.0
    splits_after: float = float("inf")
    seed: int = 0

    def load(self) -> Workload:
        """The workload, as the command reads it."""
        options = self.options.split()
        if "--packed" in options:
            plain = _given(options)
            with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as sample:
                events = Declared.of(plain).events(VirtualClock(), random.Random(self.seed))
                sample.writelines(json.dumps(event) + "\n" for event in islice(events, _SAMPLED))
                sample.flush()
                return _given([*options, "--sample", str(Path(sample.name))])
        return _given(options)


def _given(options: list[str]) -> Workload:
    given: dict[str, Any] = dict(cost.cost.make_context("cost", [*options], obj=Session()).params)
    del given["prices"]
    return cost.workload(**given)


def ask(question: Question) -> Ceiling:
    found = ceiling_of(question.load())
    assert found is not None
    return found


def trials(question: Question, shorter: float = 1.0) -> Iterator[tuple[float, Outcome]]:
    """Rates, and what becomes of them."""
    load, scale = question.load(), question.scale
    units = partition_limit.WRITES / scale
    limits = Limits(
        table_writes=load.table_units / scale,
        writes=units,
        reads=partition_limit.READS / scale,
        index_writes=units,
        splits_after=question.splits_after,
    )
    most = ask(question).events_per_second
    for rate in (most * BELOW, most * ABOVE):
        offered = replace(load, rate=rate / scale)
        executions = max(1, int(load.concurrency / scale))
        yield rate, World(offered, limits, executions, question.seed).run(question.seconds * shorter)


QUESTIONS: Final = (
    Question("One partition key of events", "--rate 3190 --groups 1 --own-key", 20, splits_after=5),
    Question(
        "One item",
        "--rate 5000 --groups 1 --partitions 64 --batch 100 --gather 5 --table-units 1e6",
        20,
        scale=20,
    ),
    Question(
        "One item, of two write shards",
        "--rate 5000 --groups 1 --partitions 64 --batch 100 --gather 5 --write-shards 2 --table-units 1e6",
        20,
        scale=20,
    ),
    Question("A leaderboard", "--rate 2000 --groups 3000 --ranked", 24),
    Question("A million groups", "--rate 10000 --groups 1e6 --partitions 4", scale=1),
    Question("Pages, the first with 44% of the views", "--rate 5000 --groups 5 --skew 1 --own-key", 20),
    Question("Packed events of one part", "--rate 20000 --groups 50 --packed 1024", 8),
    Question("Packed events of two parts, 64 a flush", "--rate 20000 --groups 50 --packed 64 --parts 2", 6),
    Question("The quota of a table", "--rate 60000 --groups 1e6 --partitions 64 --batch 100 --gather 2", 12, scale=40),
    Question("Ten concurrent executions", "--rate 5000 --groups 1e6 --partitions 20 --batch 10 --concurrency 10", 10),
    Question(
        "A window of two tiers, next to its events", "--rate 800 --groups 1 --own-key --window 1m/24h --gather 0", 20
    ),
)
