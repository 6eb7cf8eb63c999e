"""Groups explained while all else goes on: lines are the events of a group, and all else is the difference."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Final

from dynamodb_counters._declarations import Aggregate, Declaration, Direct, Window
from dynamodb_counters._declarations.composites import group_fields
from dynamodb_counters._items.table_schema import SCORE
from dynamodb_counters._reads.events import Explanation, Line, explain
from dynamodb_counters._reads.question import Question
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import utc
from simulation.oracle.aggregates import DAY_BUCKET, Group, Parts
from simulation.pairs import features
from simulation.pairs.engine import Act, Engine
from simulation.pairs.truth import Truth, nonzero

_HOUR: Final = 3600
_ALL: Final = 10**9
SURE: Final = "group explained"
LINES: Final = "lines compared while all else goes on"
SHOWN: Final = "difference shown"
WAITS: Final = "group explained for which something waits"

_SLOT: Final = re.compile(r"[mh]\d\d(\.t)?|total\.t")

_Lines = Counter[tuple[tuple[str, ...], tuple[tuple[str, Fraction], ...]]]
"""What identifies an event, and what it adds; how often."""


class Explaining:
    """Explains groups of names that are complete."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def acts(self) -> Iterable[Act]:
        return [(6, self.explain)]

    def explain(self) -> None:
        """Have some process explain a group, or the hour of a window."""
        engine = self._engine
        truth = self._truth()
        among = sorted(self._wanted(truth), key=repr)
        if not among:
            return
        name, group = engine.rng.choice(among)
        declaration = engine.registered()[name]

        def work(table: Table) -> tuple[Truth, Explanation]:
            return self._truth(), self._explained(table, declaration, group)

        engine.call(work, lambda found: self._compare(found[0], found[1], declaration, group))

    def explain_all(self) -> None:
        """With nothing in the way or on its way: every group."""
        self._engine.go()
        truth = self._truth()
        wanted = self._wanted(truth)
        shown = {name: truth.shown(truth.registered[name]) for name, _ in wanted}
        groups = {name: truth.of(truth.registered[name]) for name, _ in wanted}
        for name, group in sorted(wanted, key=repr):
            declaration = truth.registered[name]
            found = self._explained(self._engine.table(), declaration, group)
            lines = _lines(shown[name], group)
            self._require_lines(found, lines, declaration, group)
            rest = _sums_of(_lines([((), *each) for each in groups[name].items()], group))
            for measure, number in _sums_of(lines).items():
                rest[measure] -= number
            self._require_difference(truth, found, nonzero(dict(rest)), declaration, group)

    def _truth(self) -> Truth:
        return Truth(self._engine.backend, self._engine.ledger)

    def _wanted(self, truth: Truth) -> set[tuple[str, Group]]:
        declared = [truth.registered[name] for name in truth.complete()]
        among = [each for each in declared if not isinstance(each.source, Direct)]
        # Of what only a read of its own understands, all items of a group are explained together.
        return {
            (each.name, group if isinstance(each, Window) else group[: len(group_fields(each))])
            for each in among
            for group in truth.of(each)
            if not (isinstance(each, Window) and group[-1].startswith(DAY_BUCKET))
        }

    def _explained(self, table: Table, declaration: Declaration, group: Group) -> Explanation:
        values = dict(zip(declaration.fields, group, strict=False))
        hour = int(group[-1]) if isinstance(declaration, Window) else 0
        start, end = (utc(hour), utc(hour + _HOUR)) if isinstance(declaration, Window) else (None, None)
        question = Question(now=table.clock(), declared=declaration, values=values, start=start, end=end)
        return explain(table, question, scan=True, limit=_ALL)

    def _compare(self, before: Truth, found: Explanation, declaration: Declaration, group: Group) -> None:
        """Compare what a process has found, where no event has come, changed or gone meanwhile."""
        self._engine.note(features.EXPLAINED, [declaration.name])
        sums = _sums(found.lines)
        for name, number in found.difference.items():
            sums[name] += Fraction(number)
        if nonzero(dict(sums)) != _fractions(found.numbers):
            self._wrong(declaration, group, f"the lines come to {dict(sums)}, not to {found}")
        after = self._truth()
        is_same = not isinstance(declaration.source, Aggregate) and declaration == after.registered.get(
            declaration.name
        )
        if is_same and before.changes(declaration) == after.changes(declaration):
            self._engine.reached[LINES] += 1
            self._require_lines(found, _lines(after.shown(declaration), group), declaration, group)

    def _require_lines(self, found: Explanation, wanted: _Lines, declaration: Declaration, group: Group) -> None:
        lines: _Lines = Counter((tuple(line.key.values()), _numbers(line.adds)) for line in found.lines)
        if len(found.lines) != found.count:
            self._wrong(declaration, group, f"{found.count} lines, of which {len(found.lines)} are shown")
        if any(not key for key, _ in wanted):
            # Groups that are looked at together.
            sums = [_sums_of(each) for each in (lines, wanted)]
            if sums[0] != sums[1]:
                self._wrong(declaration, group, f"lines come to {sums[0]}, expected {sums[1]}")
        elif lines != wanted:
            self._wrong(declaration, group, f"has {lines - wanted} too much, lacks {wanted - lines}")

    def _require_difference(
        self, truth: Truth, found: Explanation, wanted: Parts, declaration: Declaration, group: Group
    ) -> None:
        """Require exactly what was spoiled, has expired or was erased; or any if something waits."""
        engine, name = self._engine, declaration.name
        if truth.waits(name):
            engine.reached[WAITS] += 1
        elif _fractions(found.difference) != wanted:
            self._wrong(declaration, group, f"differs by {found.difference}, expected {wanted}")
        elif bool(found.reason) != bool(wanted):
            self._wrong(declaration, group, f"{wanted} is explained by {found.reason!r}")
        else:
            engine.reached[SHOWN if wanted else SURE] += 1

    def _wrong(self, declaration: Declaration, group: Group, what: str) -> None:
        self._engine.wrong.append(f"explained {declaration.name} {group}: {what}")


def _lines(shown: Iterable[tuple[tuple[str, ...], Group, Parts]], group: Group) -> _Lines:
    among = [(key, _numbers(parts)) for key, one, parts in shown if one[: len(group)] == group]
    return Counter((key, numbers) for key, numbers in among if numbers)


def _numbers(parts: Mapping[str, Any]) -> tuple[tuple[str, Fraction], ...]:
    # Changes of a level are explained; when they were, and in which slots, is no number of their own.
    counts = {name: Fraction(part) for name, part in parts.items() if name != SCORE and not _SLOT.fullmatch(name)}
    return tuple(sorted(nonzero(counts).items()))


def _fractions(numbers: Mapping[str, Any]) -> dict[str, Fraction]:
    return {name: Fraction(number) for name, number in numbers.items()}


def _sums(lines: Iterable[Line]) -> defaultdict[str, Fraction]:
    return _sums_of(Counter(((), _numbers(line.adds)) for line in lines))


def _sums_of(lines: _Lines) -> defaultdict[str, Fraction]:
    sums: defaultdict[str, Fraction] = defaultdict(Fraction)
    for (_, numbers), count in lines.items():
        for name, number in numbers:
            sums[name] += count * number
    return sums
