"""Contributions: what an image adds to groups, windows, members and pages, compiled to run for every record. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import localcontext
from itertools import chain, product
from math import prod
from typing import Any, Final, TypeAlias

from dynamodb_counters._declarations import Aggregate, Declaration, Direct, Event, Items, Window, require_consistent
from dynamodb_counters._declarations.aggregates import GAP
from dynamodb_counters._declarations.measures import MOMENT, Average, Count, Histogram, Measure, Sum, TimeWeighted
from dynamodb_counters._fold.layouts import SHORT, UNDATED, GroupKey, ItemLayout, PageLayout, require_storable_group
from dynamodb_counters._items import conditions
from dynamodb_counters._items.chunks import Chunk
from dynamodb_counters._items.conditions import LIST_MARK, Image, Predicate, text_reader, texts_reader
from dynamodb_counters._items.conversions import EXACT, Number, event_seconds, read_number, typed_text
from dynamodb_counters._items.keys import is_hashed, parts_of, tier_of
from dynamodb_counters._items.schema import MAX_NUMBER_DIGITS, ONCE_SUFFIX, OWN_TYPES, PACK_SUFFIX, PK, SK, TTL, TYPE
from dynamodb_counters._tiers import TOTAL
from dynamodb_counters.errors import MalformedImageError

_ZERO: Final = {"N": "0"}
FOLD_ERRORS: Final = (MalformedImageError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors that the compiled functions may raise on an image of any shape."""

Numbers: TypeAlias = tuple[tuple[str, Number], ...]  # To add, each after the attribute's name.
Contribution: TypeAlias = tuple[ItemLayout, GroupKey, Numbers]
"""Addition of one image to one group. A plain tuple, because every record makes one per aggregate."""
ByColumns: TypeAlias = Callable[[Chunk], list[Contribution] | None]
"""All that a chunk contributes; None if its events must be looked at one by one."""
Contribute: TypeAlias = Callable[[Image, float | None], tuple[Contribution, ...] | None]
"""Takes an image and its record's creation time; raises an error if the image lacks what the declaration needs, and
returns None if it comes too late: the retention of its bucket or group is over."""


@dataclass(frozen=True, slots=True)
class Program:
    layout: ItemLayout
    contribute: Contribute
    by_columns: ByColumns | None = None
    keeps: bool = False  # An image that has expired, or is erased with its counts kept, stays counted.


def compile_program(declaration: Declaration) -> Program:
    layout = ItemLayout(declaration)
    if isinstance(declaration.source, Direct):
        return Program(layout, lambda *_: ())
    keeps = declaration.on_expiry == "keep"
    if isinstance(declaration, Window):
        return Program(layout, compile_window(layout, declaration), keeps=keeps)
    contribute = compile_aggregate(layout, declaration)
    if declaration._longest:
        contribute = looked_back_at(contribute, declaration)
    if declaration.retention is not None:
        contribute = until_closed(layout, contribute)
    return Program(layout, contribute, compile_columns(layout, declaration), keeps)


def compile_aggregate(layout: ItemLayout, declaration: Aggregate) -> Contribute:
    # An aggregate's item has its fields and measures under their whole names: "address.city", "tags[]", "price.sum".
    literal = isinstance(declaration.source, Aggregate)
    where, fields = declaration.where, declaration.fields
    holds = None if where is None else conditions.compile_condition(where, literal=literal)
    numbers_of = _compile_numbers(declaration.measures, literal=literal)
    has_lists = not literal and any(field.endswith(LIST_MARK) for field in fields)
    groups_of, group_of = _compile_groups(declaration) if has_lists else None, compile_group(fields, literal=literal)

    def contribute(image: Image, _: float | None) -> tuple[Contribution, ...]:
        if (holds is not None and not holds(image)) or not (numbers := numbers_of(image)):
            return ()
        if groups_of is None:
            return ((layout, group_of(image), numbers),)
        return tuple([(layout, group, numbers) for group in groups_of(image)])

    return contribute


def _compile_numbers(measures: Mapping[str, Measure], *, literal: bool) -> Callable[[Image], Numbers]:
    if all(isinstance(measure, Count) for measure in measures.values()):
        # As of most: every image adds the same.
        constant = tuple((name, 1) for name in measures)
        return lambda _: constant
    compiled = [compile_measure(name, measure, literal=literal) for name, measure in measures.items()]
    return lambda image: tuple([pair for numbers in compiled for pair in numbers(image) if pair[1]])


def compile_columns(layout: ItemLayout, declaration: Aggregate) -> ByColumns | None:
    """Count a chunk by its columns, several times faster than by its rows; None where more than plain ones count."""
    fields, measures = declaration.fields, declaration.measures
    sums = {name: measure.attribute for name, measure in measures.items() if isinstance(measure, Sum)}
    if declaration.where is not None or not all(map(conditions.is_plain, (*fields, *sums.values()))):
        return None
    if not all(isinstance(part, Count) or (isinstance(part, Sum) and part.cap is None) for part in measures.values()):
        return None

    def contribute(chunk: Chunk) -> list[Contribution] | None:
        if chunk.signs:
            return None
        totals: dict[str, Mapping[GroupKey, Number]] = {}
        try:
            texts = [_cells(chunk, field, "S", SHORT // len(fields)) for field in fields]
            groups: list[GroupKey] = list(zip(*texts, strict=True)) if texts else [()] * chunk.rows
            for name in measures:
                totals[name] = _total(chunk, groups, sums[name]) if name in sums else Counter(groups)
        except ValueError:
            return None
        return [
            (layout, group, tuple([(name, total[group]) for name, total in totals.items() if group in total]))
            for group in dict.fromkeys(group for total in totals.values() for group in total)
        ]

    return contribute


def _cells(chunk: Chunk, name: str, kind: str, limit: int) -> Sequence[str]:
    """Return the texts of a column; ValueError if one is missing, of another type or long."""
    stored, cells = chunk.columns.get(name, ("", ()))
    if stored != kind or None in cells or max(map(len, cells), default=0) > limit:
        raise ValueError(name)
    return cells


def _total(chunk: Chunk, groups: Iterable[GroupKey], attribute: str) -> dict[GroupKey, Number]:
    totals: dict[GroupKey, Number] = {}
    for group, text in zip(groups, _cells(chunk, attribute, "N", MAX_NUMBER_DIGITS), strict=True):
        if number := int(text):  # Zero touches no group.
            totals[group] = totals.get(group, 0) + number
    return totals


def until_closed(layout: ItemLayout, contribute: Contribute) -> Contribute:
    def contribute_in_time(image: Image, created: float | None) -> tuple[Contribution, ...] | None:
        contributions = contribute(image, created)
        # All groups of an image have the same time.
        return None if contributions and layout.is_late(contributions[0][1], created) else contributions

    return contribute_in_time


def compile_group(fields: tuple[str, ...], *, literal: bool = False) -> Callable[[Image], GroupKey]:
    readers = [text_reader(field, literal=literal) for field in fields]

    def group_of(image: Image) -> GroupKey:
        group = tuple([read(image) for read in readers])
        return group if sum(map(len, group)) <= SHORT else require_storable_group(group)

    def group_of_one(image: Image) -> GroupKey:
        text = readers[0](image)
        return (text,) if len(text) <= SHORT else require_storable_group((text,))

    if not readers:
        return lambda _: ()
    return group_of_one if len(readers) == 1 else group_of


def _compile_groups(declaration: Aggregate) -> Callable[[Image], list[GroupKey]]:
    # A group per member of a list; several lists multiply.
    fields, limit = declaration.fields, declaration.max_groups
    readers = [texts_reader(field) if field.endswith(LIST_MARK) else text_reader(field) for field in fields]

    def groups_of(image: Image) -> list[GroupKey]:
        choices = [[texts] if isinstance(texts := read(image), str) else texts for read in readers]
        # Counted before they are made: two lists of one item can make millions.
        if (count := prod(map(len, choices))) > limit:
            expected = f"expected at most {limit} groups of {declaration.name!r} per item, found {count}"
            raise MalformedImageError(f"invalid group {', '.join(map(repr, fields))}: {expected}")
        longest = [max(texts, key=lambda text: len(text.encode()), default="") for texts in choices]
        require_storable_group(tuple(longest))
        return list(product(*choices))

    return groups_of


def compile_measure(name: str, measure: Measure | TimeWeighted, *, literal: bool = False) -> Callable[[Image], Numbers]:
    attributes = measure._attributes(name)
    if isinstance(measure, Count):
        return lambda _: ((name, 1),)
    read = conditions.number_reader(measure.attribute, literal=literal, default=measure.default)
    if isinstance(measure, Average):
        total, count = attributes
        return lambda image: ((total, read(image)), (count, 1))
    if isinstance(measure, Histogram):
        return lambda image: tuple([(attributes[index], 1) for index in measure._bin_indexes(read(image))])
    if isinstance(measure, TimeWeighted) or (cap := measure.cap) is None:
        return lambda image: ((name, read(image)),)
    return lambda image: ((name, min(read(image), cap)),)


class EarlyError(MalformedImageError):
    """An event lies too far in the future, for now."""


def compile_window(layout: ItemLayout, declaration: Window) -> Contribute:
    holds = None if declaration.where is None else conditions.compile_condition(declaration.where)
    group_of = compile_group(declaration.fields)
    numbers_of = compile_measure(TOTAL, declaration.measure)
    tiers, is_weighted = declaration._kept_tiers, isinstance(declaration.measure, TimeWeighted)
    find_time, is_late = conditions.reader(declaration.time), _lateness(declaration)

    def contribute(image: Image, created: float | None) -> tuple[Contribution, ...] | None:
        if holds is not None and not holds(image):
            return ()
        [(_, number)] = numbers_of(image)
        if not number:
            return ()
        if (when := find_time(image)) is None:
            raise MalformedImageError(f"attribute {declaration.time!r} is missing")
        seconds = event_seconds(when)
        if is_late(seconds, created):
            return None
        group, contributions = group_of(image), []
        for tier in tiers:
            bucket, slot = tier.locate(seconds)
            numbers: Numbers = ((TOTAL, number), (slot, number))
            if is_weighted and (moment := number * (seconds - tier.start(bucket))):
                numbers = (*numbers, (TOTAL + MOMENT, moment), (slot + MOMENT, moment))
            contributions.append((layout, (*group, tier.letter, bucket), numbers))
        return tuple(contributions)

    return contribute


def _lateness(declaration: Window) -> Callable[[int, float | None], bool]:
    # By its record's creation time alone, every delivery of an event judges alike.
    time, finest = declaration.time, declaration._kept_tiers[0]
    retention, tolerance = declaration.retention, declaration.future_tolerance
    keep = None if retention is None else retention.total_seconds()
    ahead = None if tolerance is None else tolerance.total_seconds()
    if keep is None and ahead is None:
        return lambda *_: False

    def is_late(seconds: int, created: float | None) -> bool:
        if created is None:
            raise MalformedImageError(UNDATED)
        if ahead is not None and seconds > created + ahead:
            raise EarlyError(f"{time!r} lies {seconds - created:.0f} s in the future")
        # The finest bucket decides for all tiers, though coarser ones are kept longer. No read misses the event:
        # a window that includes it would begin before what is retained.
        if keep is None or finest.end(finest.locate(seconds)[0]) + keep > created:
            return False
        if declaration.late == "quarantine":
            raise MalformedImageError(f"{time!r} lies {created - seconds:.0f} s in the past: too late")
        return True

    return is_late


def looked_back_at(contribute: Contribute, members: Aggregate) -> Contribute:
    """Return the same contributions, and those to the next stretch that looks back at them."""
    # A unit of an active member that lies less than the longest span before the end of a page's stretch counts in the
    # next page, too. So each page shows the gaps of its own units, and a change of it changes those of the units
    # around: contribution of the new image less that of the old one, as for any other item.
    stretch_field, unit_field = members.fields[-2:]
    units, longest, tier = int(parts_of(stretch_field)[1][:-1]), members._longest, tier_of(unit_field)
    assert tier is not None

    def also(contribution: Contribution) -> Iterator[Contribution]:
        layout, (*fields, stretch, unit), numbers = contribution
        following = tier.parse(stretch) + units
        yield contribution
        if tier.parse(unit) > following - longest:
            yield layout, (*fields, tier.text(following), unit), numbers

    def contribute_to_both(image: Image, created: float | None) -> tuple[Contribution, ...] | None:
        contributions = contribute(image, created)
        return None if contributions is None else tuple(chain.from_iterable(map(also, contributions)))

    return contribute_to_both


class ActivePages(PageLayout):
    """The pages of members as those see them that count by gaps."""

    def __init__(self, members: Aggregate) -> None:
        super().__init__(members)
        self._stretch_field, self._unit_field = members.fields[-2:]
        [self._items] = members.measures

    def groups(self, image: Image, unlike: Image | None = None) -> list[Image]:
        """Return the units of a page's own stretch in which its member was active, each with its gap."""
        del unlike  # The gap of a unit may differ though the unit does not.
        assert self._unit is not None
        active = dict[int, Image]()
        for group in super().groups(image):
            if read_number(group, self._items) > 0:
                texts = self._sk.parse(group["sk"]["S"])
                active[self._unit.parse(texts[self._unit_field])] = group
                begin = self._unit.parse(texts[self._stretch_field])
        units, before = list[Image](), None
        for number, group in sorted(active.items()):
            if number >= begin:
                gap = self._longest if before is None else min(number - before, self._longest)
                units.append({**group, GAP: {"S": str(gap)}})
            before = number
        return units


@dataclass(slots=True)
class Source:
    holds: Predicate | None = None  # Of an untyped item, as it is shown; None where its type decides, or for all.
    show: Callable[[Image], Image | None] | None = None  # How an item looks to those that count it; None: as it is.
    ttl: str | None = TTL
    looks_at_type: bool = False  # Its condition names the attribute in which other code, too, keeps an item's type.
    programs: list[Program] = field(default_factory=list)
    insert_is_counted: bool = False  # By the transaction that inserts such an item.
    packs: str = ""  # The event of which such an item holds many.
    pages: PageLayout | None = None  # How such an item holds many groups.

    def view(self, image: Image) -> Image | None:
        """Return an item as those see it that count it; None if it is not of the source."""
        view = image if self.show is None else self.show(image)
        return None if view is None or (self.holds is not None and not self.holds(view)) else view


class Plan:
    """All declarations of one table, compiled; refuses declarations that contradict each other."""

    def __init__(self, declarations: tuple[Declaration, ...], since: Mapping[str, float] | None = None) -> None:
        require_consistent(declarations)
        self.programs = {declaration.name: compile_program(declaration) for declaration in declarations}
        layouts = [program.layout for program in self.programs.values()]
        self.armed = {layout.name: layout for layout in layouts if getattr(layout.declaration, "_thresholds", ())}
        """The aggregates that thresholds watch, by name."""
        self.armed_since = since or {}  # By a threshold's name: since when it watches, in seconds since 1970.
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
                counted.show = as_source(source)
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
        """Return what may count an item, by its type, or by the table it lies in; `is_foreign` as of a `Change`."""
        if is_foreign:
            return self._untyped.values()
        typed = image.get(TYPE)
        if typed is None:
            return () if is_foreign is False else self._untyped.values()
        name = typed.get("S", "")
        if (sources := self._by_type.get(name)) is not None:
            return sources
        return self._typed if self._typed and is_foreign is None and not self._is_ours(name) else ()

    def skips(self, image: Image) -> bool:
        """Return whether `Items` would count an item if it had no type."""
        if self._is_ours(image[TYPE].get("S", "")):
            return False
        for source in self.blind:
            with suppress(*FOLD_ERRORS):
                if source.view(image) is not None:
                    return True
        return False

    def refusal(self, item: Image, created: float) -> str | None:
        """Return why an event's item, inserted at `created`, could not be counted; None if it could, or is late."""
        reasons = []
        with localcontext(EXACT):
            for program in chain.from_iterable(source.programs for source in self.sources(item)):
                try:
                    program.contribute(item, created)
                except FOLD_ERRORS as error:
                    reasons.append(f"{program.layout.name}: {error}")
        return "; ".join(reasons) or None

    def _is_ours(self, name: str) -> bool:
        return name in OWN_TYPES or name.removesuffix(ONCE_SUFFIX).removesuffix(PACK_SUFFIX) in self._names


def _of_items(items: Items) -> Source:
    show, ttl = show_foreign(items), items._table_keys.ttl
    if items.where is None:
        return Source(None, show, ttl)
    return Source(conditions.compile_condition(items.where), show, ttl, TYPE in items.where._attributes)


def as_source(aggregate: Aggregate) -> Callable[[Image], Image | None]:
    """Show a group's item with every field and measure as an attribute; None if all measures are 0."""
    # So aggregates over groups depend on the groups there are, not on those there once were.
    templates = [(PK, aggregate._pk_template), (SK, aggregate._sk_template)]
    zeros: dict[str, Any] = dict.fromkeys(aggregate._attributes, _ZERO)

    def show(image: Image) -> Image | None:
        if all(image.get(attribute, _ZERO) == _ZERO for attribute in zeros):
            return None
        view = {**zeros, **image}
        for name, template in templates:
            if not is_hashed(key := image[name]["S"]):  # A hashed key's values are attributes already.
                view.update((field, {"S": text}) for field, text in template.parse(key).items())
        return view

    return show


def show_foreign(items: Items) -> Callable[[Image], Image | None] | None:
    """Show an item with the fields of its keys; None if its keys have another form, or there is no form."""
    if not (templates := items._templates):
        return None

    def show(image: Image) -> Image | None:
        view: dict[str, Mapping[str, Any]] = {**image}
        for name, template in templates:
            value = image.get(name, {})
            texts = template.match(text) if (text := value.get("S") or value.get("N")) is not None else None
            if texts is None:
                return None
            view.update((field, typed_text(text)) for field, text in texts.items())
        return view

    return show
