"""The fold: a batch of stream records in, one delta an item out. Pure: no clock, no I/O.

For a record with old image O and new image N an aggregate's delta is ``contribution(N) - contribution(O)``. That covers
inserts, corrections and deletions; a deletion by TTL is none unless the aggregate says so. Whether an event is late or
from the future is judged by the record's own creation time, so that every delivery of a record gives the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import localcontext
from typing import Any, Final, TypeAlias

from dynamodb_counters.attributes import Image
from dynamodb_counters.compiler import Program, as_source
from dynamodb_counters.conditions import Predicate, compile_condition
from dynamodb_counters.contributions import Contribution, GroupKey, Late
from dynamodb_counters.decimals import EXACT, Number, parse_number
from dynamodb_counters.declarations import Aggregate, Declaration, Items, require_consistent
from dynamodb_counters.errors import MalformedImageError
from dynamodb_counters.quarantine import RECORD, SUM, released, unpack
from dynamodb_counters.schema import COUNTED_IN, ONCE_SUFFIX, SEQUENCE_DIGITS, TYPE

Record: TypeAlias = Mapping[str, Any]
"""A stream record as Lambda hands it over."""

Origin: TypeAlias = tuple[str, GroupKey]
"""Names an item before its key is rendered: declaration and group."""

Changes: TypeAlias = tuple[Sequence[Contribution], Sequence[Contribution]]
"""What a record adds, and what it takes back."""

# What a record of any shape can make the compiled functions raise.
_UNFOLDABLE: Final = (MalformedImageError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

NEW: Final = "NewImage"
OLD: Final = "OldImage"

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/time-to-live-ttl-streams.html
_TTL_PRINCIPAL: Final = "dynamodb.amazonaws.com"


class Delta:
    """What a batch adds to one item, and which records it comes from.

    Attributes
    ----------
    program : Program
        The compiled declaration the item belongs to.
    group : str or tuple
        The item's group.
    first, last : str
        Padded sequence numbers of the first and last record that contribute.
    measures : dict of str to int or Decimal
        What to add.
    """

    __slots__ = ("first", "group", "last", "measures", "program")

    def __init__(self, program: Program, group: GroupKey, sequence: str) -> None:
        self.program = program
        self.group = group
        self.first = sequence
        self.last = sequence
        self.measures: dict[str, Number] = {}

    @property
    def origin(self) -> Origin:
        """Declaration and group."""
        return self.program.name, self.group


@dataclass(frozen=True, slots=True)
class Unfoldable:
    """An image that could not be folded.

    Parameters
    ----------
    sequence : str
        The padded sequence number of its record.
    side : str
        Which image of the record it is: ``NewImage`` or ``OldImage``.
    record : mapping
        The record, with this image only.
    reason : str
        What is wrong with it.
    """

    sequence: str
    side: str
    record: Record
    reason: str

    @property
    def place(self) -> str:
        """What tells it from others of its shard."""
        return f"{self.sequence}#{self.side}"


@dataclass(slots=True)
class Folded:
    """What a batch comes to.

    Parameters
    ----------
    deltas : list of Delta
        One an item.
    unfoldable : list of Unfoldable
        Images for quarantine; none of their contributions is in `deltas`.
    late : int
        Contributions dropped because their bucket's retention is over.
    """

    deltas: list[Delta] = field(default_factory=list)
    unfoldable: list[Unfoldable] = field(default_factory=list)
    late: int = 0


class Plan:
    """Declarations compiled for folding.

    Parameters
    ----------
    declarations : tuple of Aggregate and Window
        All of one table.

    Raises
    ------
    InvalidArgumentError
        They contradict each other.
    """

    def __init__(self, declarations: tuple[Declaration, ...]) -> None:
        require_consistent(declarations)
        self._by_name = {declaration.name: Program(declaration) for declaration in declarations}
        self._by_source: dict[str, list[Program]] = {}
        self._show: dict[str, Callable[[Image], Image | None]] = {}
        self._untyped: dict[str, Predicate] = {}
        self._names = {*self._by_name, *(declaration.source.name for declaration in declarations)}
        for program in self._by_name.values():
            source = program.declaration.source
            self._by_source.setdefault(source.name, []).append(program)
            if isinstance(source, Aggregate):
                self._show[source.name] = as_source(source)
            elif isinstance(source, Items):
                self._untyped[source.name] = compile_condition(source.where)

    def fold(
        self,
        records: Iterable[Record],
        floors: Mapping[Origin, str] | None = None,
        known: Collection[str] = (),
    ) -> Folded:
        """Fold a batch.

        Parameters
        ----------
        records : iterable of mapping
            Records of one shard, in order.
        floors : mapping, optional
            Fold again for these items only, and for each only records after the given padded sequence number.
        known : collection of str, optional
            Places of images that quarantine holds already, and which are left to it.

        Returns
        -------
        Folded
            Deltas, unfoldable records and the number of late contributions.
        """
        folded = Folded()
        deltas: dict[Origin, Delta] = {}
        with localcontext(EXACT):
            for record in records:
                arrival = record["dynamodb"]
                sequence = padded(arrival["SequenceNumber"])
                release = released(arrival) if OLD in arrival else None
                if release is None:
                    plus, minus = self._changes(record, arrival, sequence, folded, known)
                elif f"{sequence}#{NEW}" in known:
                    continue
                else:
                    plus, minus = self._released(release, record, sequence, folded)
                if plus:
                    _add(deltas, 1, plus, sequence, floors)
                if minus:
                    _add(deltas, -1, minus, sequence, floors)
        folded.deltas = list(deltas.values())
        return folded

    def _changes(
        self, record: Record, arrival: Record, sequence: str, folded: Folded, known: Collection[str] = ()
    ) -> Changes:
        images = record["dynamodb"]
        new, old = images.get(NEW), images.get(OLD)
        if new is None and old is None:
            reason = "the record holds no image: the stream must carry new and old ones, and huge ones are not kept"
            folded.unfoldable.append(Unfoldable(sequence, NEW, record, reason))
        plus = self._side(NEW, record, arrival, sequence, folded, known=known) if new is not None else []
        minus = self._side(OLD, record, arrival, sequence, folded, known=known) if old is not None else []
        if not (plus and minus):
            return plus, minus
        # What both images contribute alike has not changed, and must cause no write.
        return [part for part in plus if part not in minus], [part for part in minus if part not in plus]

    def _side(
        self, side: str, record: Record, arrival: Record, sequence: str, folded: Folded, *, known: Collection[str]
    ) -> list[Contribution]:
        """Give what one image contributes: nothing, where quarantine has it or must take it."""
        if known and f"{sequence}#{side}" in known:
            return []
        try:
            return self._evaluate(record, side, arrival, folded)
        except _UNFOLDABLE as error:
            folded.unfoldable.append(Unfoldable(sequence, side, alone(record, side), _reason(error)))
            return []

    def _released(self, release: Image, record: Record, sequence: str, folded: Folded) -> Changes:
        """Fold what quarantine has released; what it holds is judged by the time of its release."""
        try:
            if SUM not in release:
                held = unpack(release[RECORD])
                again = released(held["dynamodb"])
                if again is not None:
                    return self._released(again, record, sequence, folded)
                return self._changes(held, record["dynamodb"], sequence, folded)
            content = unpack(release[SUM])
            numbers = tuple((name, parse_number(text)) for name, text in content["numbers"].items())
            return [(self._by_name[content["name"]], tuple(content["group"]), numbers)], ()
        except _UNFOLDABLE as error:
            # Such as a sum of an aggregate that is declared no more: the release itself is kept, to be released again.
            folded.unfoldable.append(Unfoldable(sequence, NEW, record, _reason(error)))
            return (), ()

    def _evaluate(self, record: Record, side: str, arrival: Record, folded: Folded) -> list[Contribution]:
        images = record["dynamodb"]
        image: Image = images[side]
        sources = self._sources(image)
        if not sources and side == OLD and images.get(NEW) is not None:
            sources = self._renamed(image, images[NEW])
        if not sources:
            return []
        only = counted_once(image)
        if only is not None and record.get("eventName") == "INSERT":
            return []  # Counted by the transaction that inserted it.
        created = arrival.get("ApproximateCreationDateTime")
        expired = side == OLD and is_expiry(record)
        contributions: list[Contribution] = []
        for source in sources:
            show = self._show.get(source)
            shown = image if show is None else show(image)
            if shown is None:
                continue
            for program in self._by_source[source]:
                if (expired and program.keeps_expired) or (only is not None and program.name not in only):
                    continue
                found = program.contribute(shown, created)
                if isinstance(found, Late):
                    folded.late += 1
                else:
                    contributions += found
        return contributions

    def _sources(self, image: Image) -> Sequence[str]:
        """Tell which declared sources an item belongs to."""
        typed = image.get(TYPE)
        if typed is None:
            return [name for name, holds in self._untyped.items() if holds(image)]
        name = typed.get("S", "").removesuffix(ONCE_SUFFIX)
        return (name,) if name in self._by_source and name not in self._untyped else ()

    def _renamed(self, old: Image, new: Image) -> Sequence[str]:
        """Tell what a group's item was before its aggregate was renamed: what it is now."""
        unknown = TYPE in old and old[TYPE].get("S") not in self._names
        return [name for name in self._sources(new) if unknown and name in self._show]


def alone(record: Record, side: str) -> Record:
    """Give a record with one of its images only.

    Parameters
    ----------
    record : mapping
        A stream record.
    side : str
        ``NewImage`` or ``OldImage``.

    Returns
    -------
    dict
        What is to be counted when that image can be folded.
    """
    other = OLD if side == NEW else NEW
    return {**record, "dynamodb": {name: value for name, value in record["dynamodb"].items() if name != other}}


def counted_once(image: Image) -> list[str] | None:
    """Tell what a transaction has counted an event in.

    Parameters
    ----------
    image : mapping
        An item image.

    Returns
    -------
    list of str or None
        Names of declarations; None for an item that the stream counts from its insertion on.
    """
    kind = image.get(TYPE)
    if kind is None or not kind.get("S", "").endswith(ONCE_SUFFIX):
        return None
    return list(image.get(COUNTED_IN, {}).get("SS", ()))


def padded(sequence: str) -> str:
    """Pad a sequence number so that string order is number order.

    Parameters
    ----------
    sequence : str
        21 to 40 digits.

    Returns
    -------
    str
        40 digits.

    Raises
    ------
    MalformedImageError
        It is not made of at most 40 digits.

    Examples
    --------
    >>> padded("7")
    '0000000000000000000000000000000000000007'
    """
    if len(sequence) > SEQUENCE_DIGITS or not sequence.isdecimal():
        raise MalformedImageError(f"sequence number {sequence!r} is not 1 to {SEQUENCE_DIGITS} digits")
    return sequence.zfill(SEQUENCE_DIGITS)


def is_expiry(record: Record) -> bool:
    """Tell whether a record was made by the TTL process.

    Parameters
    ----------
    record : mapping
        A stream record.

    Returns
    -------
    bool
        True for a deletion by DynamoDB itself.
    """
    identity = record.get("userIdentity") or {}
    return identity.get("type") == "Service" and identity.get("principalId") == _TTL_PRINCIPAL


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _add(
    deltas: dict[Origin, Delta],
    sign: int,
    contributions: Iterable[Contribution],
    sequence: str,
    floors: Mapping[Origin, str] | None,
) -> None:
    for program, group, numbers in contributions:
        origin = (program.name, group)
        if floors is not None and sequence <= floors.get(origin, sequence):
            continue
        delta = deltas.get(origin)
        if delta is None:
            delta = deltas[origin] = Delta(program, group, sequence)
        delta.last = sequence
        measures = delta.measures
        for name, number in numbers:
            measures[name] = measures.get(name, 0) + sign * number
