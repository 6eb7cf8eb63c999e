"""Extremes of which only the largest or the smallest counts: values that cannot be it any more are not written.

No event of their source is taken back, so a value that is not the best by now never will be. A process knows the best
value of a group from what it has written itself; until then it writes what it has, which is an item too many.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from dynamodb_counters._fold.deltas import Delta
from dynamodb_counters._items.table_schema import PK, SK, TALLY_PREFIX
from dynamodb_counters._table import Remembered, Table

_MOST_KNOWN: Final = 100_000

_Group: TypeAlias = tuple[str, str]
"""The name of an aggregate and the partition key of a group's values."""


class BestValues(Remembered):
    """The best values of a table's groups, as far as one process knows them."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._known: dict[_Group, str] = {}

    def needed(self, deltas: Sequence[Delta]) -> list[Delta]:
        """Deltas without those of values that are not the best of their group, here or by what is known."""
        others = [delta for delta in deltas if not _is_value(delta)]
        best = _best(deltas).items() if len(others) < len(deltas) else ()
        return [*others, *(delta for group, (sk, delta) in best if self._is_better(delta, sk, group))]

    def learn(self, deltas: Iterable[Delta]) -> None:
        """Take note of deltas that were written."""
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        for group, (sk, delta) in _best(deltas).items():
            if self._is_better(delta, sk, group):
                self._known[group] = sk

    def _is_better(self, delta: Delta, sk: str, group: _Group) -> bool:
        known, choose = self._known.get(group), delta.layout.only
        return known is None or choose is None or choose(sk, known) == sk != known


def _is_value(delta: Delta) -> bool:
    """Whether a delta may be left out: tallies go with the counts of items that are there."""
    return delta.layout.only is not None and not any(name.startswith(TALLY_PREFIX) for name in delta.measures)


def _best(deltas: Iterable[Delta]) -> dict[_Group, tuple[str, Delta]]:
    found: dict[_Group, tuple[str, Delta]] = {}
    for delta in deltas:
        choose = delta.layout.only
        if choose is not None and _is_value(delta):
            key = delta.layout.key(delta.group, "")
            group = delta.layout.name, key[PK]
            if group not in found or choose(key[SK], found[group][0]) == key[SK]:
                found[group] = key[SK], delta
    return found
