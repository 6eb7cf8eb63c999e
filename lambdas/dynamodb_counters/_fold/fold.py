"""The fold: a batch of stream records in, one delta an item out. Pure: no clock, no I/O.

For a record with old image O and new image N an aggregate's delta is ``contribution(N) - contribution(O)``. That covers
inserts, corrections and deletions; a deletion by TTL is none unless the aggregate says so. Whether an event is late or
from the future is judged by the record's own creation time, so that every delivery of a record gives the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import localcontext
from typing import Final, TypeAlias

from dynamodb_counters._declarations import Aggregate, Declaration, Event, Items, require_consistent
from dynamodb_counters._fold.compiler import Program, as_source
from dynamodb_counters._fold.contributions import LATE, Contribution
from dynamodb_counters._fold.deltas import Delta, Folded, Origin, Unfoldable
from dynamodb_counters._fold.quarantine_content import RECORD, SUM, released, unpack
from dynamodb_counters._fold.records import NEW, OLD, Record, alone, counted_in, is_expiry, padded
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.conditions import Predicate, compile_condition
from dynamodb_counters._items.decimals import EXACT, parse_number
from dynamodb_counters._items.table_schema import ONCE_SUFFIX, TYPE
from dynamodb_counters.errors import MalformedImageError

Changes: TypeAlias = tuple[Sequence[Contribution], Sequence[Contribution]]
"""What a record adds, and what it takes back."""

# What a record of any shape can make the compiled functions raise.
_UNFOLDABLE: Final = (MalformedImageError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


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
        self._by_type: dict[str, tuple[_Source]] = {}
        self._untyped: dict[str, _Untyped] = {}
        self._names = {*self._by_name, *(declaration.source.name for declaration in declarations)}
        for program in self._by_name.values():
            source = program.declaration.source
            if isinstance(source, Items):
                known = self._untyped.setdefault(source.name, _Untyped(compile_condition(source.where), _Source()))
                known.source.programs.append(program)
                continue
            show = as_source(source) if isinstance(source, Aggregate) else None
            [found] = self._by_type.setdefault(source.name, (_Source(show),))
            found.programs.append(program)
            if isinstance(source, Event):
                self._by_type[source.name + ONCE_SUFFIX] = (_Source(programs=found.programs, inserted_counted=True),)

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
        old = images.get(OLD)
        if images.get(NEW) is None:
            if old is not None:
                return (), self._side(OLD, record, arrival, sequence, folded, known=known)
            reason = "the record holds no image: the stream must carry new and old ones, and huge ones are not kept"
            folded.unfoldable.append(Unfoldable(sequence, NEW, record, reason))
            return (), ()
        plus = self._side(NEW, record, arrival, sequence, folded, known=known)
        if old is None:
            return plus, ()
        minus = self._side(OLD, record, arrival, sequence, folded, known=known)
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
            images = record["dynamodb"]
            sources = self._sources(images[side])
            if not sources and side == OLD and images.get(NEW) is not None:
                sources = self._renamed(images[OLD], images[NEW])
            return self._evaluate(sources, side, record, arrival, folded) if sources else []
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

    def _evaluate(
        self, sources: Iterable[_Source], side: str, record: Record, arrival: Record, folded: Folded
    ) -> list[Contribution]:
        image: Image = record["dynamodb"][side]
        created = arrival.get("ApproximateCreationDateTime")
        expired = side == OLD and is_expiry(record)
        contributions: list[Contribution] = []
        for source in sources:
            only = None
            if source.inserted_counted:
                if record.get("eventName") == "INSERT":
                    continue
                only = counted_in(image)
            shown = image if source.show is None else source.show(image)
            if shown is None:
                continue
            for program in source.programs:
                if (expired and program.keeps_expired) or (only is not None and program.name not in only):
                    continue
                found = program.contribute(shown, created)
                if found is LATE:
                    folded.late += 1
                contributions += found
        return contributions

    def _sources(self, image: Image) -> Sequence[_Source]:
        """Tell which declared sources an item belongs to."""
        typed = image.get(TYPE)
        if typed is None:
            return [untyped.source for untyped in self._untyped.values() if untyped.holds(image)]
        return self._by_type.get(typed.get("S", ""), ())

    def _renamed(self, old: Image, new: Image) -> Sequence[_Source]:
        """Tell what a group's item was before its aggregate was renamed: what it is now."""
        unknown = TYPE in old and old[TYPE].get("S") not in self._names
        return [source for source in self._sources(new) if unknown and source.show is not None]


@dataclass(slots=True)
class _Source:
    """What is declared over the items of one source."""

    show: Callable[[Image], Image | None] | None = None
    programs: list[Program] = field(default_factory=list)
    inserted_counted: bool = False
    """Whether these are counted by the transaction that inserts them."""


@dataclass(slots=True)
class _Untyped:
    holds: Predicate
    source: _Source


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
