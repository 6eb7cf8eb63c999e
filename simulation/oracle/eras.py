"""Which declarations were in force when: read from the table's history of deployments, which is checked too."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from dynamodb_counters._declarations.codec import decode
from dynamodb_counters._declarations.groups import definition
from simulation.memory.memory_stream import Record
from simulation.oracle.specs import Spec, declarations

decoded: Final = lru_cache(256)(decode)
"""Declarations of a text; schedules read the same ones thousands of times."""

HISTORY_KEY: Final = {"pk": {"S": "CHECKPOINT#"}, "sk": {"S": "DEPLOYMENTS"}}

_FRESH: Final = 60
"""A process may rely for so many seconds on what it has read."""

_OUTLIVED: Final = 48 * 3600
"""No record that is older is counted, so that no entry is needed that was superseded earlier."""


@dataclass(frozen=True)
class Era:
    """Declarations and the second from which they are in force; without specs, they are unknown."""

    valid_from: int
    digest: str
    specs: Sequence[Spec] | None


class Eras:
    """All eras of a table, from the records of its history item, and what is wrong with that history.

    Records that are not `dated` when they are written do not show whether an entry was appended in time.
    """

    def __init__(
        self, records: Iterable[tuple[str, Record]], deployed: Sequence[Sequence[Spec]], *, dated: bool = True
    ) -> None:
        self._dated = dated
        self._specs: dict[str, Sequence[Spec]] = {}
        self.wrong: list[str] = []
        self.spoiled = False
        entries: list[tuple[int, str]] = []
        for _, record in records:
            keys, change = record["dynamodb"]["Keys"], record["dynamodb"]
            if keys["pk"] != HISTORY_KEY["pk"]:
                continue
            new = change.get("NewImage") or {}
            if keys["sk"]["S"].startswith("DEPLOYMENT#") and "declarations" in new:
                self._note(keys["sk"]["S"].removeprefix("DEPLOYMENT#"), new, deployed)
            elif keys == HISTORY_KEY:
                entries = self._moved(entries, change)
        eras = [Era(valid_from, digest, self._specs.get(digest)) for valid_from, digest in entries]
        # As long as no version has met the table that keeps a history, there is one deployment.
        self._eras = eras or [Era(0, "", deployed[0])]

    def __len__(self) -> int:
        return len(self._eras)

    def specs_at(self, created: float) -> Sequence[Spec] | None:
        """The specs in force at that time: of the last entry that is no later."""
        index = bisect_right([era.valid_from for era in self._eras], created) - 1
        return self._eras[index].specs if index >= 0 else None

    def after(self, known: Sequence[tuple[int, str]]) -> float:
        """When the first era begins that a copy of the history does not know."""
        entries = [(era.valid_from, era.digest) for era in self._eras]
        unknown = [entry for entry in entries if known and entry not in known and entry[0] >= known[-1][0]]
        return unknown[0][0] if unknown else math.inf

    def _note(self, digest: str, item: Mapping[str, Any], deployed: Sequence[Sequence[Spec]]) -> None:
        try:
            stored = sorted(decoded(item["declarations"]["S"]), key=lambda declared: declared.name)
        except (KeyError, ValueError):
            self.spoiled = True
            return
        for specs in deployed:
            defined = map(definition, declarations(specs))
            if sorted(defined, key=lambda declared: declared.name) == stored:
                self._specs[digest] = specs
                return
        self.wrong.append(f"deployments: {digest} was never deployed")

    def _moved(self, known: list[tuple[int, str]], change: Mapping[str, Any]) -> list[tuple[int, str]]:
        """All entries there ever were, after a change of the item: one is appended, what has outlived may go."""
        try:
            now = entries_of(change.get("NewImage") or {})
            before = entries_of(change.get("OldImage") or {})
        except (KeyError, ValueError):
            self.spoiled = True
            return known
        if not now or before != known[len(known) - len(before) :] or (not before and known):
            # The history was edited or deleted by hand, or begun again after that.
            self.spoiled = True
            return now or known
        landed = change["ApproximateCreationDateTime"]
        kept, added = now[:-1], now[-1]
        # An entry that would have come into force at the same time never does.
        before = [entry for entry in before if entry[0] != added[0]]
        known = [entry for entry in known if entry[0] != added[0]]
        gone = len(before) - len(kept)
        if kept != before[gone:]:
            self.wrong.append(f"deployments: {before} became {now}")
        for superseded_at, _ in [*before[1:], added][:gone]:
            if superseded_at + _OUTLIVED > landed:
                self.wrong.append(f"deployments: {before} became {now} too early, at {landed}")
        late = self._dated and added[0] <= landed + _FRESH
        if before and (added[0] < before[-1][0] or late):
            self.wrong.append(f"deployments: {added} was appended to {before} at {landed}")
        return [*known, added]


def entries_of(item: Mapping[str, Any]) -> list[tuple[int, str]]:
    """Entries of a history item, oldest first: when each is in force from, and its deployment's digest."""
    texts = item["history"]["S"].split() if item else []
    return [(int(valid_from), digest) for valid_from, _, digest in (text.partition(":") for text in texts)]
