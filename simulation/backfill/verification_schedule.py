"""A schedule of verifications beside live traffic: they find what somebody spoiled, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from dynamodb_counters._backfill.repair import Difference
from dynamodb_counters._backfill.verification import Verification
from dynamodb_counters._declarations import Aggregate
from dynamodb_counters._declarations.groups import group_keys, values_of
from dynamodb_counters._items.table_schema import SCORE
from dynamodb_counters._stream.discards import Discards
from dynamodb_counters._stream.quarantine_items import Quarantined
from dynamodb_counters._stream.redrive_entries import list_quarantined, redrive
from dynamodb_counters._table import Table
from dynamodb_counters.errors import InvalidArgumentError
from simulation.backfill.backfill_actors import BackfillActor
from simulation.backfill.backfill_schedule import BackfillSchedule
from simulation.backfill.population import Population
from simulation.backfill.rebuilt_truth import counted_of, is_expiry
from simulation.backfill.subjects import Parts, Subject
from simulation.schedules.backend import MakeBackend, MemoryBackend
from simulation.schedules.outcome import Outcome

CLEAN: Final = "verification of what is right"
CHANGED: Final = "group changed by n"
LOST: Final = "group lost"
TWICE: Final = "change applied twice"
FOUND: Final = "spoiled group found"
AT_MOST: Final = "spoiled group found, events of which have expired"
UNKNOWN: Final = "spoiled group of which nobody can tell"
REPAIRED: Final = "group repaired"
WAITS: Final = "group for which something waits"
DISCARDED: Final = "image discarded"
KEPT: Final = "image that only a redrive makes right"

_Place = tuple[str, tuple[str, ...]]


class VerificationSchedule(BackfillSchedule):
    """Writes, perhaps spoils some groups, verifies beside traffic with killed runners, repairs, verifies again."""

    _work = Verification

    def __init__(self, seed: int, make_backend: MakeBackend = MemoryBackend) -> None:
        super().__init__(seed, make_backend)
        self._redeclare_left = self._runs_left = 0
        expires, spoils = self._random.random() < 0.3, self._random.random() < 0.5
        self._population = Population(
            self._backend, self._random, self._random.randint(30, 70), expires=expires, spoils=spoils
        )
        self._lost: set[_Place] = set()
        self._blocked: set[_Place] = set()
        self._spoiled: dict[_Place, Parts] = {}
        self._verified: list[Verification] = []

    def _run(self) -> Outcome:
        self._write_some()
        if self._random.random() < 0.4:
            self._block()
        if self._random.random() < 0.3:
            self._reached[CLEAN] += 1
        else:
            for _ in range(self._random.randint(1, 3)):
                self._spoil()
            self._go(self._is_over)
        self._population.left = self._random.randint(5, 20)
        found = self._verify()
        if found is not None:
            self._judge(found)
        self._calm, self._faults.budget = True, 0
        self._go(self._is_over)
        for entry in self._waiting():
            if "numbers" in entry.content:
                redrive(self._table(), entry)
        self._go(self._is_over)
        again = self._verify()
        names = {declaration.name for declaration in self._declared()}
        if again is None and any(item.get("_type", {}).get("S") in names for item in self._backend.items()):
            self._wrong.append("a verification with nothing in its way did not end")
        elif found is not None and again is not None:
            rest = [each for each in again.differences if each.verdict == "drift"]
            self._wrong += [
                f"after the repair: {_text(each)}" for each in rest if (each.name, tuple(each.ref[1])) not in self._lost
            ]
            again.repair()
        is_repaired = found is not None or not self._spoiled
        if is_repaired and not self._unknown():
            self._audit("after the repair", whole=True)
        return self._outcome()

    def _write_some(self) -> None:
        self._population.touch()
        self._go(self._is_over)

    def _verify(self) -> Verification | None:
        """Verify beside traffic; None if every try was void."""
        for _ in range(3):
            before = len(self._verified)
            self._start_runner()
            self._go(self._is_over)
            if len(self._verified) > before:
                return self._verified[-1]
        return None

    def _completed(self, runner: BackfillActor) -> None:
        assert isinstance(runner.work, Verification)
        # One whose run another process has ended compares nothing.
        if runner.work.compared:
            self._verified.append(runner.work)

    def _judge(self, found: Verification) -> None:
        """Compare what was found with what was spoiled, and repair it, twice."""
        told = {(each.name, tuple(each.ref[1])) for each in found.differences}
        self._reached[WAITS] += found.groups("waiting")
        self._wrong += [
            f"nothing waits for {_text(each)}"
            for each in found.differences
            if each.verdict == "waiting" and (each.name, tuple(each.ref[1])) not in self._blocked
        ]
        drifted = {(each.name, tuple(each.ref[1])): each for each in found.differences if each.verdict == "drift"}
        spoiled = {place: kept for place, parts in self._spoiled.items() if (kept := _nonzero(parts))}
        for place, parts in spoiled.items():
            difference = drifted.get(place)
            if place not in told and place in self._lost:
                # With its watermarks gone, a redelivery may have counted again what was lost: the audit tells.
                self._reached[UNKNOWN] += 1
            elif place not in told and any(not _nonzero(_sum(parts, kept)) for kept in self._forgotten(place)):
                # What was changed is what had expired and was counted still: nothing tells of either.
                self._reached[UNKNOWN] += 1
            elif place not in told:
                self._wrong.append(f"{place} was changed by {parts}, which nobody found")
            elif difference is None:
                self._reached[UNKNOWN] += 1
            else:
                self._reached[AT_MOST if difference.reason else FOUND] += 1
                if place in self._lost:
                    # With it went what it had applied beyond its shards' checkpoints: a later verification finds that.
                    continue
                if not self._is_right(difference, place, parts):
                    self._wrong.append(f"{place} was changed by {parts}, but lacks {difference.missing}")
        self._wrong += [f"nobody spoiled {_text(each)}" for place, each in drifted.items() if place not in spoiled]
        repaired, refused = found.repair()
        self._reached[REPAIRED] += repaired
        if refused:
            self._wrong.append(f"{refused} groups could not be repaired")
        if found.repair()[0]:
            self._wrong.append("a repair was done twice")

    def _is_right(self, difference: Difference, place: _Place, parts: Parts) -> bool:
        """Whether a group lacks what it was changed by; less what it still counts of items that had expired."""
        forgotten: list[Parts] = [{}, *self._forgotten(place)] if difference.reason else [{}]
        return any(
            {name: -(parts.get(name, Decimal(0)) + kept.get(name, Decimal(0))) for name in difference.missing}
            == difference.missing
            for kept in forgotten
        ) and (bool(difference.reason) or difference.missing.keys() == parts.keys())

    def _forgotten(self, place: _Place) -> Iterator[Parts]:
        """What a group counted still of items that had expired, after each of them."""
        found: Parts = {}
        [subject] = [subject for subject in self._subjects() if subject.declaration.name == place[0]]
        expired = [record["dynamodb"]["OldImage"] for _, record in self._backend.history() if is_expiry(record)]
        for image in expired if subject.declaration.on_expiry == "keep" else ():
            for group, parts in counted_of(subject, image):
                if group == place[1]:
                    assert isinstance(subject.declaration, Aggregate)
                    found = _sum(found, _ranked(subject.declaration, parts))
                    yield found

    def _unknown(self) -> bool:
        told = [each for work in self._verified for each in work.differences]
        return any(each.reason for each in told if each.verdict != "waiting")

    # The quarantine

    def _table(self) -> Table:
        return Table(self._backend.name, self._backend.client, clock=self._backend.clock)

    def _waiting(self) -> list[Quarantined]:
        return sorted(list_quarantined(self._table(), redriven=False), key=lambda entry: entry.key)

    def _block(self) -> None:
        """Have deltas of a group wait that nothing else looks at: for a while, its item can take none."""
        looked_at = {declaration.source.name for declaration in self._declared()}
        leaves = {name: each for name, each in self._aggregates() if name not in looked_at}
        items = [item for item in self._backend.items() if item.get("_type", {}).get("S") in leaves]
        held = [item for item in items if any(name in item for name in leaves[item["_type"]["S"]].attributes)]
        if not held:
            return
        item = self._random.choice(held)
        declaration = leaves[item["_type"]["S"]]
        values = values_of(declaration, item)
        assert values is not None
        self._blocked.add((declaration.name, tuple(values[field] for field in declaration.fields)))
        taken = [name for name in declaration.attributes if name in item]
        self._set(item, {name: {"S": "taken"} for name in taken})
        self._population.left = self._random.randint(5, 20)
        self._go(self._is_over)
        self._set(item, {name: item[name] for name in taken})

    def _aggregates(self) -> list[tuple[str, Aggregate]]:
        return [(each.name, each) for each in self._declared() if isinstance(each, Aggregate)]

    def _set(self, item: Any, values: dict[str, Any]) -> None:
        names = {f"#n{index}": name for index, name in enumerate(values)}
        self._backend.client.update_item(
            TableName=self._backend.name,
            Key={"pk": item["pk"], "sk": item["sk"]},
            UpdateExpression="SET " + ", ".join(f"{name} = :{name[1:]}" for name in names),
            ExpressionAttributeNames=names,
            ExpressionAttributeValues={f":{name[1:]}": values[names[name]] for name in names},
        )

    def _settle_some(self) -> None:
        """Discard or redrive an image that waits."""
        waiting = [entry for entry in self._waiting() if "dynamodb" in entry.content]
        if not waiting:
            return
        entry = self._random.choice(waiting)
        if self._random.random() < 0.3:
            redrive(self._table(), entry)
            return
        try:
            self._reached[DISCARDED] += Discards(self._table()).discard(entry)
        except InvalidArgumentError:
            self._reached[KEPT] += 1

    # Spoiling

    def _spoil(self) -> None:
        """Change a group behind everybody's back, while nothing is under way."""
        subjects = [subject for subject in self._subjects() if isinstance(subject.declaration, Aggregate)]
        if not subjects:
            return
        draw = self._random
        subject = draw.choice(subjects)
        declaration = subject.declaration
        assert isinstance(declaration, Aggregate)
        if draw.random() < 0.3 and not isinstance(declaration.source, Aggregate):
            self._apply_twice(subject)
            return
        held = [item for item in self._backend.items() if item.get("_type", {}).get("S") == declaration.name]
        if not held:
            return
        item = draw.choice(held)
        values = values_of(declaration, item)
        assert values is not None
        place = declaration.name, tuple(values[field] for field in declaration.fields)
        if place in self._blocked:
            return
        if draw.random() < 0.4:
            self._reached[LOST] += 1
            self._backend.client.delete_item(TableName=self._backend.name, Key={"pk": item["pk"], "sk": item["sk"]})
            self._lost.add(place)
            names = (*declaration.attributes, SCORE)
            lost = {name: -Decimal(item[name]["N"]) for name in names if name in item}
            self._note(place, lost)
        else:
            self._reached[CHANGED] += 1
            names = (*declaration.attributes, *([SCORE] if declaration.ranking is not None else []))
            self._add(declaration, place, {draw.choice(names): Decimal(draw.choice((-3, -1, 1, 2)))}, item)

    def _apply_twice(self, subject: Subject) -> None:
        """Apply again what some records had added."""
        declaration = subject.declaration
        assert isinstance(declaration, Aggregate)
        self._reached[TWICE] += 1
        records = [record["dynamodb"] for _, record in self._backend.history() if not is_expiry(record)]
        for change in self._random.sample(records, min(5, len(records))):
            for image, sign in (("NewImage", 1), ("OldImage", -1)):
                for group, parts in counted_of(subject, change.get(image, {})):
                    twice = {name: sign * number for name, number in parts.items()}
                    self._add(declaration, (declaration.name, group), _ranked(declaration, twice))

    def _add(self, declaration: Aggregate, place: _Place, parts: Parts, item: Any = None) -> None:
        if place in self._blocked:
            return
        values = dict(zip(declaration.fields, place[1], strict=True))
        if item is None:
            [key] = [{name: each[name] for name in ("pk", "sk")} for each in group_keys(declaration, values)[:1]]
            if "Item" not in self._backend.client.get_item(TableName=self._backend.name, Key=key, ConsistentRead=True):
                return
        else:
            key = {"pk": item["pk"], "sk": item["sk"]}
        self._backend.client.update_item(
            TableName=self._backend.name,
            Key=key,
            UpdateExpression="ADD " + ", ".join(f"#n{index} :n{index}" for index in range(len(parts))),
            ExpressionAttributeNames={f"#n{index}": name for index, name in enumerate(parts)},
            ExpressionAttributeValues={f":n{index}": {"N": str(n)} for index, n in enumerate(parts.values())},
        )
        self._note(place, parts)

    def _note(self, place: _Place, parts: Parts) -> None:
        self._spoiled[place] = _sum(self._spoiled.get(place, {}), parts)

    def _disturb(self) -> None:
        choices = [self._time_out, self._rewind, self._split, self._land, self._wait, self._wait, self._crowd]
        choices += [self._population.expire, self._replay, self._kill, self._double, self._split_near]
        choices += [self._settle_some] * 3
        self._random.choice(choices)()


def _ranked(declaration: Aggregate, parts: Parts) -> Parts:
    """What groups are ranked by changes with their measure."""
    ranking = declaration.ranking
    return {**parts, SCORE: parts[ranking.measure]} if ranking is not None and ranking.measure in parts else parts


def _sum(one: Parts, other: Parts) -> Parts:
    return {name: one.get(name, Decimal(0)) + other.get(name, Decimal(0)) for name in {**one, **other}}


def _nonzero(parts: Parts) -> Parts:
    return {name: number for name, number in parts.items() if number}


def _text(each: Difference) -> str:
    return f"{each.name} {dict(each.group)}: lacks {dict(each.missing)}"
