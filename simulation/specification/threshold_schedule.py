"""Schedules for traces of thresholds: the group of the tally, watched, with limits, and with a notifier."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from dynamodb_counters._declarations import Aggregate, Threshold
from dynamodb_counters._writes.limits import set_limit
from simulation.notices import Bus, NotifierMapping
from simulation.pairs import features
from simulation.pairs.engine import Engine
from simulation.pairs.runs import SETTLED
from simulation.pairs.subjects import Subject
from simulation.specification.tally_schedule import GROUP, MEASURE, Shop, TallySchedule, Turns

_KINDS: Final[Sequence[dict[str, Any]]] = ({}, {"of": "limit"}, {"once": True})
_LEVELS: Final = (-5, 0, 2, 6, 15, 60, 200)
_SHARES: Final = (Decimal("0.5"), 1, Decimal("1.5"), 4)
_ENDS: Final = 3
_WRITES: Final = 4
_LIMITS: Final = (None, 4, 10, 40, 250)


class _Watched(Turns):
    """Turns of the group's definitions, whose threshold has other levels in each deployment."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._draw = random.Random(seed)
        self._kind = _KINDS[seed % len(_KINDS)]
        self._threshold = self._drawn()

    @property
    def definition(self) -> Aggregate:
        return replace(super().definition, _thresholds=(self._threshold,))

    @property
    def deployed(self) -> list[Subject]:
        return self.subjects

    def change(self, *, renames: bool = True) -> tuple[str, frozenset[str]]:
        self._threshold = self._drawn()
        # Levels may change without the definition.
        return super().change(renames=renames) if self._draw.random() < 0.6 else (features.REDEFINED, frozenset())

    def _drawn(self) -> Threshold:
        draw, known = self._draw, _SHARES if "of" in self._kind else _LEVELS
        return Threshold(
            "line",
            None,
            at=sorted(draw.sample(known, draw.randint(2, len(known)))),
            measure=MEASURE,
            direction=draw.choice(("up", "down", "both", "both")),
            burst=draw.choice(("all", "all", "highest")),
            **self._kind,
        )


class _WatchedShop(Shop):
    """Writers that set limits, too; and the notifier, whose EventBridge refuses events."""

    def __init__(self, engine: Engine, turns: Turns) -> None:
        super().__init__(engine, turns)
        self.notifier = NotifierMapping(self._backend.stream, engine.rng, Bus(engine.rng))

    def _others(self) -> Sequence[Callable[[], object]]:
        return *super()._others(), self._set_limit, self._set_limit, self.notifier.deliver

    def _set_limit(self) -> None:
        set_limit(self._table(), self._turns.definition, GROUP, self._random.choice(_LIMITS))


class ThresholdSchedule(TallySchedule):
    """Backfills of one group's redefinitions, with changes of its threshold, its limit, and its number."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, _Watched(seed), _WatchedShop)

    def _end(self) -> None:
        """Have the next generation report, and the notifier send what is left."""
        assert isinstance(self._shop, _WatchedShop)
        for _ in range(_ENDS):
            self._engine.clock.advance(SETTLED)
            for _ in range(_WRITES):
                self._shop.write()
            self._engine.go()
        while self._shop.notifier.deliver():
            pass
