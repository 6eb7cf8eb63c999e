"""What a backfill opens: the next generations of some declarations, and where they begin to count."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from dynamodb_counters._declarations import Aggregate, Declaration
from dynamodb_counters._declarations.generations import base_name, generation
from dynamodb_counters._stream.control import Control
from dynamodb_counters.errors import BackfillError


@dataclass(frozen=True, slots=True)
class Opening:
    """The generations that a run fills, and those of them that the scan counts; the others look at these."""

    generations: tuple[Declaration, ...]
    scanned: tuple[str, ...]


def opening(
    names: Collection[str],
    declared: Iterable[Declaration],
    folded: Iterable[Declaration],
    control: Control,
    number: int,
) -> Opening:
    """Open generation `number` of what is declared under some names, and of all that is declared over them."""
    by_name = {declaration.name: declaration for declaration in declared}
    for name in names:
        if name not in by_name:
            known = ", ".join(sorted(by_name)) or "none"
            raise BackfillError(f"invalid name={name!r}: expected a declaration of the deployed stack: {known}")
    read = {declaration.name: declaration for declaration in folded}
    built: dict[str, Declaration] = {}

    def build(name: str) -> Declaration:
        declaration = by_name[name]
        if name not in built:
            source = declaration.source
            if isinstance(source, Aggregate):
                own = _is_over(by_name[source.name], names, by_name) if source.name in by_name else False
                below = build(source.name) if own else read.get(_read_name(source.name, control))
                if not isinstance(below, Aggregate):
                    raise BackfillError(f"{name!r} counts {source.name!r}, which nothing counts: backfill that, too")
                source = below
            built[name] = generation(declaration, number, source)
        return built[name]

    for name, declaration in by_name.items():
        if _is_over(declaration, names, by_name):
            build(name)
    filled = {declaration.name for declaration in built.values()}
    scanned = [declaration.name for declaration in built.values() if declaration.source.name not in filled]
    return Opening(tuple(built[name] for name in sorted(built)), tuple(sorted(scanned)))


def _is_over(declaration: Declaration, names: Collection[str], by_name: dict[str, Declaration]) -> bool:
    """Whether a declaration is one of some, or looks at one of them."""
    if declaration.name in names:
        return True
    source = declaration.source
    return isinstance(source, Aggregate) and _is_over(by_name.get(source.name, source), names, by_name)


def _read_name(name: str, control: Control) -> str:
    number = control.reads.get(base_name(name), 0)
    return f"{name}~{number}" if number else name
