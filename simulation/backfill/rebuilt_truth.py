"""What readers must see once a backfill has ended, from nothing but the items there are and those that expired.

A count is that of the items alive, and, where what expires stays counted, of those that have expired since it began:
for a generation that a run has filled, since the run's cut.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from boto3.dynamodb.types import TypeDeserializer

from dynamodb_counters._assumptions import SKEW
from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Aggregate, Declaration, Window
from dynamodb_counters._declarations.generations import base_name
from dynamodb_counters._declarations.groups import values_of
from dynamodb_counters._items.discard_marks import is_discarded, stored_marks
from dynamodb_counters._items.table_schema import CHECKPOINT_PREFIX
from dynamodb_counters._statuses import Status
from dynamodb_counters._stream.control import read_control, read_declarations
from dynamodb_counters._stream.quarantine_items import unpack
from dynamodb_counters._stream.run_items import RUN_SK_PREFIX
from dynamodb_counters._table import Table
from dynamodb_counters.testing._dynamodb.stream_source import Record
from simulation.backfill.subjects import ORDER, SUBJECTS, Counted, Group, Parts, Subject, signature
from simulation.oracle.chunks import ROW_SIGNS, rows_of
from simulation.schedules.backend import Backend

_PLAIN: Final = TypeDeserializer()
_RUN: Final = "CHECKPOINT#run~"
_TTL_MATTERS: Final = 5 * 365 * 86_400
_DISORDER: Final = 4.0
"""Seconds by which records near a cut may be on its other side: clocks of records, and that they are whole."""

Image = Mapping[str, Any]
Groups = dict[Group, Parts]


def number_of(name: str) -> int:
    return int(name.partition("~")[2] or 0)


class Truth:
    """The truth of one table as it stands now."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._items = list(backend.items())
        self._history = list(backend.history())
        self._positions = self._read_cuts()
        self.wrong: list[str] = []
        self._check_cuts()

    def of(self, declaration: Declaration) -> Groups:
        """What a declaration, of some generation, must count: groups that are not zero."""
        subject = SUBJECTS[signature(declaration)]
        groups: defaultdict[Group, Parts] = defaultdict(dict)
        if isinstance(declaration.source, Aggregate):
            below = declaration.source
            for group, parts in self.of(below).items():
                zero = dict.fromkeys(below.attributes, Decimal(0))
                values = {**zero, **parts, **dict(zip(below.fields, group, strict=True))}
                for derived, added in subject.counted(values):
                    _add_parts(groups[derived], added, 1)
        else:
            for item in self._items:
                self._add_item(groups, subject, item, 1)
            if declaration.on_expiry == "keep":
                for shard, record in self._history:
                    if is_expiry(record) and self._is_past(number_of(declaration.name), shard, record):
                        self._add_item(groups, subject, record["dynamodb"]["OldImage"], 1)
        return {group: kept for group, parts in groups.items() if (kept := _nonzero(parts))}

    def waiting(self, declaration: Declaration) -> Counter[str]:
        """Of which items images wait for a declaration: those there are, and those that expired and would count."""
        subject, found = SUBJECTS[signature(declaration)], Counter[str]()
        if isinstance(declaration.source, Aggregate):
            return found
        found.update(item["pk"]["S"] for item in self._items if _waits(declaration, subject, item))
        for shard, record in self._history if declaration.on_expiry == "keep" else ():
            if is_expiry(record) and self._is_past(number_of(declaration.name), shard, record):
                old = record["dynamodb"]["OldImage"]
                found[old["pk"]["S"]] += _waits(declaration, subject, old)
        return +found

    def phase(self, run: str) -> str:
        item = self._run_items.get(run)
        return "" if item is None else str(item["phase"]["S"])

    def _add_item(self, groups: defaultdict[Group, Parts], subject: Subject, item: Image, sign: int) -> None:
        for group, parts in counted_of(subject, item):
            _add_parts(groups[group], parts, sign)

    # Cuts

    def _read_cuts(self) -> dict[int, tuple[str, float]]:
        """Of each generation the run that fills it, and when it begins."""
        self._run_items: dict[str, Image] = {}
        self._cuts: dict[tuple[str, str], str] = {}
        found: dict[int, tuple[str, float]] = {}
        for item in self._items:
            pk, sk = item["pk"]["S"], item["sk"]["S"]
            if (pk, sk[: len(RUN_SK_PREFIX)]) == (CHECKPOINT_PREFIX, RUN_SK_PREFIX):
                run = sk.removeprefix(RUN_SK_PREFIX)
                self._run_items[run] = item
                if item["kind"]["S"] == "backfill":
                    number = number_of(json.loads(item["names"]["S"])[0])
                    found[number] = run, float(item["since"]["N"])
            elif pk.startswith(_RUN) and sk.startswith("CUT#"):
                self._cuts[pk.removeprefix(_RUN), item["shard"]["S"]] = item["cut"]["S"]
        return found

    def _is_past(self, number: int, shard: str, record: Record) -> bool:
        if number == 0:
            return True
        run, since = self._positions[number]
        return self._past(run, since, shard, record)

    def _past(self, run: str, since: float, shard: str, record: Record) -> bool:
        cut, created = self._cuts.get((run, shard)), float(record["dynamodb"]["ApproximateCreationDateTime"])
        if cut is None:
            return created >= since
        # Nobody may have written the cut when a record so late came; a record after it may have.
        return str(record["dynamodb"]["SequenceNumber"]).zfill(40) >= cut or created >= since + SKEW

    def _check_cuts(self) -> None:
        for run, since in self._positions.values():
            if self.phase(run) != "complete":
                continue
            for shard, record in self._history:
                ahead = float(record["dynamodb"]["ApproximateCreationDateTime"]) - since
                if abs(ahead) > _DISORDER and self._past(run, since, shard, record) != (ahead > 0):
                    self.wrong.append(f"run {run}: a record {ahead:.0f} s from its cut is on the wrong side of it")
                    return


def audit(backend: Backend, declared: Iterable[Declaration], *, whole: bool, truth: Truth | None = None) -> list[str]:
    """Where what readers are told to be complete is not the truth; with `whole`, everything must be, as declared."""
    truth = truth or Truth(backend)
    wrong = list(truth.wrong)
    counters = Counters(backend.name, client=backend.client, clock=backend.clock)
    table = Table(backend.name, backend.client, clock=backend.clock)
    control = read_control(table)
    assert control.history is not None
    folded = {each.name: each for each in read_declarations(table, control.history.last.deployment) or ()}
    in_force = {each.name: each for each in read_declarations(table, control.declared) or ()}
    for own in declared:
        # A process of the deployment before may have taken over again.
        declaration = in_force.get(own.name)
        if whole and (declaration is None or signature(declaration) != signature(own)):
            wrong.append(f"{own.name}: not what the last deployment declares")
        if declaration is None:
            continue
        status = control.statuses.get(declaration.name, Status())
        name = f"{declaration.name}~{status.reads}" if status.reads else declaration.name
        if name not in folded:
            wrong.append(f"{declaration.name}: readers use {name}, which nothing counts")
            continue
        current = folded[name]
        if whole and not status.whole:
            wrong.append(f"{declaration.name}: not complete after its backfill")
        if whole and signature(current) != signature(declaration):
            wrong.append(f"{current.name}: read as it was declared before")
        if not status.whole:
            continue
        want = truth.of(current)
        have = _read(backend, counters, declaration, current, want)
        wrong += [
            f"{current.name} {group}: expected {_text(want.get(group))}, read {_text(have.get(group))}"
            for group in sorted({*want, *have})
            if want.get(group, {}) != have.get(group, {})
        ]
    return wrong


def audit_quarantine(backend: Backend) -> list[str]:
    """Where something else waits for what readers are told to be complete than what cannot be counted."""
    truth, wrong = Truth(backend), []
    table = Table(backend.name, backend.client, clock=backend.clock)
    control = read_control(table)
    assert control.history is not None
    for each in read_declarations(table, control.history.last.deployment) or ():
        status = control.statuses.get(base_name(each.name), Status())
        if status.whole and status.reads == number_of(each.name):
            wanted, found = truth.waiting(each), _waiting(backend, each.name)
            wrong += [f"{each.name}: expected to wait {wanted}, found {found}"] if wanted != found else []
    return wrong


def _waiting(backend: Backend, name: str) -> Counter[str]:
    """Of which items images wait for a declaration: what a correction takes back cancels what it corrects."""
    found = Counter[str]()
    for item in backend.items():
        if item.get("state", {}).get("S") == "waiting" and name in item.get("names", {}).get("SS", ()):
            change = unpack(item["record"])["dynamodb"]
            found[change["Keys"]["pk"]["S"]] += 1 if "NewImage" in change else -1
    return Counter({key: count for key, count in found.items() if count})


def _read(
    backend: Backend, counters: Counters, declared: Declaration, current: Declaration, wanted: Iterable[Group]
) -> Groups:
    """What readers see of all groups that are wanted, or are there."""
    known = {*wanted}
    held: dict[Group, Parts] = {}
    for item in backend.items():
        if item.get("_type", {}).get("S") != current.name:
            continue
        if isinstance(current, Aggregate):
            values = values_of(current, item)
            assert values is not None
            known.add(tuple(values[name] for name in current.fields))
            held.setdefault(tuple(values[name] for name in current.fields), {})["_score"] = Decimal(
                item.get("_score", {"N": "0"})["N"]
            )
        else:
            known.add(_hour_of(current, item))
    found: Groups = {}
    for group in known:
        values = dict(zip(current.fields, group, strict=False))
        if isinstance(current, Window):
            assert isinstance(declared, Window)
            start = datetime.fromtimestamp(int(group[-1]), UTC)
            count = counters.window(declared, values).between(start, start + timedelta(hours=1), consistent=True)
            assert count.complete
            parts = {"total": Decimal(count.count)}
        else:
            assert isinstance(declared, Aggregate)
            read = counters.get(declared, values, consistent=True)
            assert read.complete
            parts = _attributes(read.measures)
            ranking = current.ranking
            if ranking is not None and held.get(group, {}).get("_score", Decimal(0)) != parts.get(ranking.measure, 0):
                parts["_score"] = held[group]["_score"]
        if kept := _nonzero(parts):
            found[group] = kept
    return found


def _hour_of(window: Window, item: Image) -> Group:
    fields = window.pk_template.parse(item["pk"]["S"])
    bucket = item["sk"]["S"].rpartition("#")[2]
    hour = datetime.fromisoformat(f"{bucket}:00+00:00").timestamp()
    return (*(fields[name] for name in window.fields), str(int(hour)))


def _attributes(measures: Mapping[str, Any]) -> Parts:
    parts: Parts = {}
    for name, value in measures.items():
        if isinstance(value, Mapping):
            parts |= {f"{name}.{each}": Decimal(count) for each, count in value.items()}
        else:
            parts[name] = Decimal(value)
    return parts


def counted_of(subject: Subject, item: Image) -> Counted:
    """What an item adds to which groups of what looks at it itself; nothing if it cannot be counted."""
    return [] if is_malformed(subject, item) else _counted_of(subject, item)


def _waits(declaration: Declaration, subject: Subject, item: Image) -> bool:
    """Whether an item cannot be counted, and was not discarded."""
    return is_malformed(subject, item) and not is_discarded(declaration.name, item, stored_marks(item))


def is_malformed(subject: Subject, item: Image) -> bool:
    """Whether an item cannot be counted, and waits."""
    try:
        _counted_of(subject, item)
    except (InvalidOperation, TypeError):
        return True
    return False


def _counted_of(subject: Subject, item: Image) -> Counted:
    source = subject.declaration.source
    kind = item.get("_type", {}).get("S", "")
    if source == ORDER:
        return subject.counted(_values(item)) if not kind and "customer" in item else []
    if kind == source.name:
        return subject.counted(_values(item))
    if kind != f"{source.name}#pack":
        return []
    return [
        (group, {name: ROW_SIGNS[mark] * part for name, part in parts.items()})
        for mark, values in rows_of(item)
        if mark in ROW_SIGNS
        for group, parts in subject.counted(values)
    ]


def _add_parts(held: Parts, parts: Parts, sign: int) -> None:
    for name, part in parts.items():
        held[name] = held.get(name, Decimal(0)) + sign * part


def _values(item: Image) -> dict[str, Any]:
    return {name: _PLAIN.deserialize(value) for name, value in item.items() if not name.startswith("_")}


def is_expiry(record: Record) -> bool:
    """Whether TTL has deleted the item."""
    if record["eventName"] != "REMOVE":
        return False
    change = record["dynamodb"]
    age = change["ApproximateCreationDateTime"] - float(change["OldImage"].get("ttl", {"N": "inf"})["N"])
    return "userIdentity" in record or 0 <= age < _TTL_MATTERS


def _nonzero(parts: Parts) -> Parts:
    return {name: part for name, part in parts.items() if part}


def _text(parts: Parts | None) -> str:
    return ", ".join(f"{name} {part}" for name, part in sorted((parts or {}).items())) or "nothing"
