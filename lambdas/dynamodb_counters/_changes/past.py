"""The past: what a table's deployments have ever folded, and where a declaration that is new begins. Pure.

Items outlive their declaration. A declaration that is new to the table begins in its own items if it comes back as it
was; in items as declared if no declaration ever had such keys or its name; and in a generation of its own otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dynamodb_counters._changes.meaning import same_meaning
from dynamodb_counters._declarations.consistency import Declaration, share_items
from dynamodb_counters._declarations.generations import base_name, generation, generation_number
from dynamodb_counters._declarations.sources import Event


@dataclass(frozen=True, slots=True)
class Past:
    """The deployments that a table has stored, of which those that cannot be read are None."""

    deployments: tuple[tuple[Declaration, ...] | None, ...] = ()
    numbered: int = 0
    """The last generation's number, as far as the table shows."""

    @property
    def last_number(self) -> int:
        """No generation has a greater number."""
        return max([self.numbered, *(generation_number(each.name) for each in self._declarations())])

    def number(self, declared: Declaration, looks_at: str, *, keeps: bool) -> int:
        """The generation in which a declaration begins that is new to the table and `looks_at` an aggregate, or ""."""
        own = [each for each in self._declarations() if base_name(each.name) == declared.name]
        last = self._last_alone(declared.name)
        held = [each for each in own if generation_number(each.name) == last]
        is_back = all(same_meaning(each, declared) for each in held) and (
            not looks_at or any(each.source.name == looks_at for each in held)
        )
        goes_on = not own or keeps or is_back
        if None in self.deployments or not goes_on or self.is_taken(generation(declared, last)):
            return self.last_number + 1
        return last

    def is_taken(self, declared: Declaration) -> bool:
        """Whether there may be items of another declaration, or of an event, that have its keys or its name."""
        name = base_name(declared.name)
        for other in self._declarations():
            source = other.source
            if isinstance(source, Event) and (source.name == name or share_items(source, declared)):
                return True
            if base_name(other.name) != name and share_items(other, declared):
                return True
        return False

    def _declarations(self) -> Iterable[Declaration]:
        return (each for declarations in self.deployments for each in declarations or ())

    def _last_alone(self, name: str) -> int:
        """The last generation of a name that was counted without another: as a backfill counts."""
        found = [0]
        for declarations in self.deployments:
            numbers = [generation_number(each.name) for each in declarations or () if base_name(each.name) == name]
            found += numbers if len(numbers) == 1 else []
        return max(found)
