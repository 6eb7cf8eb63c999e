"""Answers to the writers of packed events, against what the logs must hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Event
from dynamodb_counters._table import Table
from dynamodb_counters._writes.accept import accept, accept_many, retract
from simulation.aws.sigv4 import SKEW_SECONDS
from simulation.oracle.chunks import EventKey, LoggedEvent, Logs, event_key, plain_values, read_logs
from simulation.pairs import coverage
from simulation.pairs.engine import Engine

_FINAL: Final = ("accepted", "duplicate", "too_late", "retracted", "absent")


@dataclass(eq=False)
class _Entry:
    """An event to accept or to retract, what was answered, and when; `unanswered` calls may have been done or not."""

    values: dict[str, Any]
    retracts: bool = False
    unanswered: int = 0
    answer: str = ""
    at: float = 0.0


class Answers:
    """Has events accepted and retracted, until there is an answer, and remembers it."""

    def __init__(self, engine: Engine, event: Event) -> None:
        self._engine, self._event = engine, event
        self._all: list[_Entry] = []

    def accept(self, events: Sequence[dict[str, Any]], ended: Callable[[bool], None]) -> None:
        self._ask([_Entry(dict(values)) for values in events], ended)

    def retract(self, values: dict[str, Any], ended: Callable[[bool], None]) -> None:
        self._ask([_Entry(dict(values), retracts=True)], ended)

    def _ask(self, entries: list[_Entry], ended: Callable[[bool], None]) -> None:
        self._all += entries
        self._call(entries, ended)

    def _call(self, entries: list[_Entry], ended: Callable[[bool], None]) -> None:
        event, events = self._event, [entry.values for entry in entries]

        def work(table: Table) -> list[str]:
            if entries[0].retracts:
                return ["retracted" if retract(table, event, events[0]) else "absent"]
            if len(events) == 1:
                return [accept(table, event, events[0]).status]
            return [outcome.status for outcome in accept_many(table, event, events)]

        def failed(reason: str) -> None:
            self._note(entries, ["failed"] * len(entries), ended)
            if reason:
                self._engine.wrong.append(f"a call without a fault failed: {reason}")

        self._engine.call(work, lambda statuses: self._note(entries, statuses, ended), failed=failed)

    def _note(self, entries: list[_Entry], statuses: Sequence[str], ended: Callable[[bool], None]) -> None:
        engine = self._engine
        for entry, status in zip(entries, statuses, strict=True):
            engine.reached[coverage.ANSWERED + status] += 1
            if status in _FINAL:
                entry.answer, entry.at = status, engine.clock()
            else:
                entry.unanswered += 1
                if status != "failed":
                    engine.wrong.append(f"{status}: {entry.values}")
        ended(any(status in ("accepted", "retracted") for status in statuses))
        if left := [entry for entry in entries if not entry.answer]:
            self._call(left, ended)

    def wrong(self) -> list[str]:
        """Differences of the logs from what was asked for and answered."""
        if not self._all:
            return []
        logs, wrong = read_logs(self._engine.backend.history()), list[str]()
        of_event: dict[EventKey, list[_Entry]] = {}
        for entry in self._all:
            of_event.setdefault(event_key(entry.values), []).append(entry)
        for key, entries in of_event.items():
            late = self._too_late(key) - SKEW_SECONDS
            wrong += [f"event {key}: {text}" for text in _untrue(entries, logs.events.get(key, LoggedEvent()), late)]
        wrong += [f"event {key} was made up" for key in logs.events.keys() - of_event.keys()]
        return logs.wrong + wrong + self._misread(logs)

    def _misread(self, logs: Logs) -> list[str]:
        """Differences of reads from the logs."""
        backend, packed = self._engine.backend, self._event.packed
        counters = Counters(backend.name, client=backend.client, clock=backend.clock)
        assert packed is not None
        devices = {entry.values["device"] for entry in self._all}
        tenants = [{"device": device} for device in sorted(devices)] if packed.tenant else [{}]
        read = [
            plain_values(values)
            for tenant in tenants
            for values in counters.events(self._event, tenant, consistent=True)
        ]
        now = backend.clock()
        live = [event.values for key, event in logs.events.items() if event.is_live and now < self._too_late(key)]
        return [f"read back, but not there: {values}" for values in read if values not in live] + [
            f"there, but not read back: {values}" for values in live if values is None or read.count(dict(values)) != 1
        ]

    def _too_late(self, key: EventKey) -> float:
        """When an event begins to be too late."""
        packed, retention = self._event.packed, self._event.retention
        assert packed is not None
        assert retention is not None
        bucket = packed.bucket.total_seconds()
        return (key[-1] // bucket + 1) * bucket + retention.total_seconds()


def _untrue(entries: Sequence[_Entry], event: LoggedEvent, late: float) -> Iterator[str]:
    """False answers about an event; from `late` on it may have been too late."""
    yield from _untrue_accepts([entry for entry in entries if not entry.retracts], event)
    retractions = [entry for entry in entries if entry.retracts]
    if sum(entry.answer == "retracted" for entry in retractions) > (event.values is not None):
        yield "retracted more often than it was there"
    if not event.is_gone and any(each.answer == "retracted" or each.at < late for each in retractions if each.answer):
        yield "retracted, but still there"
    if event.is_gone and not any(entry.answer or entry.unanswered for entry in retractions):
        yield "gone, but never retracted"
    if any(entry.answer == "too_late" and entry.at < late for entry in entries):
        yield f"answered as too late before {late}"


def _untrue_accepts(entries: Sequence[_Entry], event: LoggedEvent) -> Iterator[str]:
    accepted = [entry.values for entry in entries if entry.answer == "accepted"]
    if untrue := [values for values in accepted if values != event.values]:
        yield f"answered as accepted, but not there: {untrue}"
    if len(accepted) > 1:
        yield f"accepted {len(accepted)} times"
    asked = [entry.values for entry in entries if entry.answer == "accepted" or entry.unanswered]
    if event.values is not None and event.values not in asked:
        yield f"there, but never answered as accepted: {event.values}"
    if event.values is None and not event.is_gone and any(entry.answer == "duplicate" for entry in entries):
        yield "answered as a duplicate, but not there"
