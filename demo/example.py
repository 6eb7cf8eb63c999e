"""An example: what is sent, which numbers that must come to, and how they are read back."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar, Final, TypeAlias

from demo.check.explained import Explained
from demo.check.intervals import last_day
from demo.cost import Costs
from demo.platform.deployment import Deployment
from demo.sending import Account, Deliveries, Feed
from demo.terminal import Progress, printable
from dynamodb_counters import ActiveMembers, Aggregate, Counters, Distinct, Event, Extremes, Percentiles, Ranks, Window

Numbers: TypeAlias = Mapping[str, Mapping[str, float]]
"""By what is counted, and by group."""

_THREADS: Final = 8
_DECLARED: Final = (Event, Aggregate, Distinct, Window, ActiveMembers, Percentiles, Extremes, Ranks)


@dataclass(frozen=True, kw_only=True)
class Example:
    """Events and their truth, for the stack of the same name: `CountersJobs` of `jobs`.

    The `truth` is by declaration, or by `declaration.measure` where it has several: `.top` is the ranking. A group is
    the value of its only field, "" of an aggregate without; that of a histogram is a bin. Windows are of the 24 hours
    to the end of the minute of `now`.
    """

    name: str
    now: datetime
    events: Mapping[str, Deliveries]
    """Deliveries by the event that they are declared as, in the order in which they are sent."""
    truth: Numbers
    changes: Sequence[tuple[dict[str, Any], dict[str, Any] | None]] = ()
    """Changes by other code of items of its own table: their keys, and the rest, None where it deletes one."""

    priced: ClassVar[bool] = False
    """Whether its units are measured."""

    @property
    def stack(self) -> str:
        return f"Counters{self.name.title()}"

    @cached_property
    def declared(self) -> dict[tuple[bool, str], Any]:
        """Declarations of the example by whether they are events, and name."""
        values = vars(import_module(f"examples.{self.name}")).values()
        return {(isinstance(value, Event), value.name): value for value in values if isinstance(value, _DECLARED)}

    def feeds(self) -> Sequence[Feed]:
        return [Feed(self.declared[True, name], deliveries, name) for name, deliveries in self.events.items()]

    @property
    def size(self) -> int:
        return sum(map(len, self.events.values())) + len(self.changes)

    def responses(self) -> Counter[str]:
        """Return how many events the runtime must accept, reject as duplicates, and retract."""
        return sum((deliveries.responses() for deliveries in self.events.values()), Counter[str]())

    def send(self, counters: Counters, deployment: Deployment, account: Account, progress: Progress) -> None:
        """Send all events and write all changes."""
        for feed in self.feeds():
            account.send(counters, feed, progress)
        client, table = deployment.emulator.client("dynamodb"), deployment.outputs[self.stack].get("SourceTableName")
        for key, item in self.changes:
            if item is None:
                client.delete_item(TableName=table, Key=key)
            else:
                client.put_item(TableName=table, Item=key | item)

    def total(self, counters: Counters) -> float:
        """Read a number that shows that all is counted: the last part of the truth."""
        return sum(self._numbers(counters, list(self.truth)[-1]).values())

    @property
    def expected_total(self) -> float:
        return sum(list(self.truth.values())[-1].values())

    def read(self, counters: Counters) -> Numbers:
        """Read everything back."""
        return {what: self._numbers(counters, what) for what in self.truth}

    def expected(self, actual: Numbers) -> Numbers:  # noqa: ARG002 - approximate measures depend on what was read
        """Return the numbers that must have been read."""
        return self.truth

    def _numbers(self, counters: Counters, what: str) -> dict[str, float]:
        name, _, measure = what.partition(".")
        declared, groups = self.declared[False, name], list(self.truth[what])
        if measure == "top":
            scores = [group[declared.ranking.measure] for group in counters.top(declared, count=len(groups))]
            return {str(rank): float(score) for rank, score in enumerate(scores, start=1)}
        if isinstance(declared, Window):
            with ThreadPoolExecutor(_THREADS) as pool:
                days = pool.map(lambda group: self._last_day(counters, declared, group), groups)
                return dict(zip(groups, days, strict=True))
        if not groups:
            return {}
        read = counters.get_many([(declared, self._values(name, group)) for group in groups])
        numbers = [result.measures[measure] if measure else next(iter(result.measures.values())) for result in read]
        if isinstance(numbers[0], Mapping):
            return {str(paths): float(number) for paths, number in numbers[0].items()}
        return {group: float(number) for group, number in zip(groups, numbers, strict=True)}

    def _last_day(self, counters: Counters, window: Window, group: str) -> float:
        count = counters.window(window, self._values(window.name, group)).last(timedelta(days=1), as_of=self.now)
        assert (count.start, count.end) == last_day(self.now)
        return float(count.count)

    def _values(self, name: str, group: str) -> dict[str, str]:
        declared = self.declared[False, name]
        fields = declared.total.fields if isinstance(declared, Distinct) else declared.fields
        return dict.fromkeys(fields, group)

    def questions(self) -> Sequence[tuple[Aggregate, Mapping[str, str]]]:
        """Return groups that are explained."""
        return []

    def lines(self, numbers: Numbers) -> Sequence[str]:
        """Its lines of the summary."""
        return [f"{sum(groups.values()):>9,.0f}  {what}, {len(groups):,} groups" for what, groups in numbers.items()]

    def section(self, finding: Finding) -> dict[str, Any]:
        """Its part of the report."""
        return {
            self.name: {
                "events_sent": finding.account.total,
                "accepted": finding.account.statuses["accepted"],
                "duplicates_rejected": finding.account.statuses["duplicate"],
                "withdrawn": finding.account.withdrawn,
                "killed_while_counting": finding.crashed,
                **finding.actual,
            }
        }

    def commands(self) -> Sequence[str]:
        """Return arguments of `counters` to try on the table while it stays up."""
        return list(dict.fromkeys(self._command(what) for what in self.truth))

    def _command(self, what: str) -> str:
        name, _, measure = what.partition(".")
        if measure == "top":
            return f"top {name}"
        values = self._values(name, next(iter(highest(self.truth[what], 1)), ""))
        group = "".join(f" {shlex.quote(f'{field}={value}')}" for field, value in values.items())
        if isinstance(self.declared[False, name], Window):
            return f"get {name}{group} --last 24h --as-of {self.now.isoformat()}"
        return f"get {name}{group}"


@dataclass(frozen=True)
class Finding:
    """The runtime's responses to an example and its counts, compared with what both must be."""

    example: Example
    account: Account
    actual: Numbers
    costs: Costs | None = None
    explained: Sequence[Explained] = ()
    crashed: bool = False

    @property
    def expected(self) -> Numbers:
        return self.example.expected(self.actual)

    @property
    def measured(self) -> Costs:
        """The costs, of an example whose units are measured."""
        assert self.costs is not None
        return self.costs

    @property
    def checked(self) -> int:
        return sum(map(len, self.expected.values()))

    def differences(self) -> list[str]:
        """One line per wrong count, and per reason why events were not accepted; empty when all is exact."""
        responses = {**self.account.statuses, "withdrawn": self.account.withdrawn}
        lines = [f"{n:,} events {reason}" for reason, n in self.account.reasons.items()]
        lines += _differing("responses", responses, self.example.responses())
        actual, expected = self.actual, self.expected
        for what in sorted(expected.keys() | actual.keys()):
            lines += _differing(what, actual.get(what, {}), expected.get(what, {}))
        lines += [f"explained {explained}" for explained in self.explained if not explained.is_exact]
        return [f"{self.example.name}: {line}" for line in lines]


def _differing(what: str, actual: Mapping[str, float], expected: Mapping[str, float]) -> list[str]:
    return [
        f"{what} of {printable(name)}: {actual.get(name, 0):,}, must be {expected.get(name, 0):,}"
        for name in sorted(expected.keys() | actual.keys())
        if actual.get(name, 0) != expected.get(name, 0)
    ]


def highest(counts: Mapping[str, float], most: int) -> list[str]:
    """Return the names with the highest counts, by name where counts are equal."""
    return sorted(counts, key=lambda name: (-counts[name], name))[:most]
