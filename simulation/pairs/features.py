"""The features that meet on one table, and the pairs of them that cannot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import combinations, combinations_with_replacement, product
from typing import Final

EVERYTHING: Final = frozenset({"*"})
"""Name of a feature that concerns the whole table."""

PLAIN: Final = "plain events"
PACKED: Final = "packed events"
FOREIGN: Final = "items of other code"
ONCE: Final = "record_once"
CORRECTED: Final = "corrections"
RETRACTED: Final = "retractions"
EXPIRED: Final = "expiry"
ERASED_KEPT: Final = "erasure, counts kept"
ERASED_BACK: Final = "erasure, taken back"
QUARANTINED: Final = "quarantine"
REDRIVEN: Final = "redrive"
DISCARDED: Final = "discards"
ADDED: Final = "declarations added"
REMOVED: Final = "declarations removed"
RENAMED: Final = "declarations renamed"
REDEFINED: Final = "declarations redefined"
ATTRIBUTES: Final = "attributes of events changed"
BACKFILLED: Final = "backfills"
DROPPED: Final = "drop"
VERIFIED: Final = "verification"
REPAIRED: Final = "repair"
RESTORED: Final = "restores"
SPLIT: Final = "shard splits"
REQUESTS: Final = "lost and late requests"
CRASHED: Final = "crashes"
THROTTLED: Final = "throttles"
ZOMBIES: Final = "zombies"
REDELIVERED: Final = "redeliveries"
DERIVED: Final = "derived fields and defaults"
PAGED: Final = "groups in pages"
PAGE_SPLIT: Final = "page splits"
PERCENTILES: Final = "percentiles"
ACTIVE: Final = "active members"
LEVEL: Final = "levels over time"
EXTREMES: Final = "extremes"
CROSSED: Final = "thresholds crossed"

FEATURES: Final = tuple(text for name, text in vars().copy().items() if name.isupper() and isinstance(text, str))
"""All of these."""

RANKS: Final = "ranks"
"""Compared in schedules, and in no cell of the page yet."""

Pair = tuple[str, str]

_ONE_SOURCE: Final = "a declaration counts one kind of source"
_ELSEWHERE: Final = "windows are neither renamed nor spoiled here: test_measures.py adds and repairs them"
_NOT_WATCHED: Final = "a threshold watches groups of an Aggregate or Distinct, and refuses others"

REASONS: Final[Mapping[Pair, str]] = {
    (PLAIN, PACKED): _ONE_SOURCE,
    (PLAIN, FOREIGN): _ONE_SOURCE,
    (PACKED, FOREIGN): _ONE_SOURCE,
    (PACKED, ONCE): "a transaction inserts an item: record_once refuses a packed event",
    (FOREIGN, ONCE): _ONE_SOURCE,
    (FOREIGN, ERASED_KEPT): "erasure finds events, not items of other code",
    (FOREIGN, ERASED_BACK): "erasure finds events, not items of other code",
    (FOREIGN, ATTRIBUTES): "items of other code have no declared attributes",
    (PAGED, LEVEL): "a window has no pages",
    (PAGE_SPLIT, LEVEL): "a window has no pages",
    **dict.fromkeys(((PAGED, EXTREMES), (PAGE_SPLIT, EXTREMES)), "values in order are items of their own"),
    **dict.fromkeys(product((RENAMED, REPAIRED), (LEVEL,)), _ELSEWHERE),
    **dict.fromkeys(
        product((ONCE,), (PAGED, PAGE_SPLIT, PERCENTILES, ACTIVE)), "record_once refuses what counts in pages"
    ),
    **dict.fromkeys(product((FOREIGN,), (ACTIVE, LEVEL)), "orders have no time here: test_measures.py"),
    **dict.fromkeys(product((LEVEL, PERCENTILES, ACTIVE, EXTREMES), (CROSSED,)), _NOT_WATCHED),
    **dict.fromkeys(combinations((PERCENTILES, ACTIVE, LEVEL, EXTREMES), 2), "a declaration has one such measure"),
    (PACKED, CORRECTED): "a packed event has no version",
}
"""Why no schedule can cover a pair."""


def pairs(happened: Mapping[str, Iterable[str]]) -> Counter[Pair]:
    """Return the pairs of features that happened to a declaration of the same name."""
    counts: Counter[Pair] = Counter()
    for feature, other in combinations_with_replacement(FEATURES, 2):
        first, second = frozenset(happened.get(feature, ())), frozenset(happened.get(other, ()))
        meet = first and second and (EVERYTHING & (first | second) or first & second)
        counts[feature, other] += bool(meet)
    return +counts


def uncovered(covered: Mapping[Pair, int]) -> list[Pair]:
    """Return the pairs that nothing covers, and no reason excuses."""
    possible = combinations_with_replacement(FEATURES, 2)
    return [pair for pair in possible if not covered.get(pair) and pair not in REASONS]


def table(covered: Mapping[Pair, int]) -> str:
    """Return a Markdown table: in how many schedules each pair met; `*n` where it cannot, for the n-th reason."""
    reasons = list(dict.fromkeys(REASONS.values()))
    numbers = {feature: number for number, feature in enumerate(FEATURES, 1)}
    lines = [
        "| | feature | " + " | ".join(str(numbers[feature]) for feature in FEATURES) + " |",
        "|---|---|" + "--:|" * len(FEATURES),
    ]
    for row in FEATURES:
        cells = []
        for column in FEATURES:
            pair = (row, column) if numbers[row] <= numbers[column] else (column, row)
            cell = f"{covered.get(pair, 0)}" if pair not in REASONS else f"*{reasons.index(REASONS[pair]) + 1}"
            cells.append("" if numbers[column] > numbers[row] else cell)
        lines.append(f"| {numbers[row]} | {row} | {' | '.join(cells)} |")
    notes = [f"- \\*{number}: {reason}." for number, reason in enumerate(reasons, 1)]
    return "\n".join([*lines, "", *notes])


_PAGE: Final = """\
# Pairs of features

All features run on one table at once, under every fault: each schedule draws writers, operators,
deployments, runs and trouble from its seed, and compares every group with what items, stream and a
ledger of direct changes come to. A cell says in how many schedules both features happened to a
declaration of the same name; `*n` marks a pair that cannot meet, for the reason below the table.
Each seed does some acts more often than others. No page with an empty cell is written.

"""


def page(covered: Mapping[Pair, int], engine: str, first: int, count: int) -> str:
    """Return the page with the table."""
    command = f"python -m simulation.pairs --engine {engine} --seed {first} --count {count} --page docs/pairs.md"
    return f"{_PAGE}{count:,} schedules; `{command}` writes this page.\n\n{table(covered)}\n"
