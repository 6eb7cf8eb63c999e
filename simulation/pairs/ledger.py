"""Changes of a table that its events do not show, heard where requests reach it, below all faults."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, TypeAlias

from dynamodb_counters._control.run_items import RUN_SK_PREFIX
from dynamodb_counters._items.table_schema import CHECKPOINT_PREFIX

Key: TypeAlias = tuple[str, str]
Image: TypeAlias = Mapping[str, Any]
Numbers: TypeAlias = dict[str, Decimal]

_GENERATIONS: Final = {"pk": {"S": "CHECKPOINT#"}, "sk": {"S": "GENERATIONS"}}


@dataclass(frozen=True)
class Purpose:
    """Why a request is sent: `base` is the declaration that an increment or a reset names."""

    number: int = 0
    base: str = ""
    keeps_counts: bool = False


@dataclass
class Ledger:
    """Direct changes of a table.

    `direct` has by declaration and item what increments added and resets took, each call once however often it lands;
    `doomed` the items that an erasure has marked to go with their counts kept, and by which time. `opened` has,
    of each generation that a run fills, the ones that readers used when it was opened; `replaced` the one that readers
    used before it. `spoiled` is what was added to the items of a generation by no event, and no repair has taken back;
    of the groups in `lost`, items were deleted.
    """

    direct: dict[tuple[str, Key], Numbers] = field(default_factory=dict)
    doomed: set[tuple[str, str, str]] = field(default_factory=set)
    opened: dict[int, dict[str, int]] = field(default_factory=dict)
    spoiled: dict[tuple[str, tuple[str, ...]], Numbers] = field(default_factory=dict)
    replaced: dict[tuple[str, int], int] = field(default_factory=dict)
    lost: set[tuple[str, tuple[str, ...]]] = field(default_factory=set)
    _once: set[tuple[int, Key]] = field(default_factory=set)

    def hear(self, purpose: Purpose, key: Key, before: Image, after: Image) -> None:
        """An update has landed."""
        if purpose.keeps_counts and before.get("ttl") != after.get("ttl"):
            self.doomed.add((*key, after["ttl"]["N"]))
        if not purpose.base or (purpose.number, key) in self._once:
            return
        self._once.add((purpose.number, key))
        added = {name: _number(after, name) - _number(before, name) for name in {**before, **after} if _counts(name)}
        held = self.direct.setdefault((purpose.base, key), {})
        for name, number in added.items():
            held[name] = held.get(name, Decimal(0)) + number

    def spoil(self, place: tuple[str, tuple[str, ...]], numbers: Numbers) -> None:
        """Add to a group of a generation what no source shows, or take it back as a repair does."""
        held = self.spoiled.setdefault(place, {})
        for name, number in numbers.items():
            held[name] = held.get(name, Decimal(0)) + number

    def repair_lost(self) -> None:
        """Two repairs have made groups right whose items were deleted."""
        for place in self.lost:
            self.spoiled.pop(place, None)
        self.lost.clear()

    def hear_opening(self, item: Image, generations: Image) -> None:
        """A run is opened."""
        reads = _reads(generations)
        self.opened.setdefault(int(json.loads(item["names"]["S"])[0].partition("~")[2]), reads)

    def hear_switch(self, before: Image, after: Image) -> None:
        """Readers use other generations."""
        reads = _reads(before)
        self.replaced |= {
            (name, now): reads.get(name, 0) for name, now in _reads(after).items() if now != reads.get(name, 0)
        }


class HeardClient:
    """The table's client, which notes in the ledger what lands."""

    def __init__(self, client: Any, name: str, ledger: Ledger, purpose: Callable[[], Purpose]) -> None:
        self._client, self._name, self._ledger, self._purpose = client, name, ledger, purpose
        self.exceptions, self.meta = client.exceptions, client.meta

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)
        if name not in ("update_item", "transact_write_items"):
            return call
        # The purpose of now: the request may land when another actor is at work.
        purpose = self._purpose()
        hear = self._update if name == "update_item" else self._transact
        return lambda **request: hear(call, purpose, request)

    def _update(self, call: Callable[..., Any], purpose: Purpose, request: dict[str, Any]) -> Any:
        if not purpose.base and not purpose.keeps_counts:
            return call(**request)
        before = self._read(request["Key"])
        try:
            return call(**request)
        finally:
            # A client that has sent it again, as an answer was lost, is refused what has landed.
            if (after := self._read(request["Key"])) != before:
                key = request["Key"]["pk"]["S"], request["Key"]["sk"]["S"]
                self._ledger.hear(purpose, key, before, after)

    def _transact(self, call: Callable[..., Any], _: Purpose, request: dict[str, Any]) -> Any:
        puts = [write["Put"]["Item"] for write in request["TransactItems"] if "Put" in write]
        opened = [item for item in puts if _is_opened(item)]
        switches = [item for item in puts if item["pk"] == _GENERATIONS["pk"] and item["sk"] == _GENERATIONS["sk"]]
        generations = self._read(_GENERATIONS) if opened or switches else {}
        try:
            return call(**request)
        finally:
            for item in opened:
                if self._read({name: item[name] for name in ("pk", "sk")}):
                    self._ledger.hear_opening(item, generations)
            for item in switches:
                if self._read(_GENERATIONS) == item:
                    self._ledger.hear_switch(generations, item)

    def _read(self, key: Mapping[str, Any]) -> Image:
        found = self._client.get_item(TableName=self._name, Key=key, ConsistentRead=True)
        item: Image = found.get("Item", {})
        return item


def _reads(generations: Image) -> dict[str, int]:
    statuses = json.loads(generations["status"]["S"]) if generations else {}
    return {name: status["reads"] for name, status in statuses.items()}


def _is_opened(item: Image) -> bool:
    is_run: bool = item["sk"]["S"].startswith(RUN_SK_PREFIX) and item["pk"]["S"] == CHECKPOINT_PREFIX
    return is_run and bool(item["kind"] == {"S": "backfill"} and item["phase"] == {"S": "opening"})


def _counts(name: str) -> bool:
    """Whether an attribute is a measure's, by its name alone."""
    return name not in ("pk", "sk", "ttl") and not name.startswith("_")


def _number(item: Image, name: str) -> Decimal:
    value = item.get(name, {})
    return Decimal(value["N"]) if "N" in value else Decimal(0)
