"""A schedule of verifications beside live traffic: they find what somebody spoiled, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from dynamodb_counters._backfill.repair import Difference
from dynamodb_counters._backfill.verification import Verification
from dynamodb_counters._declarations import Aggregate
from dynamodb_counters._declarations.groups import group_keys, values_of
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
UNKNOWN: Final = "spoiled group of which nobody can tell"
REPAIRED: Final = "group repaired"

_Place = tuple[str, tuple[str, ...]]


class VerificationSchedule(BackfillSchedule):
    """Writes, perhaps spoils some groups, verifies beside traffic with killed runners, repairs, verifies again."""

    _work = Verification

    def __init__(self, seed: int, make_backend: MakeBackend = MemoryBackend) -> None:
        super().__init__(seed, make_backend)
        self._redeclare_left = self._runs_left = 0
        expires = self._random.random() < 0.3
        self._population = Population(self._backend, self._random, self._random.randint(30, 70), expires=expires)
        self._lost: set[_Place] = set()
        self._spoiled: dict[_Place, Parts] = {}
        self._verified: list[Verification] = []

    def _run(self) -> Outcome:
        self._write_some()
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
        told = {(each.name, tuple(each.ref[1])): each for each in found.differences}
        spoiled = {place: kept for place, parts in self._spoiled.items() if (kept := _nonzero(parts))}
        for place, parts in spoiled.items():
            difference = told.get(place)
            if difference is None and any(not _nonzero(_sum(parts, kept)) for kept in self._forgotten(place)):
                # What was changed is what had expired and was counted still: nothing tells of either.
                self._reached[UNKNOWN] += 1
            elif difference is None:
                self._wrong.append(f"{place} was changed by {parts}, which nobody found")
            elif difference.verdict == "unknown":
                self._reached[UNKNOWN] += 1
            else:
                self._reached[FOUND] += 1
                missing = {name: Decimal(number) for name, number in difference.missing.items()}
                if place in self._lost:
                    # With it went what it had applied beyond its shards' checkpoints: a later verification finds that.
                    continue
                if missing != {name: -number for name, number in parts.items()}:
                    self._wrong.append(f"{place} was changed by {parts}, but lacks {missing}")
        self._wrong += [
            f"nobody spoiled {_text(each)}"
            for place, each in told.items()
            if each.verdict == "drift" and place not in spoiled
        ]
        repaired, refused = found.repair()
        self._reached[REPAIRED] += repaired
        if refused:
            self._wrong.append(f"{refused} groups could not be repaired")
        if found.repair()[0]:
            self._wrong.append("a repair was done twice")

    def _forgotten(self, place: _Place) -> Iterator[Parts]:
        """What a group counted still of items that had expired, after each of them."""
        found: Parts = {}
        [subject] = [subject for subject in self._subjects() if subject.declaration.name == place[0]]
        expired = [record["dynamodb"]["OldImage"] for _, record in self._backend.history() if is_expiry(record)]
        for image in expired if subject.declaration.on_expiry == "keep" else ():
            for group, parts in counted_of(subject, image):
                if group == place[1]:
                    found = _sum(found, parts)
                    yield found

    def _unknown(self) -> bool:
        return any(each.verdict == "unknown" for work in self._verified for each in work.differences)

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
        if draw.random() < 0.4:
            self._reached[LOST] += 1
            self._backend.client.delete_item(TableName=self._backend.name, Key={"pk": item["pk"], "sk": item["sk"]})
            self._lost.add(place)
            lost = {name: -Decimal(item[name]["N"]) for name in declaration.attributes if name in item}
            self._note(place, lost)
        else:
            self._reached[CHANGED] += 1
            name = draw.choice(declaration.attributes)
            self._add(declaration, place, {name: Decimal(draw.choice((-3, -1, 1, 2)))}, item)

    def _apply_twice(self, subject: Subject) -> None:
        """Apply again what some records had added."""
        declaration = subject.declaration
        assert isinstance(declaration, Aggregate)
        self._reached[TWICE] += 1
        records = [record["dynamodb"] for _, record in self._backend.history() if not is_expiry(record)]
        for change in self._random.sample(records, min(5, len(records))):
            for image, sign in (("NewImage", 1), ("OldImage", -1)):
                for group, parts in counted_of(subject, change.get(image, {})):
                    self._add(declaration, (declaration.name, group), {k: sign * v for k, v in parts.items()})

    def _add(self, declaration: Aggregate, place: _Place, parts: Parts, item: Any = None) -> None:
        values = dict(zip(declaration.fields, place[1], strict=True))
        if item is None:
            [key] = [{name: each[name] for name in ("pk", "sk")} for each in group_keys(declaration, values)[:1]]
            if "Item" not in self._backend.client.get_item(TableName=self._backend.name, Key=key, ConsistentRead=True):
                return
        else:
            key = {"pk": item["pk"], "sk": item["sk"]}
        ranking = declaration.ranking
        names = {**parts, **({"_score": parts[ranking.by]} if ranking is not None and ranking.by in parts else {})}
        self._backend.client.update_item(
            TableName=self._backend.name,
            Key=key,
            UpdateExpression="ADD " + ", ".join(f"#n{index} :n{index}" for index in range(len(names))),
            ExpressionAttributeNames={f"#n{index}": name for index, name in enumerate(names)},
            ExpressionAttributeValues={f":n{index}": {"N": str(n)} for index, n in enumerate(names.values())},
        )
        self._note(place, parts)

    def _note(self, place: _Place, parts: Parts) -> None:
        self._spoiled[place] = _sum(self._spoiled.get(place, {}), parts)

    def _disturb(self) -> None:
        choices = [self._time_out, self._rewind, self._split, self._land, self._wait, self._wait, self._crowd]
        choices += [self._population.expire, self._replay, self._kill, self._double, self._split_near]
        self._random.choice(choices)()


def _sum(one: Parts, other: Parts) -> Parts:
    return {name: one.get(name, Decimal(0)) + other.get(name, Decimal(0)) for name in {**one, **other}}


def _nonzero(parts: Parts) -> Parts:
    return {name: number for name, number in parts.items() if number}


def _text(each: Difference) -> str:
    return f"{each.name} {dict(each.group)}: lacks {dict(each.missing)}"
