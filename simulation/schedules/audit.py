"""Results of a schedule against what they must be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from dynamodb_counters._timeline.tiers import DAY
from simulation.aws.sigv4 import LATEST
from simulation.memory.memory_stream import Record
from simulation.oracle.registrations import Registrations
from simulation.oracle.specs import Spec, Values
from simulation.oracle.truth import (
    Aside,
    Counts,
    Entry,
    Truth,
    Waiting,
    actual,
    differences,
    entry_of,
    expected_of_rows,
    is_expiry,
    is_waiting,
    truth,
)
from simulation.schedules import coverage
from simulation.schedules.backend import Backend

_LEAST_SECONDS: Final = 2 * DAY - LATEST
"""An entry stays for two days from when it was sent."""


class Audit:
    """Compares a table with its stream: counts, quarantine and registry.

    `deployed` is every deployment there was; the bookkeeping of `spoiled` groups and entries was edited by hand. For
    the declaration `failing`, code failed on some events until it was mended.
    """

    def __init__(
        self,
        backend: Backend,
        deployed: Sequence[Sequence[Spec]],
        spoiled: Collection[tuple[str, str, str]] = (),
        unreadable: Collection[Entry] = (),
        failing: str = "",
    ) -> None:
        records = list(backend.history())
        self._unreadable = unreadable
        self._backend = backend
        self._spoiled = spoiled
        # An entry whose image has a `ttl` may expire after two days, before it is repaired.
        gone = [record["dynamodb"]["OldImage"] for _, record in records if _is_expiry_of_entry(record)]
        self._expired = {entry_of(image["sk"]["S"]) for image in gone}
        self._short_lived = _short_lived([record for _, record in records])
        self._items = [item for item in backend.items() if is_waiting(item)]
        self._names = Registrations(records, deployed)
        aside = Aside(failing, frozenset(_entries_of(records, failing)))
        self._truth: Truth = truth(records, self._names.specs, unreadable, aside)
        self.reached = Counter({coverage.LATER: len(self._names.later)})
        self.reached[coverage.PARTLY] = sum(bool(item.get("names")) for item in self._items)

    @property
    def waiting(self) -> int:
        """How many images wait in quarantine that are known not to be counted."""
        return len(self._truth.waiting.keys() - self._expired)

    def wrong(self) -> list[str]:
        want, have = (self._certain(counts) for counts in (self._truth.wanted(self._backend.clock()), self._actual()))
        wrong_counts = differences(want, have)
        return [*self._names.wrong, *wrong_counts, *self._wrong_quarantine(), *self._short_lived]

    def wrong_beside(self, rows: Iterable[tuple[Values, int, bool]]) -> list[str]:
        """Where the counts differ from those of the events there are."""
        return differences(expected_of_rows(self._names.specs, rows, self._backend.clock()), self._actual())

    def _actual(self) -> Counts:
        return actual(self._backend.items(), self._backend.clock())

    def _certain(self, counts: Counts) -> Counts:
        unreadable, spoiled = self._names.unreadable, self._spoiled
        return {key: each for key, each in counts.items() if key not in spoiled and key[0] not in unreadable}

    def _wrong_quarantine(self) -> list[str]:
        have = {entry_of(item["sk"]["S"]): _names(item) for item in self._items if "sum" not in item}
        have, want = (self._of_certain(waiting) for waiting in (have, self._truth.waiting))
        return [
            f"quarantine, {entry}: expected {_text(want.get(entry))}, found {_text(have.get(entry))}"
            for entry in sorted({*want, *have})
            if want.get(entry) != have.get(entry) and entry not in {*self._unreadable, *(self._expired - have.keys())}
        ]

    def _of_certain(self, waiting: Waiting) -> Waiting:
        """Without names that may have gone stale."""
        stale = self._names.unreadable
        return {entry: names - stale for entry, names in waiting.items() if not names or names - stale}


def _entries_of(records: Iterable[tuple[str, Record]], name: str) -> Iterator[Entry]:
    """Every entry there was that waited for a declaration."""
    for _, record in records:
        item = record["dynamodb"].get("NewImage")
        is_entry = item is not None and item.get("_type") == {"S": "quarantine"}
        if is_entry and name in _names(item):
            yield entry_of(item["sk"]["S"])


def _is_expiry_of_entry(record: Record) -> bool:
    if not is_expiry(record):
        return False
    image = record["dynamodb"]["OldImage"]
    # An item of a source table may look like one; its key is no entry's.
    return is_waiting(image) and any(entry_of(image["sk"]["S"]))


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


def _names(item: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(item.get("names", {}).get("SS", ()))


def _text(names: frozenset[str] | None) -> str:
    return "nothing" if names is None else ", ".join(sorted(names)) or "all"
