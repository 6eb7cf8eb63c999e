"""Results of a schedule against what they must be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from dynamodb_counters._timeline.tiers import DAY
from simulation.aws.sigv4 import LATEST
from simulation.memory.memory_stream import Record
from simulation.oracle.eras import Eras
from simulation.oracle.specs import Spec
from simulation.oracle.truth import Counts, Entry, Truth, actual, differences, entry_of, is_expiry, truth
from simulation.oracle.variants import FEES
from simulation.schedules import coverage
from simulation.schedules.backend import Backend

_DOUBTFUL: Final = "#DOUBTFUL"
_LEAST_SECONDS: Final = 2 * DAY - LATEST
"""An entry stays for two days from when it was sent."""


class Audit:
    """Compares a table with its stream: counts, quarantine and deployments.

    `deployed` is every deployment there was; the bookkeeping of `spoiled` groups and entries was edited by hand.
    """

    def __init__(
        self,
        backend: Backend,
        deployed: Sequence[Sequence[Spec]],
        spoiled: Collection[tuple[str, str, str]] = (),
        unreadable: Collection[Entry] = (),
    ) -> None:
        records = list(backend.history())
        self._unreadable = unreadable
        self._backend = backend
        self._spoiled = spoiled
        # An entry whose image has a `ttl` may expire after two days, before it is repaired.
        gone = [record["dynamodb"]["OldImage"] for _, record in records if _is_expiry_of_entry(record)]
        self._expired = {entry_of(image["sk"]["S"]) for image in gone}
        self._short_lived = _short_lived([record for _, record in records])
        self._items = [item for item in backend.items() if item.get("state", {}).get("S") == "waiting"]
        doubtful = frozenset(entry_of(item["sk"]["S"]) for item in (*self._items, *gone) if _is_doubtful(item))
        self.eras = Eras(records, deployed, dated=backend.dates_writes)
        self._truth: Truth = truth(records, self.eras, doubtful, unreadable)
        self.reached = Counter({coverage.DOUBTFUL: len(doubtful), coverage.ERAS: len(self.eras) - 1})
        self.reached[coverage.PARTLY] = sum(bool(item.get("names")) for item in self._items)

    @property
    def waiting(self) -> int:
        """How many images wait in quarantine that are known not to be counted."""
        return len(self._truth.waiting.keys() - self._expired)

    def wrong(self) -> list[str]:
        have = {key: numbers for key, numbers in self._actual().items() if key not in self._spoiled}
        want = {key: numbers for key, numbers in self._wanted().items() if key not in self._spoiled}
        unclear = self._truth.unclear
        return [*self.eras.wrong, *differences(want, have, unclear), *self._wrong_quarantine(), *self._short_lived]

    def wrong_beside(self, want: Counts) -> list[str]:
        """Where the counts differ from others, which know no fees."""
        have = {
            key: {name: number for name, number in numbers.items() if name != FEES}
            for key, numbers in self._actual().items()
        }
        return differences(want, {key: numbers for key, numbers in have.items() if numbers})

    def wrong_copies(self, copies: Sequence[tuple[float, Sequence[tuple[int, str]]]]) -> list[str]:
        """Invocations that had records of an era that they could not know of."""
        return [
            f"deployments: a record of {created} was folded by a process that knew {known[-1]} as the last"
            for created, known in copies
            if created >= self.eras.after(known)
        ]

    def _wanted(self) -> Counts:
        return self._truth.wanted(self._backend.clock())

    def _actual(self) -> Counts:
        return actual(self._backend.items(), self._backend.clock())

    def _wrong_quarantine(self) -> list[str]:
        have = {
            entry_of(item["sk"]["S"]): _names(item)
            for item in self._items
            if not _is_doubtful(item) and "sum" not in item
        }
        want = self._truth.waiting
        return [
            f"quarantine, {entry}: expected {_text(want.get(entry))}, found {_text(have.get(entry))}"
            for entry in sorted({*want, *have})
            if want.get(entry) != have.get(entry)
            and entry not in {*self._unreadable, *self._truth.vague, *(self._expired - have.keys())}
        ]


def _is_expiry_of_entry(record: Record) -> bool:
    if not is_expiry(record):
        return False
    image = record["dynamodb"]["OldImage"]
    # An item of a source table may say "waiting", too; its key is no entry's.
    return image.get("state", {}).get("S") == "waiting" and any(entry_of(image["sk"]["S"]))


def _short_lived(records: Sequence[Record]) -> list[str]:
    """Entries of the quarantine that have expired before anyone could repair them."""
    since, wrong = dict[str, float](), []
    for record in records:
        key, at = str(record["dynamodb"]["Keys"]), record["dynamodb"]["ApproximateCreationDateTime"]
        if record["eventName"] == "INSERT":
            since[key] = at
        elif _is_expiry_of_entry(record) and at - since[key] < _LEAST_SECONDS:
            wrong.append(f"quarantine: {key} expired after {at - since[key]:.0f} s")
    return wrong


def _is_doubtful(item: Mapping[str, Any]) -> bool:
    return str(item["sk"]["S"]).endswith(_DOUBTFUL)


def _names(item: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(item.get("names", {}).get("SS", ()))


def _text(names: frozenset[str] | None) -> str:
    return "nothing" if names is None else ", ".join(sorted(names)) or "all"
