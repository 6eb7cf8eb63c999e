"""A replay: the state after each step, kept as what changed since the step before, and what happened."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

State = dict[str, Any]

KINDS: Final = (
    "begin",
    "write",
    "batch",
    "update",
    "refused",
    "end of batch",
    "kill",
    "zombie",
    "redeliver",
    "split",
    "lost",
    "end",
)


@dataclass
class Texts:
    """Every sentence once, by its number."""

    numbers: dict[str, int] = field(default_factory=dict)

    def of(self, text: str) -> list[int]:
        return [self.numbers.setdefault(sentence, len(self.numbers)) for sentence in re.split(r"(?<=[.]) ", text)]


@dataclass
class Tape:
    """The steps of one run; `states` has each whole, `frames` what changed, with the kind and the text of the step."""

    texts: Texts
    states: list[State] = field(default_factory=list)
    frames: list[State] = field(default_factory=list)

    def add(self, kind: str, text: str, state: State) -> None:
        before = self.states[-1] if self.states else {}
        changed = {name: value for name, value in state.items() if before.get(name) != value}
        self.states.append(state)
        self.frames.append({"k": KINDS.index(kind), "x": self.texts.of(text), **changed})
