"""The runtime's safety mechanisms: how each one is switched off, and which test must notice.

A module for each part of the runtime has them as text. `==` names a file of the runtime. In each mutation, `*` is the
name, `-` are the lines that it takes out of that file, `+` those that it puts in their place, `?` is the test. The
first and the last line may be parts of lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from simulation.mutations.backfill import BACKFILL
from simulation.mutations.commit import COMMIT
from simulation.mutations.erase import ERASE
from simulation.mutations.explain import EXPLAIN
from simulation.mutations.fold import FOLD
from simulation.mutations.handlers import HANDLERS
from simulation.mutations.registry import REGISTRY
from simulation.mutations.writes import WRITES

_RUNTIME: Final = Path("lambdas/dynamodb_counters")


@dataclass(frozen=True, slots=True)
class Mutation:
    """A mechanism, the text in a file of the runtime that switches it off, and the test that must notice."""

    name: str
    file: str
    old: str
    new: str
    test: str


def mutate(mutation: Mutation, root: Path) -> None:
    """Apply a mutation to a copy of the project; LookupError unless its text is there exactly once."""
    file = root / _RUNTIME / mutation.file
    text = file.read_text()
    if text.count(mutation.old) != 1:
        raise LookupError(f"{mutation.name}: {mutation.file} has {text.count(mutation.old)} times {mutation.old!r}")
    file.unlink()  # It may be a link to what others read.
    file.write_text(text.replace(mutation.old, mutation.new))


def _read(text: str) -> Iterator[Mutation]:
    file = name = ""
    old: list[str] = []
    new: list[str] = []
    for line in text.strip().split("\n"):
        mark, _, rest = line.partition(" ")
        match mark:
            case "==":
                file = rest
            case "*":
                name, old, new = rest, [], []
            case "-":
                old.append(rest)
            case "+":
                new.append(rest)
            case "?":
                yield Mutation(name, file, "\n".join(old), "\n".join(new), rest)


MUTATIONS: Final = tuple(
    mutation
    for text in (BACKFILL, ERASE, EXPLAIN, FOLD, HANDLERS, COMMIT, REGISTRY, WRITES)
    for mutation in _read(text)
)
