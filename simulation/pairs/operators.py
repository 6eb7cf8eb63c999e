"""The operators: increments, resets, erasures, redrives, discards; and processes that share a quota."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, Final, Literal

from dynamodb_counters._backfill.backfill import Backfill
from dynamodb_counters._control.counted_names import plan_of
from dynamodb_counters._control.registry import read_registry
from dynamodb_counters._declarations import Event, Quota
from dynamodb_counters._erase.eraser import Eraser
from dynamodb_counters._fold.records import Origins
from dynamodb_counters._quarantine.quarantine import Quarantined, discard, list_quarantined, redrive
from dynamodb_counters._table import Table
from dynamodb_counters._writes.direct_counts import increment, reset
from dynamodb_counters._writes.leases import Leases
from dynamodb_counters.errors import InvalidArgumentError
from simulation.oracle.entries import is_image
from simulation.pairs import features
from simulation.pairs.declared import STOCK, TAP, VISIT
from simulation.pairs.engine import Act, Engine
from simulation.pairs.ledger import Purpose
from simulation.pairs.writers import PAGES

_QUOTA: Final = Quota("calls", limit=12, per=timedelta(hours=1), portion=4)


COUNTED: Final = "group counted directly"
_GROUPS: Final = [{"aisle": aisle, "sku": sku} for aisle in "mn" for sku in "xyz"]


class Direct:
    """Increments and resets of a counter's groups."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def acts(self) -> Iterable[Act]:
        return [(2, self._increment), (1, self._reset)]

    def _increment(self) -> None:
        draw = self._engine.rng
        group = draw.choice(_GROUPS)
        amount = {name: draw.choice((-2, 1, 3, 1000)) for name in STOCK.measures if draw.random() < 0.8}
        if amount:
            self._call(lambda table: increment(table, STOCK, group, amount))

    def _reset(self) -> None:
        group = self._engine.rng.choice(_GROUPS)
        self._call(lambda table: reset(table, STOCK, group))

    def _call(self, count: Callable[[Table], dict[str, Any]]) -> None:
        self._engine.call(count, self._note, Purpose(base=STOCK.name))

    def _note(self, measures: dict[str, Any]) -> None:
        self._engine.reached[COUNTED] += any(measures.values())


class Erasing:
    """Erases a person's events, in both modes; what waits to be counted stays."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def acts(self) -> Iterable[Act]:
        return [(2, self._erase)]

    def _erase(self) -> None:
        draw = self._engine.rng
        event: Event = draw.choice(
            (VISIT, VISIT if self._engine.forced.features else self._engine.sources.get("tap", TAP))
        )
        values: dict[str, Any] = {"page": draw.choice(PAGES)} if event is VISIT else {"device": draw.choice("kl")}
        if event is VISIT and draw.random() < 0.6:
            values["id"] = str(draw.randrange(6))
        counts: Literal["keep", "take_back"] = draw.choice(("keep", "take_back"))
        if self._engine.forced.has(features.ERASED_KEPT, features.ERASED_BACK):
            counts = "keep" if self._engine.forced.has(features.ERASED_KEPT) else "take_back"
        self._engine.call(
            lambda table: Eraser(table, event, values).erase(counts),
            self._engine.noting(
                features.ERASED_KEPT if counts == "keep" else features.ERASED_BACK,
                self._engine.over(event.name),
                lambda erased: bool(erased.events or erased.packed),
            ),
        )


class Quarantine:
    """Redrives what waits, and discards some of it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def acts(self) -> Iterable[Act]:
        # While a name is filled, what its baseline has may still wait.
        is_filling = any(runner.kind is Backfill and runner.run for runner in self._engine.runners)
        return [(6 if is_filling else 2, self._redrive), (1, self._discard)]

    def redrive_all(self) -> int:
        """Redrive every image, and every delta that an item could not take."""
        waiting = list(list_quarantined(self._engine.table(), redriven=False))
        waiting = [entry for entry in waiting if is_image(entry.key[1]) or "numbers" in entry.content]
        for entry in sorted(waiting, key=lambda entry: entry.key):
            redrive(self._engine.table(), entry)
        return len(waiting)

    def _waiting(self) -> list[Quarantined]:
        waiting = list_quarantined(self._engine.table(), redriven=False)
        return sorted((entry for entry in waiting if is_image(entry.key[1])), key=lambda entry: entry.key)

    def _chosen(self) -> list[Quarantined]:
        waiting = self._waiting()
        return [entry for entry in waiting if self._engine.forced.concerns(entry.names)] or waiting

    def _redrive(self) -> None:
        if waiting := self._chosen():
            entry = self._engine.rng.choice(waiting)
            self._engine.call(lambda table: redrive(table, entry), self._noting(features.REDRIVEN, entry))

    def _discard(self) -> None:
        if waiting := self._chosen():
            entry = self._engine.rng.choice(waiting)
            self._engine.call(lambda table: _is_discarded(table, entry), self._noting(features.DISCARDED, entry))

    def _noting(self, feature: str, entry: Quarantined) -> Callable[[Any], None]:
        return self._engine.noting(feature, entry.names or features.EVERYTHING)


def _is_discarded(table: Table, entry: Quarantined) -> bool:
    """Discard an entry, unless a redrive would count it."""
    try:
        registry = read_registry(table)
        return discard(table, entry, plan_of(registry), Origins(table.name, registry.source or None))
    except InvalidArgumentError:
        return False


class Sharing:
    """Processes that share a quota, which is never exceeded."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._granted: Counter[str] = Counter()

    def acts(self) -> Iterable[Act]:
        return [(2, self._ask)]

    def wrong(self) -> list[str]:
        limit = _QUOTA.limit
        return [f"quota: {n} calls in {sk} of at most {limit}" for sk, n in self._granted.items() if n > limit]

    def _ask(self) -> None:
        def work(table: Table) -> bool:
            found = table.remembered.setdefault("leases", Leases(table, _QUOTA, {}))
            granted = False
            for _ in range(self._engine.rng.randint(1, 5)):
                if found.take():
                    granted = True
                    # One period for sure: no clock error is allowed for.
                    self._granted[_QUOTA._period(table.clock()).sk] += 1
            return granted

        self._engine.call(work, self._engine.noting(features.LEASES, features.EVERYTHING))
