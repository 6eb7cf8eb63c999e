"""Readers against the truth: what they read of each group that is said to be complete, and what waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from dynamodb_counters._control.control import Status, read_control, read_declarations
from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Aggregate, Declaration, TimeWeighted, Window
from dynamodb_counters._table import Table
from simulation.pairs.cuts import Image
from simulation.pairs.held import held_groups
from simulation.pairs.subjects import Group, Parts, signature
from simulation.pairs.truth import Groups, Truth, nonzero
from simulation.schedules.backend import Backend


def audit(
    backend: Backend,
    declared: Iterable[Declaration],
    *,
    whole: bool,
    truth: Truth,
    is_unknown: Callable[[Declaration, Group], bool] = lambda _declaration, _group: False,
) -> list[str]:
    """Differences of complete reads from the truth; with `whole`, everything must be complete, as declared."""
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
            if want.get(group, {}) != have.get(group, {}) and not is_unknown(current, group)
        ]
        wanted, found = truth.must_wait(current), truth.orders_waiting(current.name)
        wrong += [f"{current.name}: expected to wait {wanted}, found {found}"] if wanted != found else []
    return wrong


def _read(
    backend: Backend, counters: Counters, declared: Declaration, current: Declaration, wanted: Iterable[Group]
) -> Groups:
    """Groups as readers see them: all that are wanted, or are there."""
    known = {*wanted}
    held: dict[Group, Parts] = {}
    for item in backend.items():
        if item.get("_type", {}).get("S") != current.name:
            continue
        for one in held_groups(current, item) if isinstance(current, Aggregate) else ():
            assert not one.declaration.pages or one.group not in held, f"{one.place} lies in two pages"
            known.add(one.group)
            held.setdefault(one.group, {})["_score"] = Decimal(item.get("_score", {"N": "0"})["N"])
        if isinstance(current, Window):
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
            if isinstance(declared.measure, TimeWeighted):
                level = counters.window(declared, values).integral(start, start + timedelta(hours=1), consistent=True)
                held_for = level.opening * 3600 + (level.closing - level.opening) * 3600 - level.value
                parts["total.t"] = Decimal(held_for)
        else:
            assert isinstance(declared, Aggregate)
            read = counters.get(declared, values, consistent=True)
            assert read.complete
            parts = _attributes(read.measures)
            parts |= _apart(current, held.get(group, {}), parts)
        if kept := nonzero(parts):
            found[group] = kept
    return found


def _apart(aggregate: Aggregate, held: Parts, parts: Parts) -> Parts:
    """A score that is not its measure's."""
    score, measure = held.get("_score", Decimal(0)), aggregate.ranking.measure if aggregate.ranking else ""
    return {"_score": score} if measure and score != parts.get(measure, 0) else {}


def _hour_of(window: Window, item: Image) -> Group:
    fields = window._pk_template.parse(item["pk"]["S"])
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


def _text(parts: Parts | None) -> str:
    return ", ".join(f"{name} {part}" for name, part in sorted((parts or {}).items())) or "nothing"
