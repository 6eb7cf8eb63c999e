"""The plan: which declarations look at an item, found by its type or its attributes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dynamodb_counters._declarations import Aggregate, Declaration, Event, Items, Window, require_consistent
from dynamodb_counters._declarations.member_paths import member_list
from dynamodb_counters._fold.chunk_contributions import ByColumns, compile_columns
from dynamodb_counters._fold.contributions import Contribute, compile_aggregate, until_closed
from dynamodb_counters._fold.foreign_items import show_foreign
from dynamodb_counters._fold.item_layout import ItemLayout
from dynamodb_counters._fold.member_contributions import compile_members
from dynamodb_counters._fold.window_contributions import compile_window
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.conditions import Predicate, compile_condition
from dynamodb_counters._items.key_templates import is_hashed
from dynamodb_counters._items.table_schema import ONCE_SUFFIX, PACK_SUFFIX, PK, SK, TTL, TYPE

_ZERO: Final = {"N": "0"}


@dataclass(frozen=True, slots=True)
class Program:
    """A declaration compiled for the fold."""

    layout: ItemLayout
    contribute: Contribute
    keeps_expired: bool
    by_columns: ByColumns | None = None


@dataclass(slots=True)
class Source:
    """What is declared over the items of one source."""

    holds: Predicate | None = None
    """Which untyped items, as they are shown, are of this source; None for items whose type tells, or for all."""
    show: Callable[[Image], Image | None] | None = None
    """How an item looks to those that count it; None for items that are seen as they are."""
    ttl: str | None = TTL
    programs: list[Program] = field(default_factory=list)
    insert_is_counted: bool = False
    """Whether the transaction that inserts such an item counts it."""
    packs: str = ""
    """The event of which such an item holds many."""


class Plan:
    """All declarations of one table, compiled; refuses declarations that contradict each other.

    `others` are declarations of other deployments, which may have written the same groups under another name.
    """

    def __init__(self, declarations: tuple[Declaration, ...], others: Iterable[tuple[Declaration, ...]] = ()) -> None:
        require_consistent(declarations)
        self.programs = {declaration.name: _compiled(declaration) for declaration in declarations}
        self._names = {*self.programs, *(declaration.source.name for declaration in declarations)}
        self._by_type: dict[str, tuple[Source]] = {}
        self._untyped: dict[str, Source] = {}
        for program in self.programs.values():
            source = program.layout.declaration.source
            if isinstance(source, Items):
                self._untyped.setdefault(source.name, _of_items(source)).programs.append(program)
                continue
            show = _as_source(source) if isinstance(source, Aggregate) else None
            [found] = self._by_type.setdefault(source.name, (Source(show=show),))
            found.programs.append(program)
            if isinstance(source, Event):
                counted_once = Source(programs=found.programs, insert_is_counted=True)
                self._by_type[source.name + ONCE_SUFFIX] = (counted_once,)
                self._by_type[source.name + PACK_SUFFIX] = (Source(programs=found.programs, packs=source.name),)
        self._add_other_names(declarations, [part for other in others for part in other])

    def sources(self, image: Image, *, is_foreign: bool | None = None) -> Collection[Source]:
        """What may look at an item, by its type, or by the table it lies in; `is_foreign` as of a `Change`."""
        if is_foreign:
            return self._untyped.values()
        typed = image.get(TYPE)
        if typed is None and is_foreign is False:
            return ()
        return self._untyped.values() if typed is None else self._by_type.get(typed.get("S", ""), ())

    def sources_before_rename(self, old: Image, new: Image) -> Sequence[Source]:
        """Sources of a group's old image written under a name its aggregate has no longer: those of the new image."""
        unknown = TYPE in old and old[TYPE].get("S") not in self._names
        return [source for source in self.sources(new) if unknown and source.show is not None]

    def present_names(self, names: Iterable[str]) -> frozenset[str]:
        """What declarations of these names are called here."""
        return frozenset(self.programs[name].layout.name for name in names if name in self.programs)

    def _add_other_names(self, declarations: Iterable[Declaration], others: Iterable[Declaration]) -> None:
        """Know groups by the names that other deployments write: the same keys, the same groups."""
        by_keys = {_keys(declaration): declaration.name for declaration in declarations}
        for other in others:
            name = by_keys.get(_keys(other))
            if name is not None and other.name not in self._names:
                self.programs.setdefault(other.name, self.programs[name])
                if name in self._by_type:
                    self._by_type.setdefault(other.name, self._by_type[name])


def _keys(declaration: Declaration) -> tuple[str, str]:
    return declaration.pk_template.text, declaration.sk_template.text


def _compiled(declaration: Declaration) -> Program:
    layout = ItemLayout(declaration)
    if isinstance(declaration, Window):
        contribute = compile_window(layout, declaration)
    else:
        contribute = _of_aggregate(layout, declaration)
    by_columns = compile_columns(layout, declaration) if isinstance(declaration, Aggregate) else None
    return Program(layout, contribute, declaration.on_expiry == "keep", by_columns)


def _of_aggregate(layout: ItemLayout, declaration: Aggregate) -> Contribute:
    members = None
    if not isinstance(declaration.source, Aggregate):
        members = member_list(declaration.fields, declaration.measured)
    if members is None:
        contribute = compile_aggregate(layout, declaration)
    else:
        contribute = compile_members(layout, declaration, members)
    return contribute if declaration.retention is None else until_closed(layout, contribute)


def _of_items(items: Items) -> Source:
    holds = None if items.where is None else compile_condition(items.where)
    return Source(holds, show_foreign(items), ttl=items.table_keys.ttl)


def _as_source(aggregate: Aggregate) -> Callable[[Image], Image | None]:
    """Show a group's item with every field and measure as an attribute; None if all measures are 0.

    So aggregates over groups depend on the groups there are, not on those there once were.
    """
    templates = [(PK, aggregate.pk_template), (SK, aggregate.sk_template)]
    zeros: dict[str, Any] = dict.fromkeys(aggregate.attributes, _ZERO)

    def show(image: Image) -> Image | None:
        if all(image.get(attribute, _ZERO) == _ZERO for attribute in zeros):
            return None
        shown = {**zeros, **image}
        for name, template in templates:
            key = image[name]["S"]
            if not is_hashed(key):  # A hashed key's values are attributes already.
                shown.update((field, {"S": text}) for field, text in template.parse(key).items())
        return shown

    return show
