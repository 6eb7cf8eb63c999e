"""Declarations that share a table: taken apart, and checked against each other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from dynamodb_counters._declarations.aggregates import Aggregate
from dynamodb_counters._declarations.composites import Distinct, Hierarchy
from dynamodb_counters._declarations.sources import Event, Items
from dynamodb_counters._declarations.windows import Window
from dynamodb_counters._items.key_templates import key_template
from dynamodb_counters._items.table_schema import MAX_PK_BYTES, QUARANTINE_PREFIX
from dynamodb_counters.errors import InvalidArgumentError

_QUARANTINE: Final = key_template(f"{QUARANTINE_PREFIX}{{partition}}", MAX_PK_BYTES, "pk")

Declaration: TypeAlias = Aggregate | Window
"""What the fold knows."""

Declarable: TypeAlias = Declaration | Distinct | Hierarchy
"""What can be declared to a table."""


def flatten(declared: Iterable[Declarable]) -> tuple[Declaration, ...]:
    """Take declarations apart into aggregates and windows.

    Parameters
    ----------
    declared : iterable of Aggregate, Window, Distinct or Hierarchy
        What was declared.

    Returns
    -------
    tuple of Aggregate and Window
        In the order declared.

    Examples
    --------
    >>> flatten([])
    ()
    """
    return tuple(
        part for each in declared for part in (each.parts if isinstance(each, Distinct | Hierarchy) else (each,))
    )


def require_consistent(declarations: tuple[Declaration, ...], *, complete: bool = True) -> None:
    """Check declarations that are to share a table.

    Parameters
    ----------
    declarations : tuple of Aggregate and Window
        All aggregates and windows of one table.
    complete : bool, optional
        Whether every aggregate that another looks at must be among them. Default True.

    Raises
    ------
    InvalidArgumentError
        Two share a name without being the same, an aggregate's source is not declared, or two could write the same
        item or rank on the same board.

    Examples
    --------
    >>> require_consistent(())
    """
    named: dict[str, Declaration | Event | Items] = {}
    for declaration in declarations:
        for part in (declaration.source, declaration):
            if named.setdefault(part.name, part) != part:
                raise InvalidArgumentError("name", part.name, "one declaration a name; rename one of the two")
    names = [declaration.name for declaration in declarations]
    for declaration in declarations:
        if names.count(declaration.name) > 1:
            raise InvalidArgumentError("name", declaration.name, "each declaration once")
        if complete and isinstance(declaration.source, Aggregate) and declaration.source.name not in names:
            raise InvalidArgumentError(
                "source", declaration.source.name, f"a declared aggregate; declare it beside {declaration.name!r}"
            )
    written = [part for part in named.values() if not isinstance(part, Items)]
    for place, one in enumerate(written):
        if one.pk_template.overlaps(_QUARANTINE):
            raise InvalidArgumentError("pk", one.pk, f"a key outside of the quarantine's {_QUARANTINE.text!r}")
        for two in written[place + 1 :]:
            _require_apart(one, two)
    _require_boards_apart([part for part in declarations if isinstance(part, Aggregate)])


def _require_apart(one: Declaration | Event, two: Declaration | Event) -> None:
    if not (one.pk_template.overlaps(two.pk_template) and one.sk_template.overlaps(two.sk_template)):
        return
    if isinstance(two, Window):
        raise InvalidArgumentError("name", two.name, f"a name whose bucket keys no item of {one.name!r} can have")
    raise InvalidArgumentError(
        "sk", two.sk, f"a key that no item of {one.name!r} can have; change pk or sk of {two.name!r}"
    )


def _require_boards_apart(aggregates: list[Aggregate]) -> None:
    ranked = [(aggregate, aggregate.ranking) for aggregate in aggregates if aggregate.ranking is not None]
    for place, (one, first) in enumerate(ranked):
        for _, second in ranked[place + 1 :]:
            if first.template.overlaps(second.template):
                raise InvalidArgumentError("board", second.board, f"a board on which no group of {one.name!r} can be")
