"""Opening of a backfill: the next generations of some declarations, and where they begin to count."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from dynamodb_counters._changes.meaning import same_meaning
from dynamodb_counters._control.control import Control
from dynamodb_counters._declarations import Aggregate, Declaration
from dynamodb_counters._declarations.composites import with_parts
from dynamodb_counters._declarations.generations import generation, read_name, with_below
from dynamodb_counters.errors import BackfillError


@dataclass(frozen=True, slots=True)
class Opening:
    """The generations that a run fills, and those it has `scanned`: others look at these alone, and carry no tally."""

    generations: tuple[Declaration, ...]
    scanned: tuple[str, ...]


def wanted(
    names: Collection[str], seen: Control, declared: Collection[Declaration], folded: Collection[Declaration]
) -> set[str]:
    """Names to backfill: those given, or all that do not count everything; and such sources of them."""
    known = {declaration.name: declaration for declaration in folded}
    unfinished = {name for name, status in seen.statuses.items() if not status.whole}
    for declaration in declared:
        held = known.get(read_name(declaration.name, seen.reads))
        if held is None or not same_meaning(declaration, held):
            unfinished.add(declaration.name)
    left = unfinished & {declaration.name for declaration in declared}
    found = with_parts(names, declared) or left
    for declaration in declared:
        if declaration.name in found:
            found |= {each.name for each in with_below(declaration)} & left
    return found


def opening(
    names: Collection[str],
    declared: Iterable[Declaration],
    folded: Iterable[Declaration],
    control: Control,
    number: int,
    *,
    coming: Iterable[Declaration] = (),
) -> Opening:
    """Open generation `number` of what is declared under some names, and of all that is declared over them."""
    # Declarations that are `coming` are counted from an era on that is to begin, and can be incremented before.
    by_name = {declaration.name: declaration for declaration in declared}
    for name in names:
        if name not in by_name:
            known = ", ".join(sorted(by_name)) or "none"
            raise BackfillError(f"invalid name={name!r}: expected a declaration of the deployed stack: {known}")
    read = {declaration.name: declaration for declaration in folded}
    incremented = {declaration.name: declaration for declaration in coming} | read
    opened = [name for name, declaration in by_name.items() if _is_over(declaration, names, by_name)]
    built: dict[str, Declaration] = {}

    def build(name: str) -> Declaration:
        declaration = by_name[name]
        if name not in built:
            source = declaration.source
            if isinstance(source, Aggregate):
                below = build(source.name) if source.name in opened else read.get(read_name(source.name, control.reads))
                if not isinstance(below, Aggregate):
                    raise BackfillError(f"{name!r} counts {source.name!r}, which nothing counts: backfill that, too")
                source = below
            before = incremented.get(read_name(name, control.reads))
            carries = replace(before, _carries=None) if type(before) is type(declaration) else None
            built[name] = generation(declaration, number, source, carries)
        return built[name]

    for name in opened:
        build(name)
    filled = {declaration.name for declaration in built.values()}
    scanned = [
        declaration.name
        for declaration in built.values()
        if declaration.source.name not in filled or declaration._carries is not None
    ]
    return Opening(tuple(built[name] for name in sorted(built)), tuple(sorted(scanned)))


def _is_over(declaration: Declaration, names: Collection[str], by_name: dict[str, Declaration]) -> bool:
    """Whether a declaration is one of some, or looks at one of them."""
    if declaration.name in names:
        return True
    source = declaration.source
    return isinstance(source, Aggregate) and _is_over(by_name.get(source.name, source), names, by_name)
