"""The plan: which declarations look at an item, found by its type or its attributes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import localcontext
from functools import partial
from typing import Any, Final

from dynamodb_counters._declarations import Aggregate, Declaration, Direct, Event, Items, require_consistent
from dynamodb_counters._fold.contributions import UNFOLDABLE, ActivePages, Program, compile_program
from dynamodb_counters._fold.item_layout import ItemLayout
from dynamodb_counters._fold.page_layout import PageLayout
from dynamodb_counters._items.conditions import Image, Predicate, compile_condition
from dynamodb_counters._items.conversions import EXACT, typed_text
from dynamodb_counters._items.key_templates import is_hashed
from dynamodb_counters._items.table_schema import ONCE_SUFFIX, OWN_TYPES, PACK_SUFFIX, PK, SK, TTL, TYPE

_ZERO: Final = {"N": "0"}


@dataclass(slots=True)
class Source:
    holds: Predicate | None = None
    """Which untyped items, as they are shown, are of this source; None for items whose type decides, or for all."""
    show: Callable[[Image], Image | None] | None = None
    """How an item looks to those that count it; None for items that are seen as they are."""
    ttl: str | None = TTL
    looks_at_type: bool = False
    """Whether its condition names the attribute in which other code, too, keeps the type of an item."""
    programs: list[Program] = field(default_factory=list)
    insert_is_counted: bool = False
    """Whether the transaction that inserts such an item counts it."""
    packs: str = ""
    """The event of which such an item holds many."""
    pages: PageLayout | None = None
    """How such an item holds many groups."""


class Plan:
    """All declarations of one table, compiled; refuses declarations that contradict each other."""

    def __init__(self, declarations: tuple[Declaration, ...], since: Mapping[str, float] | None = None) -> None:
        require_consistent(declarations)
        self.programs = {declaration.name: compile_program(declaration) for declaration in declarations}
        self.armed = {
            program.layout.name: program.layout
            for program in self.programs.values()
            if getattr(program.layout.declaration, "_thresholds", ())
        }
        """The aggregates that thresholds watch, by name."""
        self.armed_since = since or {}
        """From which records on a threshold watches, in seconds since 1970, by its name."""
        self._by_type: dict[str, tuple[Source, ...]] = {}
        self._untyped: dict[str, Source] = {}
        self._names = set(self.programs)
        for program in self.programs.values():
            source = program.layout.declaration.source
            if isinstance(source, Direct):
                continue
            if isinstance(source, Items):
                self._untyped.setdefault(source.name, _of_items(source)).programs.append(program)
                continue
            self._names.add(source.name)
            counted = Source()
            if isinstance(source, Aggregate):
                counted.show = _as_source(source)
                counted.pages = ActivePages(source) if source._longest else ItemLayout(source).pages
            [counted] = self._by_type.setdefault(source.name, (counted,))
            counted.programs.append(program)
            if isinstance(source, Event):
                counted_once = Source(programs=counted.programs, insert_is_counted=True)
                self._by_type[source.name + ONCE_SUFFIX] = (counted_once,)
                self._by_type[source.name + PACK_SUFFIX] = (Source(programs=counted.programs, packs=source.name),)
        self._typed = tuple(source for source in self._untyped.values() if source.looks_at_type)
        self.blind = tuple(source for source in self._untyped.values() if not source.looks_at_type)
        """Sources of items that are counted unless they have a type."""

    def sources(self, image: Image, *, is_foreign: bool | None = None) -> Collection[Source]:
        """Sources that may look at an item, by its type, or by the table it lies in; `is_foreign` as of a `Change`."""
        if is_foreign:
            return self._untyped.values()
        typed = image.get(TYPE)
        if typed is None:
            return () if is_foreign is False else self._untyped.values()
        name = typed.get("S", "")
        found = self._by_type.get(name)
        if found is not None:
            return found
        return self._typed if self._typed and is_foreign is None and not self._is_ours(name) else ()

    def skips(self, image: Image) -> bool:
        """Whether `Items` would count an item if it had no type."""
        return not self._is_ours(image[TYPE].get("S", "")) and any(map(partial(_is_of, image), self.blind))

    def refusal(self, item: Image, created: float) -> str | None:
        """Why an event's typed item, inserted at `created`, could not be counted; None if it could, or is late."""
        reasons = []
        with localcontext(EXACT):
            for source in self.sources(item):
                for program in source.programs:
                    try:
                        program.contribute(item, created)
                    except UNFOLDABLE as error:
                        reasons.append(f"{program.layout.name}: {error}")
        return "; ".join(reasons) or None

    def _is_ours(self, name: str) -> bool:
        return name in OWN_TYPES or name.removesuffix(ONCE_SUFFIX).removesuffix(PACK_SUFFIX) in self._names


def _of_items(items: Items) -> Source:
    where = items.where
    holds = None if where is None else compile_condition(where)
    looks_at_type = where is not None and TYPE in where._attributes
    return Source(holds, show_foreign(items), ttl=items._table_keys.ttl, looks_at_type=looks_at_type)


def _is_of(image: Image, source: Source) -> bool:
    """Whether an item is of a source, but for its type."""
    with suppress(*UNFOLDABLE):
        shown = image if source.show is None else source.show(image)
        return shown is not None and (source.holds is None or source.holds(shown))
    return False


def _as_source(aggregate: Aggregate) -> Callable[[Image], Image | None]:
    """Show a group's item with every field and measure as an attribute; None if all measures are 0."""
    # So aggregates over groups depend on the groups there are, not on those there once were.
    templates = [(PK, aggregate._pk_template), (SK, aggregate._sk_template)]
    zeros: dict[str, Any] = dict.fromkeys(aggregate._attributes, _ZERO)

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


def show_foreign(items: Items) -> Callable[[Image], Image | None] | None:
    """Show an item with the fields of its keys; None if its keys have another form, or there is no form."""
    templates = items._templates
    if not templates:
        return None

    def show(image: Image) -> Image | None:
        shown: dict[str, Mapping[str, Any]] = {**image}
        for name, template in templates:
            value = image.get(name, {})
            texts = template.match(text) if (text := value.get("S") or value.get("N")) is not None else None
            if texts is None:
                return None
            shown.update((field, typed_text(text)) for field, text in texts.items())
        return shown

    return show
