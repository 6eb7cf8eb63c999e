"""Groups explained while all else goes on: lines add up, and differ from the number by what nothing shows alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from decimal import Decimal
from functools import partial
from typing import Any, Final, cast

from dynamodb_counters._backfill.feeds import Feeds
from dynamodb_counters._declarations import Aggregate, Declaration, Direct, Window
from dynamodb_counters._explain import explainer as explained
from dynamodb_counters._explain.explainer import Explainer, make_explainer
from dynamodb_counters._explain.lines import Explanation
from dynamodb_counters._items.table_schema import SCORE
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import utc
from simulation.pairs import features
from simulation.pairs.calls import BackendStream
from simulation.pairs.engine import Act, Engine
from simulation.pairs.subjects import Group, Parts
from simulation.pairs.truth import Truth, nonzero

_HOUR: Final = 3600
UNSURE: Final = "explanation that a direct count, a deletion, a repair or a redrive made unsure"
_UNSURE: Final = (
    explained.COUNTED_MEANWHILE,
    explained.GONE_MEANWHILE,
    explained.REPAIRED_MEANWHILE,
    explained.REDRIVEN_MEANWHILE,
)
SURE: Final = "group explained"
SHOWN: Final = "difference explained"


class Explaining:
    """Explains groups of names that are complete."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def acts(self) -> Iterable[Act]:
        return [(6, self.explain)]

    def explain(self) -> None:
        """Have some process explain a group, or the hour of a window."""
        engine = self._engine
        truth = Truth(engine.backend, engine.ledger)
        among = sorted(self._wanted(truth), key=repr)
        if among:
            self._explain(*engine.rng.choice(among))

    def explain_all(self) -> None:
        """With nothing in the way: every group, and all groups of every partition, one after the other."""
        truth = Truth(self._engine.backend, self._engine.ledger)
        wanted = self._wanted(truth)
        wanted |= {(name, self._begin(truth.registered[name], group)) for name, group in wanted}
        for name, group in sorted(wanted, key=repr):
            made = self._made(self._engine.table(), truth.registered[name], group)
            before = self._moment()
            self._judge(made, made.explained(), group, before)

    def _begin(self, declaration: Declaration, group: Group) -> Group:
        """The fields of a group's partition, which come first; all of a window's."""
        return group if isinstance(declaration, Window) else group[: len(declaration._pk_template.fields)]

    def _wanted(self, truth: Truth) -> set[tuple[str, Group]]:
        declared = [truth.registered[name] for name in truth.complete()]
        among = [each for each in declared if not isinstance(each.source, Direct)]
        return {(each.name, group) for each in among for group in truth.of(each)}

    def _explain(self, name: str, group: Group) -> None:
        engine, before = self._engine, self._moment()
        declaration = engine.registered()[name]

        def work(table: Table) -> tuple[Explainer, Explanation]:
            made = self._made(table, declaration, group)
            return made, made.explained()

        engine.call(work, lambda found: self._judge(found[0], found[1], group, before))

    def _made(self, table: Table, declaration: Declaration, group: Group) -> Explainer:
        values = dict(zip(declaration.fields, group, strict=False))
        hour = int(group[-1]) if isinstance(declaration, Window) else 0
        hours = (utc(hour), utc(hour + _HOUR)) if isinstance(declaration, Window) else (None, None)
        feeds = Feeds(cast("Any", BackendStream(self._engine.backend)), None)
        return make_explainer(table, feeds, declaration, values, hours)

    def _moment(self) -> tuple[str, int]:
        ledger = self._engine.ledger
        return repr(sorted(ledger.spoiled.items())), self._engine.deliveries.lost()

    def _judge(self, made: Explainer, found: Explanation, group: Group, before: tuple[str, int]) -> None:
        engine, declaration = self._engine, made.asked.declaration
        place = declaration.name, group
        lost = [one for name, one in engine.ledger.lost if name == declaration.name and one[: len(group)] == group]
        sums: defaultdict[str, Decimal] = defaultdict(Decimal)
        kinds: Counter[str] = Counter()
        for line in found.lines():
            kinds[line.kind] += 1
            for name, number in line.adds.items():
                sums[name] += number
        if nonzero(dict(sums)) != {name: Decimal(number) for name, number in found.numbers.items()}:
            engine.wrong.append(f"explained {place}: the lines add up to {dict(sums)}, not to {found.numbers}")
        if any(line.reason.startswith(_UNSURE) for line in found.rest):
            engine.reached[UNSURE] += 1
            return
        truth = Truth(engine.backend, engine.ledger)
        is_same = declaration.name in truth.complete() and truth.run_of(declaration.name) == made.entry.run
        if before != self._moment() or before[1] or lost or not is_same:
            return
        want = self._expected(truth, made, group)
        if found.difference != want:
            engine.wrong.append(
                f"explained {place} at {found.position}: differs by {found.difference}, expected {want}; "
                f"{dict(kinds)}, {[line for line in found.rest if line.kind == 'difference']}"
            )
        engine.reached[SHOWN if want else SURE] += 1
        engine.reached.update(f"lines {kind}" for kind in kinds)
        engine.note(features.EXPLAINED, [declaration.name])

    def _expected(self, truth: Truth, made: Explainer, group: Group) -> Parts:
        """The part of groups that no item shows at their positions: it was spoiled, or has expired, or was erased."""
        declaration = made.asked.declaration
        parts: defaultdict[str, Decimal] = defaultdict(Decimal)
        for (name, one), spoiled in truth.spoiled.items():
            for measure, number in spoiled.items() if name == declaration.name and one[: len(group)] == group else ():
                parts[measure] += number
        parts.pop(SCORE, None)
        if isinstance(declaration.source, Aggregate):
            return nonzero(parts)
        keys = list(made._items)
        for key, wanted in [(keys[0], group)] if isinstance(declaration, Window) else zip(keys, keys, strict=True):
            for one, numbers in truth.expired_before(declaration, partial(made._applied_in, key)):
                for name, number in numbers.items() if one == wanted else ():
                    parts[name] += number
        # Changes of a level are explained; when they were is no number of their own.
        parts.pop("total.t", None)
        return nonzero(parts)
