"""The fold: a batch of changes in, one delta per group out. Pure: no clock, no I/O.

For a change from old image O to new image N, a group's delta is ``contribution(N) - contribution(O)``. It covers
inserts, corrections and deletions; a deletion by TTL counts for nothing unless the declaration says so. An event is
late or early by its record's creation time, so every delivery of a record gives the same result. Each event of a chunk
counts as if it came as a record of its own.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from decimal import localcontext
from typing import TypeAlias

from dynamodb_counters._fold.layouts import GroupKey, GroupRef, ItemLayout, is_split, require_storable_group
from dynamodb_counters._fold.plan import FOLD_ERRORS, Contribution, EarlyError, Plan, Program, Source
from dynamodb_counters._fold.records import NEW, OLD, Change, Record, is_erasure, is_expiry, single_image
from dynamodb_counters._items.chunks import Row, decode_chunk, lost_rows
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.conversions import EXACT, Number
from dynamodb_counters._items.schema import CHUNK, COUNTED_IN, ERASED, TTL, TYPE
from dynamodb_counters.errors import MalformedImageError

Names: TypeAlias = frozenset[str]
AppliedThrough: TypeAlias = Mapping[GroupRef, str]  # The padded number of the last record that each item has applied.
Sums: TypeAlias = Mapping[GroupRef, Mapping[str, Number]]


@dataclass(eq=False, slots=True)
class Delta:
    """Addition of a batch to one group, and the padded sequence numbers of the first and last record behind it."""

    layout: ItemLayout
    group: GroupKey
    first: str
    last: str
    measures: dict[str, Number] = field(default_factory=dict)

    @property
    def ref(self) -> GroupRef:
        return self.layout.name, self.group


@dataclass(frozen=True, slots=True)
class InvalidImage:
    """An image that the declarations `names` (none: all) could not fold; `record` holds no other image."""

    sequence: str
    image_name: str
    record: Record
    reason: str
    names: tuple[str, ...] = ()

    @property
    def entry_id(self) -> str:
        return f"{self.sequence}#{self.image_name}"


@dataclass(slots=True)
class Folded:
    """One delta per group, what goes to quarantine instead, and how many contributions came too late, or too early."""

    deltas: list[Delta] = field(default_factory=list)
    invalid: list[InvalidImage] = field(default_factory=list)
    late: int = 0
    early: int = 0
    skipped_types: Counter[str] = field(default_factory=Counter)
    """Changes of items that `Items` would count but for a type that nothing declares, by type."""
    changes: int = 0  # How many were folded, if there was a limit.


def _record_of_row(record: Record, image_name: str, row: Row, event: str) -> Record:
    """Return the record that an event would have come in if it were an item of its own."""
    images = record["dynamodb"]
    image = {**row.values, TYPE: {"S": event}}
    # The quarantine keeps a copy for no longer than the chunk would have been.
    if TTL in images[image_name]:
        image[TTL] = images[image_name][TTL]
    if is_erasure(record):
        image[ERASED] = {"BOOL": True}
    # Rows that a new chunk takes back, and that an expired one had accepted, leave the counts.
    kind, side = ("INSERT", NEW) if (row.sign == "+") == (image_name == NEW) else ("REMOVE", OLD)
    change = {name: value for name, value in images.items() if name not in (NEW, OLD)}
    return {**record, "eventName": kind, "dynamodb": {**change, side: image}}


def _negated(added: Iterable[Contribution]) -> list[Contribution]:
    return [(layout, group, tuple([(name, -number) for name, number in numbers])) for layout, group, numbers in added]


def fold(
    plan: Plan, changes: Iterable[Change], applied_through: AppliedThrough | None = None, limit: float = math.inf
) -> Folded:
    """Fold the changes of one shard, in order, until there are so many deltas and invalid images."""
    # With `applied_through`, only those groups, and of each the records after the one that it has applied.
    folding = _Folding(plan, applied_through)
    folded, deltas = folding.folded, folding.deltas
    with localcontext(EXACT):
        for folded.changes, change in enumerate(changes, 1):
            folding.add(change)
            if len(deltas) + len(folded.invalid) >= limit:
                break
    folded.deltas = list(deltas.values())
    return folded


class _Folding:
    def __init__(self, plan: Plan, applied_through: AppliedThrough | None) -> None:
        self._plan, self._applied_through = plan, applied_through
        self.folded = Folded()
        self.deltas: dict[GroupRef, Delta] = {}

    def add(self, change: Change) -> None:
        images = change.record["dynamodb"]
        old, new = images.get(OLD), images.get(NEW)
        plus: list[Contribution] = []
        minus: list[Contribution] = []
        if change.failure:
            self._leave(change, NEW, change.failure, record=change.record)
        elif change.delta is not None:
            plus = self._quarantined_delta(change)
        elif change.record.get("eventName") in ("INSERT", "MODIFY") and not change.is_foreign and is_split(old, new):
            return
        elif old is None and new is None:
            reason = "the record holds no image: the stream must carry new and old ones, and huge ones are not kept"
            self._leave(change, NEW, reason, record=change.record)
        else:
            plus = [] if new is None else self._contributions(change, NEW)
            minus = [] if old is None else self._contributions(change, OLD)
            if plus and minus:
                # Contributions of both images have not changed and must cause no write.
                plus, minus = _difference(plus, minus)
        if plus:
            self._add_to_deltas(1, plus, change.sequence)
        if minus:
            self._add_to_deltas(-1, minus, change.sequence)

    def _contributions(self, change: Change, image_name: str) -> list[Contribution]:
        """Return those of an image; leave one that declarations cannot fold to quarantine, for them alone."""
        failed: dict[str, Exception] = {}
        try:
            contributions = self._evaluate(change, image_name, failed)
        except FOLD_ERRORS as error:
            self._leave(change, image_name, reason_of(error), tuple(sorted(change.names or ())))
            return []
        if change.names is not None:
            missing = LookupError("it is no longer declared")
            failed |= {name: missing for name in change.names if name not in self._plan.programs}
        if failed:
            self._leave(change, image_name, _reasons(failed), tuple(failed))
        return contributions

    def _evaluate(self, change: Change, image_name: str, failed: dict[str, Exception]) -> list[Contribution]:
        images = change.record["dynamodb"]
        image, new = images[image_name], images.get(NEW)
        sources = self._plan.sources(image, is_foreign=change.is_foreign)
        is_last = image_name == NEW or new is None
        # Where some items are looked at whatever they are, none without a type is of no source.
        if not sources and is_last and self._plan.blind and change.is_foreign is None and self._plan.skips(image):
            self.folded.skipped_types[str(image[TYPE].get("S", ""))] += 1
        contributions: list[Contribution] = []
        for source in sources:
            programs = self._programs(source, change, image_name)
            if source.packs:
                if programs or not is_erasure(change.record):
                    contributions += self._chunk(source, programs, change, image_name, failed)
            elif source.pages is None:
                contributions += self._of_item(source, programs, image, change, failed)
            else:
                unlike = images.get(OLD) if image_name == NEW else new
                for index, group in enumerate(source.pages.groups(image, unlike)):
                    errors: dict[str, Exception] = {}
                    remaining = _not_aside(programs, change, f"{image_name}#{index}")
                    contributions += self._of_item(source, remaining, group, change, errors)
                    if errors:
                        # Its group alone is left to quarantine.
                        alone = single_image({**change.record, "dynamodb": {**images, image_name: group}}, image_name)
                        self._leave(change, f"{image_name}#{index}", _reasons(errors), tuple(errors), alone)
        return contributions

    def _of_item(
        self, source: Source, programs: Sequence[Program], image: Image, change: Change, failed: dict[str, Exception]
    ) -> list[Contribution]:
        try:
            view = source.view(image)
        except FOLD_ERRORS as error:
            failed |= {program.layout.name: error for program in programs}
            return []
        if view is None:
            return []
        contributions: list[Contribution] = []
        for program in programs:
            try:
                in_time = program.contribute(view, change.created)
            except FOLD_ERRORS as error:
                failed[program.layout.name] = error
                self.folded.early += isinstance(error, EarlyError)
                continue
            if in_time is None:
                self.folded.late += 1
            else:
                contributions += in_time
        return contributions

    def _chunk(
        self, source: Source, programs: Sequence[Program], change: Change, image_name: str, failed: dict[str, Exception]
    ) -> list[Contribution]:
        """Return those of the events of a chunk; leave each that cannot be folded to quarantine on its own."""
        images = change.record["dynamodb"]
        try:
            chunk = decode_chunk(images[image_name][CHUNK])
            if is_erasure(change.record):
                chunk = lost_rows(chunk, decode_chunk(images[NEW][CHUNK]))
        except FOLD_ERRORS as error:
            failed |= {program.layout.name: error for program in programs}
            return []
        by_row: list[Program] = []
        contributions: list[Contribution] = []
        for program in programs:
            # By columns, no row is looked at that may be aside.
            by_columns = None if change.aside else program.by_columns
            columns = by_columns(chunk) if by_columns is not None else None
            if columns is None:
                by_row.append(program)
            else:
                contributions += columns
        for index, row in enumerate(chunk.all_rows() if by_row else ()):
            if row.sign == "0":
                continue
            errors: dict[str, Exception] = {}
            remaining = _not_aside(by_row, change, f"{image_name}#{index}") if change.aside else by_row
            of_row = self._of_item(source, remaining, row.values, change, errors)
            contributions += of_row if row.sign == "+" else _negated(of_row)
            if errors:
                record = _record_of_row(change.record, image_name, row, source.packs)
                self._leave(change, f"{image_name}#{index}", _reasons(errors), tuple(errors), record)
        return contributions

    def _programs(self, source: Source, change: Change, image_name: str) -> Sequence[Program]:
        programs: Sequence[Program] = source.programs
        if source.insert_is_counted and change.record.get("eventName") == "INSERT":
            # The transaction has counted in names that were complete.
            names = change.record["dynamodb"][image_name].get(COUNTED_IN, {}).get("SS", ())
            programs = [program for program in programs if program.layout.name not in names]
        is_gone = is_expiry(change.record, source.ttl) if image_name == OLD else is_erasure(change.record)
        if is_gone:
            programs = [program for program in programs if not program.keeps]
        if change.names is not None:
            programs = [program for program in programs if program.layout.name in change.names]
        return _not_aside(programs, change, image_name)

    def _quarantined_delta(self, change: Change) -> list[Contribution]:
        assert change.delta is not None
        name, group, numbers = change.delta
        program = self._plan.programs.get(name)
        if (change.names is not None and name not in change.names) or change.is_aside(NEW, name):
            return []
        try:
            if program is None:
                raise LookupError(f"{name!r} is no longer declared")
            require_storable_group(group)
            if program.layout.is_late(group, change.created):
                self.folded.late += 1
                return []
            return [(program.layout, group, numbers)]
        except FOLD_ERRORS as error:
            # The redrive itself goes to quarantine, to be redriven again once the aggregate is back.
            self._leave(change, NEW, reason_of(error), (name,), change.record)
            return []

    def _leave(
        self, change: Change, name: str, reason: str, names: tuple[str, ...] = (), record: Record | None = None
    ) -> None:
        record = record or single_image(change.record, name)
        if name in change.aside:
            # What is aside for a declaration is left for the rest.
            declared = names or sorted(self._plan.programs)
            names = tuple(declaration for declaration in declared if not change.is_aside(name, declaration))
            if not names:
                return
            # Where none has an entry of its own, one of an earlier delivery may still land there, for the same.
            if change.aside[name][1]:
                name = f"{name}#{zlib.crc32(repr(names).encode()):08x}"
        self.folded.invalid.append(InvalidImage(change.sequence, name, record, reason, names))

    def _add_to_deltas(self, sign: int, contributions: Iterable[Contribution], sequence: str) -> None:
        applied_through, deltas = self._applied_through, self.deltas
        for layout, group, numbers in contributions:
            ref = (layout.name, group)
            if applied_through is not None and sequence <= applied_through.get(ref, sequence):
                continue
            delta = deltas.get(ref)
            if delta is None:
                delta = deltas[ref] = Delta(layout, group, sequence, sequence)
            delta.last = sequence
            measures = delta.measures
            for name, number in numbers:
                measures[name] = measures.get(name, 0) + sign * number


def _not_aside(programs: Sequence[Program], change: Change, image_name: str) -> Sequence[Program]:
    if image_name not in change.aside:
        return programs
    return [program for program in programs if not change.is_aside(image_name, program.layout.name)]


def _difference(plus: list[Contribution], minus: list[Contribution]) -> tuple[list[Contribution], list[Contribution]]:
    """Return contributions without those of both, of which each cancels one: a chunk may contribute one repeatedly."""
    times: dict[Contribution, int] = {}
    for contribution in minus:
        times[contribution] = times.get(contribution, 0) + 1
    added: list[Contribution] = []
    for contribution in plus:
        if times.get(contribution):
            times[contribution] -= 1
        else:
            added.append(contribution)
    return added, [contribution for contribution, number in times.items() for _ in range(number)]


def _reasons(failed: Mapping[str, Exception]) -> str:
    return "; ".join(f"{name}: {reason_of(error)}" for name, error in failed.items())


def surplus_of(plan: Plan, changes: Iterable[Change]) -> Names:
    """Return the names that go on counting items that expire here: no item shows them later."""
    names: set[str] = set()
    for change in changes:
        record = change.record
        if change.delta is not None or record.get("eventName") != "REMOVE":
            continue
        try:
            sources = plan.sources(record["dynamodb"][OLD], is_foreign=change.is_foreign)
            gone = [source for source in sources if is_expiry(record, source.ttl)]
        except FOLD_ERRORS:
            # The fold leaves it to quarantine.
            continue
        names.update(program.layout.name for source in gone for program in source.programs if program.keeps)
    return frozenset(names)


def reason_of(error: Exception) -> str:
    return str(error) if isinstance(error, MalformedImageError) else f"{type(error).__name__}: {error}"


def folded_alone(
    plan: Plan, names: Names, image: Image | None, at: float, *, is_foreign: bool | None, keys: Image, origin: str
) -> Folded:
    """Fold an item by itself, early or late as of a time; `origin` is the stream or the table that it is of."""
    if image is None:
        return Folded()
    # No insertion: what a transaction has counted counts, too.
    images = {NEW: image, "Keys": keys, "SequenceNumber": "1", "ApproximateCreationDateTime": at}
    record = {"eventName": "SCAN", "eventSourceARN": origin, "dynamodb": images}
    return _folded(plan, Change(record, is_foreign=is_foreign), names)


def sums_of(folded: Folded) -> Sums:
    return {delta.ref: delta.measures for delta in folded.deltas if any(delta.measures.values())}


def _folded(plan: Plan, change: Change, names: Names) -> Folded:
    restricted = copy(change)
    restricted.names = names if change.names is None else names & change.names
    return fold(plan, [restricted])
