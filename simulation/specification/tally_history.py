"""Histories of a group, of its source items and generations, as steps of docs/spec/Tally.tla."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dynamodb_counters._backfill.state import VOID
from dynamodb_counters._commit.checkpoint_items import BOOK, Checkpoint, checkpoint_key
from dynamodb_counters._control.deployment_items import (
    Era,
    History,
    deployment_key,
    history_key,
    read_deployment,
    read_history,
)
from dynamodb_counters._control.run_items import cut_key, generation_of, run_key
from dynamodb_counters._control.run_logs import NO_CUT
from dynamodb_counters._control.statuses import generations_key, read_statuses
from dynamodb_counters._declarations import Aggregate, Declaration, Sum
from dynamodb_counters._declarations.generations import base_name, generation_number
from dynamodb_counters._fold.records import NEW, OLD, padded
from dynamodb_counters._items.table_schema import BASELINE, ERASED, PK, SK, TALLY_PREFIX, TYPE, WATERMARK_PREFIX
from dynamodb_counters._items.watermarks import sequence_of, shard_digest
from dynamodb_counters.testing._dynamodb.memory_stream import Record
from simulation.specification.tally_schedule import DEFINITIONS, MEASURE, SALE, WEIGHTS

_TALLY: Final = TALLY_PREFIX + MEASURE
GROUP_NAME: Final = DEFINITIONS[0].name

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TallyTrace:
    """History of a group in one schedule.

    Each generation has the shard of its item, the generation that it carries, what an amount of 1 contributes; the
    first record of each shard that it folds, and the first that it folds no more. Generations are counted from 0; a
    key is a shard and a number.
    """

    seed: int
    shards: int
    generations: list[tuple[int, int | None, int]]
    cuts: list[list[int]]
    ends: list[list[int | None]]
    keys: int
    log: list[dict[str, Any]]


class TallyHistory:
    """Numbers for the shards, keys, records and generations of one schedule."""

    def __init__(self, items: Iterable[Item], records: Sequence[tuple[str, Record]]) -> None:
        self._items = {(item[PK]["S"], item[SK]["S"]): item for item in items}
        self._history = _history(record for _, record in records)
        self._records = [(shard, record) for shard, record in records if _concerns(record)]
        self._declared = self._declarations()
        self._numbers = sorted(self._declared)
        self._carried = {each._carries.name for each in self._declared.values() if each._carries is not None}
        met = [shard for shard, record in self._records if type_of(record) != ""]
        self._shards = {shard: number for number, shard in enumerate(dict.fromkeys(met), 1)}
        self._folded: dict[str, list[str]] = {
            shard: [sequence_in(record) for at, record in self._records if at == shard and self._counts(record)]
            for shard in self._shards
        }
        self._marks = {
            WATERMARK_PREFIX + shard_digest(book): shard for shard in self._shards for book in self._books(shard)
        }
        self._keys: dict[str, tuple[int, int]] = {}
        self._homes: dict[int, int] = {}

    def trace(self, seed: int) -> TallyTrace:
        log = [*self._log(), {"op": "over"}]
        bounds = {number: [self._bounds(number, shard) for shard in self._shards] for number in self._numbers}
        return TallyTrace(
            seed,
            len(self._shards),
            [self._generation(number) for number in self._numbers],
            [[cut for cut, _ in bounds[number]] for number in self._numbers],
            [[end for _, end in bounds[number]] for number in self._numbers],
            max((index for _, index in self._keys.values()), default=1),
            log,
        )

    def _declarations(self) -> dict[int, Aggregate]:
        """By number, each generation that was ever folded; none of a void run, which may miss records."""
        found: dict[int, Aggregate] = {}
        runs = {era.run for era in self._history.eras if era.run}
        void = {generation_of(run) for run in runs if self._item(run_key(run)).get("phase") == {"S": VOID}}
        for era in self._history.eras:
            for declaration in self._folded_in(era):
                assert isinstance(declaration, Aggregate)
                number = generation_number(declaration.name)
                if number not in void:
                    found[number] = declaration
        return found

    def _books(self, shard: str) -> Iterator[str]:
        book = shard
        while item := self._item(checkpoint_key(shard_digest(book))):
            yield book
            book = f"{shard}{BOOK}{Checkpoint.of(item).successor}"

    def _item(self, key: Item) -> Item:
        return self._items.get((key[PK]["S"], key[SK]["S"]), {})

    def _generation(self, number: int) -> tuple[int, int | None, int]:
        declaration = self._declared[number]
        measure, before = declaration.measures[MEASURE], declaration._carries
        assert isinstance(measure, Sum)
        carries = None if before is None else self._numbers.index(generation_number(before.name))
        return self._homes.get(number, 1), carries, WEIGHTS[measure.attribute or MEASURE]

    def _counts(self, record: Record) -> bool:
        """Whether it is a record of a source item, or one that may be carried."""
        old, new = images_of(record)
        name = type_of(record)
        return name == SALE.name or (name in self._carried and (not new or held(old, _TALLY) != held(new, _TALLY)))

    def _bounds(self, number: int, shard: str) -> tuple[int, int | None]:
        """The first record of a shard that a generation folds, and the first one that it folds no more."""
        every = [record for at, record in self._records if at == shard]
        cuts = self._cuts(shard)
        name = self._declared[number].name
        folds = {}
        for record in every:
            folded = self._folded_in(self._history.at(created_at(record), sequence_in(record), cuts))
            folds[sequence_in(record)] = name in {declaration.name for declaration in folded}
        told = [folds[sequence] for sequence in self._folded[shard]]
        first = next((cut for run, cut in cuts.items() if generation_of(run) == number), "")
        cut = sum(sequence < first for sequence in self._folded[shard])
        end = told.index(False, cut) if False in told[cut:] else None
        # A generation is folded in one piece.
        assert not any(told[:cut])
        assert end is None or not any(told[end:])
        return cut + 1, None if end is None else end + 1

    def _folded_in(self, era: Era) -> tuple[Declaration, ...]:
        return read_deployment(self._item(deployment_key(era.deployment))) or ()

    def _cuts(self, shard: str) -> dict[str, str]:
        """By run, the first record of a shard that it counts."""
        every = [record for at, record in self._records if at == shard]
        return {era.run: self._cut(era.run, era.valid_from, shard, every) for era in self._history.eras if era.run}

    def _cut(self, run: str, since: float, shard: str, records: Iterable[Record]) -> str:
        stored = self._item(cut_key(run, shard))
        if stored:
            return str(stored["cut"]["S"])
        return next((sequence_in(record) for record in records if created_at(record) >= since), NO_CUT)

    def _log(self) -> Iterator[dict[str, Any]]:
        reads = 0
        for shard, record in self._records:
            old, new = images_of(record)
            if type_of(record) == "":
                status = read_statuses(new).get(GROUP_NAME)
                if status is not None and status.reads != reads:
                    reads = status.reads
                    yield {"op": "switch", "generation": self._numbers.index(reads)}
            elif type_of(record) == SALE.name:
                image = (held(new, MEASURE), ERASED in new) if new else None
                yield {"op": "put", "key": self._key(shard, record), "new": image}
            else:
                yield from self._changed(shard, generation_number(type_of(record)), old, new)

    def _changed(self, shard: str, number: int, old: Item, new: Item) -> Iterator[dict[str, Any]]:
        """Events of the group's item of a generation."""
        if number not in self._declared:
            return
        self._homes[number] = self._shards[shard]
        holds = {
            "generation": self._numbers.index(number),
            "value": held(new, MEASURE),
            "tally": held(new, _TALLY),
        }
        moved = [name for name in new if name in self._marks and new[name] != old.get(name)]
        if not new:
            yield {"op": "gone", "generation": holds["generation"]}
        elif moved:
            [name] = moved
            source = self._marks[name]
            place = 1 + self._folded[source].index(sequence_of(new[name]))
            yield {"op": "fold", "shard": self._shards[source], "last": place, **holds}
        elif BASELINE in new and new[BASELINE] != old.get(BASELINE):
            yield {"op": "base", **holds}
        elif (by := held(new, MEASURE) - held(old, MEASURE)) or holds["tally"] != held(old, _TALLY):
            yield {"op": "direct", "by": by, **holds}

    def _key(self, shard: str, record: Record) -> tuple[int, int]:
        text = record["dynamodb"]["Keys"][PK]["S"]
        if text not in self._keys:
            number = self._shards[shard]
            self._keys[text] = number, 1 + sum(home == number for home, _ in self._keys.values())
        return self._keys[text]


def _history(records: Iterable[Record]) -> History:
    """Every era there ever was; the table forgets old ones."""
    eras: tuple[Era, ...] = ()
    for record in records:
        found = read_history(images_of(record)[1]) if record["dynamodb"]["Keys"] == history_key() else None
        if found is not None:
            first = found.eras[0]
            eras = (*eras[: eras.index(first) if first in eras else 0], *found.eras)
    return History(eras)


def _concerns(record: Record) -> bool:
    keys, name = record["dynamodb"]["Keys"], base_name(_raw_type(record))
    return name in (SALE.name, GROUP_NAME) or (keys == generations_key())


def type_of(record: Record) -> str:
    """Type of a sale or group; empty for any other item."""
    name = _raw_type(record)
    return name if base_name(name) in (SALE.name, GROUP_NAME) else ""


def _raw_type(record: Record) -> str:
    old, new = images_of(record)
    return str((new or old).get(TYPE, {}).get("S", ""))


def images_of(record: Record) -> tuple[Item, Item]:
    change = record["dynamodb"]
    return change.get(OLD) or {}, change.get(NEW) or {}


def held(item: Item, name: str) -> int:
    return int(item.get(name, {}).get("N", "0"))


def sequence_in(record: Record) -> str:
    return padded(record["dynamodb"]["SequenceNumber"])


def created_at(record: Record) -> float:
    return float(record["dynamodb"]["ApproximateCreationDateTime"])
