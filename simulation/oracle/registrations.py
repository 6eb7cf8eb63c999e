"""Names that a table counts, each by the definition that it was first registered with: read from the registry's items.

Nothing may change these: later deployments only add names that wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dynamodb_counters._declarations.codec import decode, definition
from simulation.memory.memory_stream import Record
from simulation.oracle.specs import Spec, declarations

UNREADABLE: Final = '[{"": "Later"}]'
"""A definition by a later version."""

_PREFIX: Final = "DECLARED#"


class Registrations:
    """The registry of a table, from the records of its items.

    `specs` are those that count from the first record on, `later` the names that wait, `unreadable` those that may have
    gone stale, and `wrong` is what must not be so.
    """

    def __init__(self, records: Iterable[tuple[str, Record]], deployed: Sequence[Sequence[Spec]]) -> None:
        self.specs: Sequence[Spec] = ()
        self.later: set[str] = set()
        self.unreadable: set[str] = set()
        self.wrong: list[str] = []
        self._texts: dict[str, str] = {}
        states: dict[str, str] = {}
        for _, record in records:
            key, change = record["dynamodb"]["Keys"], record["dynamodb"]
            if is_entry(key):
                name = key["sk"]["S"].removeprefix(_PREFIX)
                state = self._state(name, change)
                if states.setdefault(name, state) != state and (state != "stale" or name not in self.unreadable):
                    self.wrong.append(f"registry: {name} was {states[name]} and became {state}")
        self.later = {name for name, state in states.items() if state == "waiting"}
        complete = {name: decode(self._texts[name])[0] for name in states.keys() - self.later}
        for specs in deployed:
            if {each.name: definition(each) for each in declarations(specs)} == complete:
                self.specs = specs
        if states and not self.specs:
            self.wrong.append(f"registry: {sorted(complete)} were never deployed together")

    def _state(self, name: str, change: Mapping[str, Any]) -> str:
        new = change.get("NewImage") or {"definition": {"S": ""}, "state": {"S": "gone"}}
        text = new["definition"]["S"]
        if text == UNREADABLE:
            self.unreadable.add(name)
        elif text != self._texts.setdefault(name, text):
            self.wrong.append(f"registry: {name} was {self._texts[name]} and became {text}")
        return str(new["state"]["S"])


def is_entry(key: Mapping[str, Any]) -> bool:
    """Whether an item with this key is an entry of the registry."""
    return key["pk"] == {"S": "CHECKPOINT#"} and bool(key["sk"]["S"].startswith(_PREFIX))
