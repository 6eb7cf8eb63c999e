"""Bookkeeping that is edited by hand: entries of the quarantine, watermarks, definitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dynamodb_counters._declarations import Declaration
from simulation.oracle.entries import is_waiting
from simulation.pairs import coverage
from simulation.pairs.cuts import ENTRY, UNREADABLE
from simulation.pairs.declared import with_below
from simulation.pairs.engine import Act, Engine

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
        self._left = 3 if engine.swarm is not None and engine.swarm.spoils else 0
        self._names: set[str] = set()

    def acts(self) -> Iterable[Act]:
        if self._left:
            yield 4, self._mislead

    def is_spoiled(self, declaration: Declaration) -> bool:
        return not self._names.isdisjoint(each.name for each in with_below(declaration))

    def _mislead(self) -> None:
        """Spoil one item, if there is one."""
        engine = self._engine
        items = sorted(engine.backend.items(), key=lambda item: (item["pk"]["S"], item["sk"]["S"]))
        kinds = {
            "quarantine entry": [item for item in items if is_waiting(item)],
            "watermark": [item for item in items if _watermarks(item) and not item["pk"]["S"].startswith("CHECK")],
            "definition": _countless([item for item in items if item["sk"]["S"].startswith(ENTRY)]),
        }
        kind = engine.rng.choice(sorted(name for name, found in kinds.items() if found) or [""])
        if not kind:
            return
        self._left -= 1
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
            self._put({**item, "definition": {"S": UNREADABLE}})

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
