"""What the counts must be, added up by brute force from what was written, and where the table differs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Context, Decimal, Inexact
from typing import Any, Final, TypeAlias

from dynamodb_counters._declarations import Window
from simulation.oracle.plain_parts import Parts, Values
from simulation.oracle.specs import AT_LEAST, EXACTLY, RETENTION, Spec, declarations

Counts: TypeAlias = dict[tuple[str, str, str], dict[str, Decimal]]
"""By declaration, partition key and sort key: attribute and number; no zeros, and no bucket whose retention is over."""

Change: TypeAlias = tuple[Values | None, Values | None, bool]
"""An event before and after a write, and whether TTL deleted it."""

EXACT: Final = Context(prec=400, Emax=9999, Emin=-9999, traps=[Inexact])

_SPREAD: Final = re.compile(r"#~\d+$")


def expected_so_far(specs: Sequence[Spec], history: Iterable[Change], now: float) -> tuple[Counts, int]:
    """What the counts must be while poisoned images wait in quarantine, and how many of these there are."""
    counts: Counts = {}
    poisoned = 0
    for old, new, by_ttl in history:
        before = [spec for spec in specs if not (by_ttl and spec.keeps_expired)]
        for values, wanted, sign in ((new, specs, 1), (old, before, -1)):
            if values is None:
                continue
            try:
                parts = [(spec, spec.parts(values)) for spec in wanted]
            except (ArithmeticError, LookupError):
                poisoned += 1
                continue
            for spec, numbers in parts:
                if numbers:
                    signed = numbers if sign > 0 else {n: part.copy_negate() for n, part in numbers.items()}
                    _add(counts, spec, values, signed)
    return _with_derived(_comparable(specs, counts, now)), poisoned


def expected(specs: Sequence[Spec], live: Iterable[Values], expired: Iterable[Values], now: float) -> Counts:
    """What the counts must be, from nothing but the events live in the end and those TTL deleted."""
    history: list[Change] = [(None, values, False) for values in live]
    for values in expired:
        history += [(None, values, False), (values, None, True)]
    counts, poisoned = expected_so_far(specs, history, now)
    assert not poisoned
    return counts


def actual(specs: Sequence[Spec], items: Iterable[Mapping[str, Any]], now: float) -> Counts:
    """The counts in a table's items."""
    names = {declared.name for declared in declarations(specs)}
    counts: Counts = {}
    for item in items:
        name = item.get("_type", {}).get("S", "")
        if name not in names:
            continue
        numbers = counts.setdefault((name, _SPREAD.sub("", item["pk"]["S"]), item["sk"]["S"]), {})
        for attribute, value in item.items():
            if "N" in value and attribute != "ttl":
                numbers[attribute] = EXACT.add(numbers.get(attribute, Decimal(0)), Decimal(value["N"]))
    return _comparable(specs, counts, now)


def differences(want: Counts, have: Counts) -> list[str]:
    """Where two sets of counts differ, one line per item."""
    return [
        f"{key}: expected {_shown(want.get(key, {}))}, found {_shown(have.get(key, {}))}"
        for key in sorted({*want, *have})
        if want.get(key, {}) != have.get(key, {})
    ]


def _with_derived(counts: Counts) -> Counts:
    """Add what looks at the groups of another aggregate: it sees their keys and numbers only."""
    derived: Counts = {}

    def add(name: str, pk: str, sk: str, attribute: str, number: Decimal | int) -> None:
        numbers = derived.setdefault((name, pk, sk), {})
        numbers[attribute] = numbers.get(attribute, Decimal(0)) + number

    for (name, region, _), numbers in counts.items():
        if name == "books-members":
            add("books", region, "BOOKS", "distinct", 1)
        trades = numbers.get("trades", Decimal(0)) if name == "by_desk" else Decimal(0)
        if trades >= 2:
            add("crowded", "CROWDED", region, "desks", 1)
            add("crowded", "CROWDED", region, "trades", trades)
        for exactly in EXACTLY:
            if trades == exactly:
                add("sizes", "SIZES", region, f"exactly.{exactly}", 1)
        for low in AT_LEAST:
            if trades >= low:
                add("sizes", "SIZES", region, f"at_least.{low}", 1)
        if trades:
            add("sizes", "SIZES", region, "capped", min(trades, Decimal(3)))
    return counts | derived


def _add(counts: Counts, spec: Spec, values: Values, parts: Parts) -> None:
    for key, placed in spec.places(values, parts):
        numbers = counts.setdefault((spec.declaration.name, *key), {})
        for name, number in placed.items():
            numbers[name] = EXACT.add(numbers.get(name, Decimal(0)), number)


def _comparable(specs: Sequence[Spec], counts: Counts, now: float) -> Counts:
    retained = {s.declaration.name for s in specs if isinstance(s.declaration, Window) and s.declaration.retention}
    return {
        key: kept
        for key, numbers in counts.items()
        if (kept := {name: number for name, number in numbers.items() if number})
        and not (key[0] in retained and _bucket_end(key[2]) + RETENTION.total_seconds() <= now)
    }


def _bucket_end(sort_key: str) -> float:
    return datetime.fromisoformat(sort_key.rpartition("#")[2] + ":00+00:00").timestamp() + 3600


def _shown(numbers: Mapping[str, Decimal]) -> str:
    return ", ".join(f"{name} {number}" for name, number in sorted(numbers.items())) or "nothing"
