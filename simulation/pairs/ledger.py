"""Changes of a table that its events do not show, heard where requests reach it, below all faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeAlias

Key: TypeAlias = tuple[str, str]
Image: TypeAlias = Mapping[str, Any]
Numbers: TypeAlias = dict[str, Decimal]
Place: TypeAlias = tuple[str, tuple[str, ...]]
"""A name and one of its groups."""


@dataclass(frozen=True)
class Purpose:
    """Why a request is sent: `base` is the counter that an increment or a reset names."""

    number: int = 0
    base: str = ""


@dataclass
class Ledger:
    """Direct changes of a table.

    `direct` has by counter and item what increments added and resets took, each call once however often it lands, until
    the item is deleted. `spoiled` is what was added to a group by no event, and no repair has taken back, by the run
    that had filled its name; of the groups in `losses`, items were deleted.
    """

    direct: dict[tuple[str, Key], Numbers] = field(default_factory=dict)
    spoiled: dict[tuple[Place, str], Numbers] = field(default_factory=dict)
    losses: set[Place] = field(default_factory=set)
    _once: set[tuple[int, Key]] = field(default_factory=set)

    def hear(self, purpose: Purpose, key: Key, before: Image, after: Image) -> None:
        """Note that an update has landed."""
        if not purpose.base or (purpose.number, key) in self._once:
            return
        self._once.add((purpose.number, key))
        added = {name: _number(after, name) - _number(before, name) for name in {**before, **after} if _counts(name)}
        totals = self.direct.setdefault((purpose.base, key), {})
        for name, number in added.items():
            totals[name] = totals.get(name, Decimal(0)) + number

    def forget(self, key: Key) -> None:
        """Note that an item was deleted."""
        for place in [place for place in self.direct if place[1] == key]:
            del self.direct[place]

    def spoil(self, place: Place, run: str, numbers: Numbers) -> None:
        """Add to a group what no source shows, or take it back as a repair does."""
        totals = self.spoiled.setdefault((place, run), {})
        for name, number in numbers.items():
            totals[name] = totals.get(name, Decimal(0)) + number

    def repair_lost(self) -> None:
        """Two repairs have made groups right whose items were deleted."""
        for place, run in [*self.spoiled]:
            if place in self.losses:
                del self.spoiled[place, run]
        self.losses.clear()


class HeardClient:
    """The table's client, which notes in the ledger what lands."""

    def __init__(self, client: Any, name: str, ledger: Ledger, purpose: Callable[[], Purpose]) -> None:
        self._client, self._name, self._ledger, self._purpose = client, name, ledger, purpose
        self.exceptions, self.meta = client.exceptions, client.meta

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)
        if name == "delete_item":
            return lambda **request: self._delete(call, request)
        if name != "update_item":
            return call
        # The purpose of now: the request may land when another actor is at work.
        purpose = self._purpose()
        return lambda **request: self._update(call, purpose, request)

    def _delete(self, call: Callable[..., Any], request: dict[str, Any]) -> Any:
        answer = call(**request)
        self._ledger.forget(_key_of(request))
        return answer

    def _update(self, call: Callable[..., Any], purpose: Purpose, request: dict[str, Any]) -> Any:
        if not purpose.base:
            return call(**request)
        before = self._read(request["Key"])
        try:
            return call(**request)
        finally:
            # A client that has sent it again, as an answer was lost, is refused what has landed.
            if (after := self._read(request["Key"])) != before:
                self._ledger.hear(purpose, _key_of(request), before, after)

    def _read(self, key: Mapping[str, Any]) -> Image:
        answer = self._client.get_item(TableName=self._name, Key=key, ConsistentRead=True)
        item: Image = answer.get("Item", {})
        return item


def _key_of(request: Mapping[str, Any]) -> Key:
    return request["Key"]["pk"]["S"], request["Key"]["sk"]["S"]


def _counts(name: str) -> bool:
    """Return whether an attribute is a measure's, by its name alone."""
    return name not in ("pk", "sk", "ttl") and not name.startswith("_")


def _number(item: Image, name: str) -> Decimal:
    value = item.get(name, {})
    return Decimal(value["N"]) if "N" in value else Decimal(0)
