"""Declarations compiled into functions of an item image: done once a cold start, run for every record."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

from dynamodb_counters.conditions import Image, Predicate, compile_condition
from dynamodb_counters.decimals import Number, format_number, parse_number
from dynamodb_counters.declarations import BUCKET_FIELD, SPREAD_FIELD, Aggregate, Count, Declaration, Measure, Window
from dynamodb_counters.errors import MalformedImageError
from dynamodb_counters.keys import is_hashed
from dynamodb_counters.schema import PK, SK, is_reserved
from dynamodb_counters.times import HOUR, MINUTE, event_seconds, hour_text
from dynamodb_counters.windows import SLOTS, TOTAL

GroupKey: TypeAlias = tuple[Any, ...]
"""Texts of the group's fields; for a window the hour follows, as an int."""

Numbers: TypeAlias = tuple[tuple[str, Number], ...]
"""What an image adds: measure name and number."""


class Contribution(NamedTuple):
    """What one item image adds to one item of an aggregate."""

    program: Program
    group: GroupKey
    numbers: Numbers


class Late:
    """Stands for a contribution whose bucket's retention is over."""


LATE: Final = Late()

_Contribute: TypeAlias = Callable[[Image, float | None], Contribution | Late | None]


class Program:
    """One declaration, ready to run.

    Parameters
    ----------
    declaration : Aggregate or Window
        What to compile.

    Attributes
    ----------
    name : str
        The declaration's name.
    keeps_expired : bool
        Whether an item deleted by TTL stays counted.
    contribute : callable
        Takes an image and the record's creation time (seconds since 1970), gives its `Contribution`, None when it has
        none, or `LATE`; raises `MalformedImageError` for an image it cannot use.
    """

    __slots__ = ("_pk", "_sk", "_spread", "contribute", "declaration", "keeps_expired", "name")

    def __init__(self, declaration: Declaration) -> None:
        self.declaration = declaration
        self.name = declaration.name
        self._pk, self._sk = declaration.pk_template, declaration.sk_template
        self._spread = declaration.spread if isinstance(declaration, Aggregate) else 1
        self.keeps_expired = declaration.on_expiry == "keep"
        self.contribute: _Contribute = (
            _window(self, declaration) if isinstance(declaration, Window) else _aggregate(self, declaration)
        )

    def key(self, group: GroupKey, feed: str) -> dict[str, str]:
        """Render the key of a group's item.

        Parameters
        ----------
        group : tuple
            As in a `Contribution`.
        feed : str
            Where the numbers come from: a stream shard. Decides which item of a spread group it is.

        Returns
        -------
        dict of str to str
            Partition and sort key.
        """
        values = {**self.values(group), SPREAD_FIELD: str(zlib.crc32(feed.encode()) % self._spread)}
        return {
            name: template.render_texts([values[field] for field in template.fields])
            for name, template in ((PK, self._pk), (SK, self._sk))
        }

    def values(self, group: GroupKey) -> dict[str, str]:
        """Name the texts of a group.

        Parameters
        ----------
        group : tuple
            As in a `Contribution`.

        Returns
        -------
        dict of str to str
            Field to text; for a window also the start of the bucket.
        """
        values = dict(zip(self.declaration.fields, group, strict=False))
        if isinstance(self.declaration, Window):
            values[BUCKET_FIELD] = hour_text(group[-1])
        return values

    def unparsed(self, group: GroupKey, key: dict[str, str]) -> dict[str, str]:
        """Give the values to store as attributes, because a hashed key does not tell them.

        Parameters
        ----------
        group : tuple
            As in a `Contribution`.
        key : dict of str to str
            The group's key.

        Returns
        -------
        dict of str to str
            Field to text; empty when the key can be parsed.
        """
        return {
            name: text
            for template, rendered in ((self._pk, key[PK]), (self._sk, key[SK]))
            if is_hashed(rendered)
            for name, text in self.values(group).items()
            if name in template.fields and not is_reserved(name)
        }

    def expires_at(self, group: GroupKey) -> int | None:
        """Tell when a group's item may be deleted.

        Parameters
        ----------
        group : tuple
            As in a `Contribution`.

        Returns
        -------
        int or None
            Seconds since 1970; None for an item kept for good.
        """
        if not isinstance(self.declaration, Window) or self.declaration.retention is None:
            return None
        return int((group[-1] + 1) * HOUR + self.declaration.retention.total_seconds())


def _aggregate(program: Program, declaration: Aggregate) -> _Contribute:
    group_of = _group(declaration.fields)
    predicate = compile_condition(declaration.where) if declaration.where is not None else None
    measure_all = _measures(declaration)

    def contribute(image: Image, _: float | None) -> Contribution | None:
        if predicate is not None and not predicate(image):
            return None
        numbers = measure_all(image)
        return Contribution(program, group_of(image), numbers) if numbers else None

    return contribute


def _window(program: Program, declaration: Window) -> _Contribute:
    group_of = _group(declaration.fields)
    predicate: Predicate = compile_condition(declaration.where) if declaration.where else lambda _: True
    measure = _measure(declaration.measure)
    time, retention, tolerance = declaration.time, declaration.retention, declaration.future_tolerance
    keep = None if retention is None else retention.total_seconds()
    ahead = None if tolerance is None else tolerance.total_seconds()

    def contribute(image: Image, created: float | None) -> Contribution | Late | None:
        if not predicate(image):
            return None
        number = measure(image)
        if not number:
            return None
        seconds = event_seconds(_attribute(image, time))
        hour, second = divmod(seconds, HOUR)
        if keep is not None or ahead is not None:
            if created is None:
                raise MalformedImageError("the record lacks ApproximateCreationDateTime, which tells late from early")
            if ahead is not None and seconds > created + ahead:
                raise MalformedImageError(f"{time!r} lies {seconds - created:.0f} s in the future")
            if keep is not None and (hour + 1) * HOUR + keep <= created:
                if declaration.late == "quarantine":
                    raise MalformedImageError(f"{time!r} lies {created - seconds:.0f} s in the past: too late")
                return LATE
        return Contribution(program, (*group_of(image), hour), ((TOTAL, number), (SLOTS[second // MINUTE], number)))

    return contribute


def _group(fields: tuple[str, ...]) -> Callable[[Image], GroupKey]:
    if not fields:
        return lambda _: ()
    if len(fields) == 1:
        [field] = fields
        return lambda image: (_text(image, field),)
    return lambda image: tuple([_text(image, field) for field in fields])


def _measures(declaration: Aggregate) -> Callable[[Image], Numbers]:
    if all(isinstance(measure, Count) for measure in declaration.measures.values()):
        constant = tuple((name, 1) for name in declaration.measures)
        return lambda _: constant
    measures = [(name, _measure(measure)) for name, measure in declaration.measures.items()]
    return lambda image: tuple([(name, number) for name, measure in measures if (number := measure(image))])


def _measure(measure: Measure) -> Callable[[Image], Number]:
    if isinstance(measure, Count):
        return lambda _: 1
    attribute = measure.attribute
    return lambda image: _number(image, attribute)


def _attribute(image: Image, name: str) -> Any:
    try:
        return image[name]
    except KeyError:
        raise MalformedImageError(f"attribute {name!r} is missing") from None


def _text(image: Image, name: str) -> str:
    value = _attribute(image, name)
    text = value.get("S")
    if text is not None:
        return str(text)
    text = value.get("N")
    if text is None:
        raise MalformedImageError(f"attribute {name!r} is neither a string nor a number, which a key needs")
    return format_number(parse_number(text))


def _number(image: Image, name: str) -> Number:
    text = _attribute(image, name).get("N")
    if text is None:
        raise MalformedImageError(f"attribute {name!r} is no number")
    return parse_number(text)
