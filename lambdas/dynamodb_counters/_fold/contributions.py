"""What one item image contributes to which groups: declarations compiled into functions that run for every record."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Final, TypeAlias

from dynamodb_counters._declarations import Aggregate, Average, Count, Histogram, Measure, Window
from dynamodb_counters._fold.item_layout import GroupKey, ItemLayout
from dynamodb_counters._items.attributes import LIST_MARK, Image, number_reader, text_reader, texts_reader
from dynamodb_counters._items.conditions import Predicate, compile_condition
from dynamodb_counters._items.decimals import Number

Numbers: TypeAlias = tuple[tuple[str, Number], ...]
"""What to add: attribute name and number."""

Contribution: TypeAlias = tuple[ItemLayout, GroupKey, Numbers]
"""What one image adds to one group. A plain tuple, because every record makes one per aggregate."""


class _Late(tuple[Contribution, ...]):
    __slots__ = ()


LATE: Final = _Late()
"""Contributes nothing, because the retention of its bucket is over."""

Contribute: TypeAlias = Callable[[Image, float | None], tuple[Contribution, ...]]
"""Takes an image and its record's creation time; raises an error if the image lacks what the declaration needs."""


def compile_aggregate(layout: ItemLayout, declaration: Aggregate) -> Contribute:
    # An aggregate's item has its fields and measures under their whole names: "address.city", "tags[]", "price.sum".
    literal = isinstance(declaration.source, Aggregate)
    holds = compile_where(declaration, literal=literal)
    numbers_of = _compile_measures(declaration, literal=literal)
    constant = _constant(declaration)
    fields = declaration.fields

    if not literal and any(field.endswith(LIST_MARK) for field in fields):
        groups_of = _compile_groups(fields)

        def contribute_each(image: Image, _: float | None) -> tuple[Contribution, ...]:
            if holds is not None and not holds(image):
                return ()
            numbers = numbers_of(image)
            return tuple((layout, group, numbers) for group in groups_of(image)) if numbers else ()

        return contribute_each

    group_of = compile_group(fields, literal=literal)
    if constant is not None:

        def contribute_constant(image: Image, _: float | None) -> tuple[Contribution, ...]:
            return ((layout, group_of(image), constant),) if holds is None or holds(image) else ()

        return contribute_constant

    def contribute(image: Image, _: float | None) -> tuple[Contribution, ...]:
        if holds is not None and not holds(image):
            return ()
        numbers = numbers_of(image)
        return ((layout, group_of(image), numbers),) if numbers else ()

    return contribute


def compile_where(declaration: Aggregate | Window, *, literal: bool = False) -> Predicate | None:
    where = declaration.where
    return compile_condition(where, literal=literal) if where is not None else None


def compile_group(fields: tuple[str, ...], *, literal: bool = False) -> Callable[[Image], GroupKey]:
    readers = [text_reader(field, literal=literal) for field in fields]
    if not readers:
        return lambda _: ()
    if len(readers) == 1:
        [read] = readers
        return lambda image: (read(image),)
    return lambda image: tuple([read(image) for read in readers])


def _compile_groups(fields: tuple[str, ...]) -> Callable[[Image], list[GroupKey]]:
    """One group per member of a list; several lists multiply."""
    readers: list[Callable[[Image], list[str]]] = [
        texts_reader(field) if field.endswith(LIST_MARK) else _one_text(text_reader(field)) for field in fields
    ]
    return lambda image: list(product(*[read(image) for read in readers]))


def _one_text(read: Callable[[Image], str]) -> Callable[[Image], list[str]]:
    return lambda image: [read(image)]


def _constant(declaration: Aggregate) -> Numbers | None:
    """What every image adds if the aggregate only counts, as most do."""
    measures = declaration.measures
    return tuple((name, 1) for name in measures) if all(isinstance(m, Count) for m in measures.values()) else None


def _compile_measures(declaration: Aggregate, *, literal: bool) -> Callable[[Image], Numbers]:
    compiled = [compile_measure(name, measure, literal=literal) for name, measure in declaration.measures.items()]
    return lambda image: tuple([pair for numbers_of in compiled for pair in numbers_of(image) if pair[1]])


def compile_measure(name: str, measure: Measure, *, literal: bool = False) -> Callable[[Image], Numbers]:
    attributes = measure.attributes(name)
    if isinstance(measure, Count):
        return lambda _: ((name, 1),)
    read = number_reader(measure.attribute, literal=literal)
    if isinstance(measure, Average):
        total, count = attributes
        return lambda image: ((total, read(image)), (count, 1))
    if isinstance(measure, Histogram):
        histogram = measure
        return lambda image: tuple([(attributes[index], 1) for index in histogram.bin_indexes(read(image))])
    cap = measure.cap
    if cap is None:
        return lambda image: ((name, read(image)),)
    most = cap
    return lambda image: ((name, min(read(image), most)),)
