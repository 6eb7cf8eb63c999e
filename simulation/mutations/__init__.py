"""The runtime's safety mechanisms: how each one is switched off, and which test must notice.

``written.txt`` has them. `==` names a file of the runtime. In each mutation, `*` is the name, `-` are the lines that
it takes out of that file, `+` those that it puts in their place. The first and the last line may be parts of lines; a
part of one line that gives way to another is written as `~ old → new`. `?` is the test of the mutations before it.

What a program can make, it makes: `generated` changes conditions, operands, constants and statements of the runtime.
``guards.txt`` names the changes of which each must be noticed, by file and function.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from simulation.mutations.generated import Generated, generate

RUNTIME: Final = Path("lambdas")
_FOLDER: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Mutation:
    """A mechanism, the text in a file of the runtime that switches it off, and the test that must notice."""

    name: str
    file: str
    old: str
    new: str
    test: str

    def apply(self, source: str) -> str:
        """Return the text of the file without the mechanism; LookupError unless it is there exactly once."""
        if source.count(self.old) != 1:
            raise LookupError(f"{self.name}: {self.file} has {source.count(self.old)} times {self.old!r}")
        return source.replace(self.old, self.new)


def mutate(mutation: Mutation | Generated, root: Path) -> None:
    """Apply a mutation to a copy of the project; LookupError if it cannot be applied."""
    file = root / RUNTIME / mutation.file
    text = mutation.apply(file.read_text())
    file.unlink()  # It may be a link to what others read.
    file.write_text(text)


def generated(root: Path) -> Iterator[Generated]:
    """Yield all mutations that are made of the runtime's own source."""
    for file in sorted((root / RUNTIME).rglob("*.py")):
        yield from generate(str(file.relative_to(root / RUNTIME)), file.read_text())


def _read() -> Iterator[Mutation]:
    file = ""
    entries: list[tuple[str, list[str], list[str]]] = []
    for line in (_FOLDER / "written.txt").read_text(encoding="utf-8").splitlines():
        mark, _, rest = line.partition(" ")
        match mark:
            case "==":
                file = rest
            case "*":
                entries.append((rest, [], []))
            case "~":
                old, _, new = rest.partition(" → ")
                entries[-1][1].append(old)
                entries[-1][2].append(new)
            case "-":
                entries[-1][1].append(rest)
            case "+":
                entries[-1][2].append(rest)
            case "?":
                for name, before, after in entries:
                    yield Mutation(name, file, "\n".join(before), "\n".join(after), rest)
                entries.clear()


def _read_guards() -> Iterator[str]:
    file = ""
    for line in (_FOLDER / "guards.txt").read_text(encoding="utf-8").splitlines():
        function, _, changes = line.partition(": ")
        if changes:
            yield from (f"{file} {function}: {change}" for change in changes.split("; "))
        else:
            file = line.removeprefix("== ")


MUTATIONS: Final = tuple(_read())
GUARDS: Final = frozenset(_read_guards())
