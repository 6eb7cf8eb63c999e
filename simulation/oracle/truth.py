"""What the counts must be, added up by brute force from what was written, and where the table differs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Context, Decimal, Inexact
from typing import Any, Final, TypeAlias

from dynamodb_counters._declarations import Window
from simulation.oracle.specs import AT_LEAST, EXACTLY, ONE, RETENTION, Parts, Spec, Values, declarations

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
        before = [spec for spec in specs if not by_ttl or spec.declaration.on_expiry == "subtract"]
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
                    for key, placed in spec.places(values, signed):
                        _add(counts, (spec.declaration.name, *key), placed)
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
        numbers = {attribute: Decimal(value["N"]) for attribute, value in item.items() if "N" in value}
        numbers.pop("ttl", None)
        _add(counts, (name, _SPREAD.sub("", item["pk"]["S"]), item["sk"]["S"]), numbers)
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
    for (name, region, _), numbers in counts.items():
        if name == "books-members":
            _add(derived, ("books", region, "BOOKS"), {"distinct": ONE})
        trades = numbers.get("trades", Decimal(0)) if name == "by_desk" else Decimal(0)
        if trades >= 2:
            _add(derived, ("crowded", "CROWDED", region), {"desks": ONE, "trades": trades})
        if trades:
            exactly = {f"exactly.{number}": ONE for number in EXACTLY if trades == number}
            at_least = {f"at_least.{number}": ONE for number in AT_LEAST if trades >= number}
            capped = {"capped": min(trades, Decimal(3))}
            _add(derived, ("sizes", "SIZES", region), exactly | at_least | capped)
    return counts | derived


def _add(counts: Counts, key: tuple[str, str, str], parts: Parts) -> None:
    numbers = counts.setdefault(key, {})
    for name, number in parts.items():
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
