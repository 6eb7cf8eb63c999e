"""The operators: increments, resets, erasures, redrives; edits by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from counters_cli.backfill import Backfill
from counters_lambda.counting.counted_names import plan_of
from dynamodb_counters._declarations import Declaration, Event
from dynamodb_counters._erasure import Eraser
from dynamodb_counters._fold.records import Origins
from dynamodb_counters._quarantine import Quarantined, discard, list_quarantined, redrive
from dynamodb_counters._registry import read_registry
from dynamodb_counters._table import Table
from dynamodb_counters._writes.direct_counts import increment, reset
from dynamodb_counters.errors import InvalidArgumentError
from simulation.oracle.layout import is_image, is_waiting
from simulation.pairs import coverage, features
from simulation.pairs.declared import STOCK, TAP, VISIT, with_below
from simulation.pairs.engine import Act, Engine
from simulation.pairs.ledger import Purpose
from simulation.pairs.truth import ENTRY, LATER
from simulation.pairs.writers import PAGES

COUNTED: Final = "group counted directly"
_GROUPS: Final = [{"aisle": aisle, "sku": sku} for aisle in "mn" for sku in "xyz"]


class Increments:
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
        event: Event = draw.choice((VISIT, self._engine.sources.get("tap", TAP)))
        values: dict[str, Any] = {"page": draw.choice(PAGES)} if event is VISIT else {"device": draw.choice("kl")}
        if event is VISIT and draw.random() < 0.6:
            values["id"] = str(draw.randrange(6))
        counts: Literal["keep", "take_back"] = draw.choice(("keep", "take_back"))
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
        return [(6 if is_filling else 2, self._redrive), (2, self._discard)]

    def redrive_all(self) -> int:
        """Redrive every image, and every delta that an item could not take."""
        waiting = list(list_quarantined(self._engine.table(), redriven=False))
        waiting = [entry for entry in waiting if is_image(entry.key[1]) or "numbers" in entry.content]
        for entry in sorted(waiting, key=lambda entry: entry.key):
            redrive(self._engine.table(), entry)
        return len(waiting)

    def discard_some(self) -> None:
        """Discard some of what waits, of names that were added late, too: in turmoil, others come first."""
        for _ in self._waiting()[::4]:
            self._discard()
        self._engine.go()

    def _waiting(self) -> list[Quarantined]:
        waiting = list_quarantined(self._engine.table(), redriven=False)
        return sorted((entry for entry in waiting if is_image(entry.key[1])), key=lambda entry: entry.key)

    def _redrive(self) -> None:
        if waiting := self._waiting():
            entry = self._engine.rng.choice(waiting)
            self._engine.call(lambda table: redrive(table, entry), self._noting(features.REDRIVEN, entry))

    def _discard(self) -> None:
        if waiting := self._waiting():
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


_NONSENSE: Final[tuple[dict[str, Any], ...]] = (
    {"S": "?"},
    {"N": "7"},
    {"B": b"\x00\xff"},
    {"BOOL": True},
    {"NULL": True},
    {"M": {}},
)


class Spoiling:
    """Spoils items of a table, and knows of which names nothing is certain any more."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._budget = 3 if engine.swarm is not None and engine.swarm.spoils else 0
        self._names: set[str] = set()

    def acts(self) -> Iterable[Act]:
        if self._budget:
            yield 4, self._mislead

    def is_spoiled(self, declaration: Declaration) -> bool:
        return not self._names.isdisjoint(level.name for level in with_below(declaration))

    def _mislead(self) -> None:
        """Spoil one item, if there is one."""
        engine = self._engine
        items = sorted(engine.backend.items(), key=lambda item: (item["pk"]["S"], item["sk"]["S"]))
        kinds = {
            "quarantine entry": [item for item in items if is_waiting(item)],
            "watermark": [item for item in items if _watermarks(item) and not item["pk"]["S"].startswith("CHECK")],
            "definition": _countless([item for item in items if item["sk"]["S"].startswith(ENTRY)]),
        }
        kind = engine.rng.choice(sorted(name for name, choices in kinds.items() if choices) or [""])
        if not kind:
            return
        self._budget -= 1
        engine.reached[f"{coverage.SPOILED}: {kind}"] += 1
        item = dict(engine.rng.choice(kinds[kind]))
        if kind == "watermark":
            self._names.add(item["_type"]["S"])
            self._edit(item, engine.rng.choice(_watermarks(item)))
        elif kind == "quarantine entry":
            self._names |= {*item.get("names", {}).get("SS", engine.registered())}
            self._edit(item, engine.rng.choice([name for name in ("record", "names", "sum") if name in item]))
        else:
            self._names.add(item["sk"]["S"].removeprefix(ENTRY))
            self._put({**item, "definition": {"S": LATER}})

    def _edit(self, item: Mapping[str, Any], name: str) -> None:
        # A binary watermark is of the right type, and a false one looks like a true one.
        nonsense = [value for value in _NONSENSE if value.keys() != item[name].keys() or "S" in value]
        self._put({**item, name: self._engine.rng.choice(nonsense)})

    def _put(self, item: Mapping[str, Any]) -> None:
        self._engine.backend.client.put_item(TableName=self._engine.backend.name, Item=item)


def _countless(entries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those that nothing else counts: a version reads what counts another only if it reads that, too."""
    texts = [item["definition"]["S"] for item in entries]
    names = [f'"{item["sk"]["S"].removeprefix(ENTRY)}"' for item in entries]
    return [
        item
        for item, name in zip(entries, names, strict=True)
        if not item["watches"]["S"] and sum(name in text for text in texts) < 2
    ]


def _watermarks(item: Mapping[str, Any]) -> list[str]:
    return sorted(name for name in item if name.startswith("_w"))
