"""What one item image contributes: declarations compiled once a cold start into functions run for every record."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dynamodb_counters._declarations import Aggregate, Average, Count, Histogram, Measure, Sum, Window
from dynamodb_counters._items.attributes import LIST_MARK, Image, number_reader, reader, text_reader, texts_reader
from dynamodb_counters._items.conditions import Predicate, compile_condition
from dynamodb_counters._items.decimals import Number
from dynamodb_counters._items.event_times import event_seconds
from dynamodb_counters._timeline.tiers import TOTAL
from dynamodb_counters.errors import MalformedImageError

if TYPE_CHECKING:
    from dynamodb_counters._fold.compiler import Program

GroupKey: TypeAlias = tuple[Any, ...]
"""Texts of the group's fields; for a window the letter of the tier and the bucket, an int, follow."""

Numbers: TypeAlias = tuple[tuple[str, Number], ...]
"""What an image adds: attribute name and number."""


Contribution: TypeAlias = "tuple[Program, GroupKey, Numbers]"
"""What one item image adds to one item. A plain tuple, as one is made for every aggregate and record."""


class _Late(tuple[Contribution, ...]):
    __slots__ = ()


LATE: Final = _Late()
"""No contributions, because their bucket's retention is over."""

Contribute: TypeAlias = Callable[[Image, float | None], tuple[Contribution, ...]]


def compile_aggregate(program: Program, declaration: Aggregate) -> Contribute:
    """Compile an aggregate.

    Parameters
    ----------
    program : Program
        What the contributions belong to.
    declaration : Aggregate
        What to compile.

    Returns
    -------
    callable
        Takes an image and the record's creation time, gives the image's contributions.
    """
    # An aggregate's item has its fields and measures under their whole names: "address.city", "tags[]", "price.sum".
    literal = isinstance(declaration.source, Aggregate)
    holds = _predicate(declaration, literal=literal)
    numbers_of = _all_measures(declaration, literal=literal)
    constant = _constant(declaration)
    fields = declaration.fields
    if not literal and any(field.endswith(LIST_MARK) for field in fields):
        groups_of = _groups(fields)

        def contribute_each(image: Image, _: float | None) -> tuple[Contribution, ...]:
            if holds is not None and not holds(image):
                return ()
            numbers = numbers_of(image)
            return tuple((program, group, numbers) for group in groups_of(image)) if numbers else ()

        return contribute_each
    group_of = _group(fields, literal=literal)
    if constant is not None:

        def contribute_constant(image: Image, _: float | None) -> tuple[Contribution, ...]:
            return ((program, group_of(image), constant),) if holds is None or holds(image) else ()

        return contribute_constant

    def contribute(image: Image, _: float | None) -> tuple[Contribution, ...]:
        if holds is not None and not holds(image):
            return ()
        numbers = numbers_of(image)
        return ((program, group_of(image), numbers),) if numbers else ()

    return contribute


def compile_window(program: Program, declaration: Window) -> Contribute:
    """Compile a window.

    Parameters
    ----------
    program : Program
        What the contributions belong to.
    declaration : Window
        What to compile.

    Returns
    -------
    callable
        Takes an image and the record's creation time, gives the image's contributions, one a tier, or `LATE`.
    """
    holds = _predicate(declaration)
    group_of = _group(declaration.fields)
    number_of = _window_measure(declaration.measure)
    find_time, time = reader(declaration.time), declaration.time
    tiers = declaration.kept_tiers
    is_late = _judge(declaration)

    def contribute(image: Image, created: float | None) -> tuple[Contribution, ...]:
        if holds is not None and not holds(image):
            return ()
        number = number_of(image)
        if not number:
            return ()
        moment = find_time(image)
        if moment is None:
            raise MalformedImageError(f"attribute {time!r} is missing")
        seconds = event_seconds(moment)
        if is_late(seconds, created):
            return LATE
        group = group_of(image)
        found = []
        for tier in tiers:
            bucket, slot = tier.locate(seconds)
            found.append((program, (*group, tier.letter, bucket), ((TOTAL, number), (slot, number))))
        return tuple(found)

    return contribute


def _judge(declaration: Window) -> Callable[[int, float | None], bool]:
    """Make a function that tells a late event and refuses one from the future, by its record alone."""
    time, finest = declaration.time, declaration.kept_tiers[0]
    retention, tolerance = declaration.retention, declaration.future_tolerance
    keep = None if retention is None else retention.total_seconds()
    ahead = None if tolerance is None else tolerance.total_seconds()
    if keep is None and ahead is None:
        return lambda *_: False

    def is_late(seconds: int, created: float | None) -> bool:
        if created is None:
            raise MalformedImageError("the record lacks ApproximateCreationDateTime, which tells late from early")
        if ahead is not None and seconds > created + ahead:
            raise MalformedImageError(f"{time!r} lies {seconds - created:.0f} s in the future")
        # The finest bucket decides for all tiers alike, though coarser ones are kept for longer. No read misses the
        # event: a window that held it would have to begin before what is retained.
        if keep is None or finest.end(finest.locate(seconds)[0]) + keep > created:
            return False
        if declaration.late == "quarantine":
            raise MalformedImageError(f"{time!r} lies {created - seconds:.0f} s in the past: too late")
        return True

    return is_late


def _predicate(declaration: Aggregate | Window, *, literal: bool = False) -> Predicate | None:
    where = declaration.where
    return compile_condition(where, literal=literal) if where is not None else None


def _group(fields: tuple[str, ...], *, literal: bool = False) -> Callable[[Image], GroupKey]:
    readers = [text_reader(field, literal=literal) for field in fields]
    if not readers:
        return lambda _: ()
    if len(readers) == 1:
        [read] = readers
        return lambda image: (read(image),)
    return lambda image: tuple([read(image) for read in readers])


def _groups(fields: tuple[str, ...]) -> Callable[[Image], list[GroupKey]]:
    readers: list[Callable[[Image], list[str]]] = [
        texts_reader(field) if field.endswith(LIST_MARK) else _alone(text_reader(field)) for field in fields
    ]
    return lambda image: list(product(*[read(image) for read in readers]))


def _alone(read: Callable[[Image], str]) -> Callable[[Image], list[str]]:
    return lambda image: [read(image)]


def _constant(declaration: Aggregate) -> Numbers | None:
    """Give what every image adds alike, where that is so: most aggregates only count."""
    measures = declaration.measures
    return tuple((name, 1) for name in measures) if all(isinstance(m, Count) for m in measures.values()) else None


def _all_measures(declaration: Aggregate, *, literal: bool) -> Callable[[Image], Numbers]:
    measures = declaration.measures
    compiled = [_measure(name, measure, literal=literal) for name, measure in measures.items()]
    return lambda image: tuple([pair for numbers_of in compiled for pair in numbers_of(image) if pair[1]])


def _measure(name: str, measure: Measure, *, literal: bool = False) -> Callable[[Image], Numbers]:
    attributes = measure.attributes(name)
    if isinstance(measure, Count):
        return lambda _: ((name, 1),)
    read = number_reader(measure.attribute, literal=literal)
    if isinstance(measure, Average):
        total, count = attributes
        return lambda image: ((total, read(image)), (count, 1))
    if isinstance(measure, Histogram):
        histogram = measure
        return lambda image: tuple([(attributes[place], 1) for place in histogram.bin_indexes(read(image))])
    cap = measure.cap
    if cap is None:
        return lambda image: ((name, read(image)),)
    most = cap
    return lambda image: ((name, min(read(image), most)),)


def _window_measure(measure: Count | Sum) -> Callable[[Image], Number]:
    numbers_of = _measure(TOTAL, measure)
    return lambda image: numbers_of(image)[0][1]
