"""The fold of a chunk: each of its events counts as if it came as a record of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dynamodb_counters._fold.contributions import LATE, UNFOLDABLE, Contribution
from dynamodb_counters._fold.plan import Program
from dynamodb_counters._fold.records import NEW, OLD, Record, is_erasure
from dynamodb_counters._items.chunks import Chunk, Row
from dynamodb_counters._items.table_schema import ERASED, TTL, TYPE


@dataclass(slots=True)
class FoldedChunk:
    """Contributions of a chunk, events of it that cannot be folded, and how many contributions came too late."""

    contributions: list[Contribution] = field(default_factory=list)
    unfoldable: list[tuple[int, Row, dict[str, Exception]]] = field(default_factory=list)
    """Rows, after the place of each, and by declaration why it could not be folded."""
    late: int = 0


def fold_chunk(chunk: Chunk, programs: Iterable[Program], created: float | None) -> FoldedChunk:
    """Fold by columns for the programs that can, row by row for the others."""
    folded, by_row = FoldedChunk(), []
    for program in programs:
        found = program.by_columns(chunk) if program.by_columns is not None else None
        if found is None:
            by_row.append(program)
        else:
            folded.contributions += found
    if by_row:
        for index, row in enumerate(chunk.all_rows()):
            if row.sign != "0":
                _fold_row(folded, index, row, by_row, created)
    return folded


def record_of_row(record: Record, image_name: str, row: Row, event: str) -> Record:
    """The record that an event would have come in if it were an item of its own."""
    images = record["dynamodb"]
    change = {name: value for name, value in images.items() if name not in (NEW, OLD)}
    image = {**row.values, TYPE: {"S": event}}
    if TTL in images[image_name]:
        image[TTL] = images[image_name][TTL]
    if is_erasure(record):
        image[ERASED] = {"BOOL": True}
    # Rows that a new chunk takes back, and that an expired one had accepted, leave the counts.
    if (row.sign == "+") == (image_name == NEW):
        return {**record, "eventName": "INSERT", "dynamodb": {**change, NEW: image}}
    return {**record, "eventName": "REMOVE", "dynamodb": {**change, OLD: image}}


def _fold_row(folded: FoldedChunk, index: int, row: Row, programs: Sequence[Program], created: float | None) -> None:
    failed: dict[str, Exception] = {}
    for program in programs:
        try:
            found = program.contribute(row.values, created)
        except UNFOLDABLE as error:
            failed[program.layout.name] = error
            continue
        if found is LATE:
            folded.late += 1
        folded.contributions += found if row.sign == "+" else _negated(found)
    if failed:
        folded.unfoldable.append((index, row, failed))


def _negated(contributions: Iterable[Contribution]) -> list[Contribution]:
    return [
        (layout, group, tuple([(name, -number) for name, number in numbers]))
        for layout, group, numbers in contributions
    ]
