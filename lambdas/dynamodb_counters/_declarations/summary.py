"""Declarations in plain words, for people who read a diff. Pure.

The same declaration reads the same everywhere. What may change is told at its default, too: a diff then shows both.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final, TypeAlias

from dynamodb_counters._declarations.aggregates import Aggregate
from dynamodb_counters._declarations.consistency import Declaration
from dynamodb_counters._declarations.measures import Average, Count, Histogram, Measure, Sum
from dynamodb_counters._declarations.packed import Packed
from dynamodb_counters._declarations.sources import Event, Items
from dynamodb_counters._declarations.windows import Window
from dynamodb_counters._items.conditions import Condition
from dynamodb_counters._items.decimals import format_number

Words: TypeAlias = dict[str, Any]
"""Texts by aspect; what is kept has one text a measure."""

_SIGNS: Final = {"eq": "=", "ne": "is not", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "begins_with": "begins with"}
_BINS: Final = {"exactly": "exactly", "at_least": "at least", "bounds": "from"}
_UNITS: Final = {"day": timedelta(days=1), "hour": timedelta(hours=1), "minute": timedelta(minutes=1)}
_ALIKE: Final = 3
"""From so many bins a step apart, only the first and the last are told."""


def summarized(parts: Iterable[Declaration | Event]) -> dict[str, Words]:
    """What is declared, and the events it counts, by name.

    >>> view = Event("view", pk="URL#{url}", sk="T#{time}")
    >>> views = Aggregate("views", view, pk="URL#{url}", sk="STATISTICS", measures={"views": Count()})
    >>> summarized([views])["views"]  # doctest: +NORMALIZE_WHITESPACE
    {'counts': 'event view', 'where': 'all', 'keeps': {'views': 'count'}, 'per': 'url', 'key': 'URL#{url} / STATISTICS',
    'ranked': 'no', 'write shards': '1', 'groups of an item': 'at most 1000', 'expired items': 'stay counted',
    'on change': 'backfill'}
    """
    found: dict[str, Words] = {}
    for part in parts:
        if isinstance(part, Event):
            found[part.name] = event_words(part)
            continue
        found[part.name] = words_of(part)
        if isinstance(part.source, Event):
            found[part.source.name] = event_words(part.source)
    return dict(sorted(found.items()))


def words_of(declaration: Declaration) -> Words:
    """One declaration."""
    where = declaration.where
    words: Words = {
        "counts": _source_words(declaration.source),
        "where": "all" if where is None else condition_words(where),
    }
    if isinstance(declaration, Window):
        words["keeps"] = _measure_words(declaration.measure)
    else:
        words["keeps"] = {name: _measure_words(measure) for name, measure in declaration.measures.items()}
    words["per"] = ", ".join(declaration.fields) or "all together"
    words["key"] = declaration.pk if isinstance(declaration, Window) else f"{declaration.pk} / {declaration.sk}"
    words |= _window_words(declaration) if isinstance(declaration, Window) else _aggregate_words(declaration)
    words["expired items"] = "are taken back" if declaration.on_expiry == "subtract" else "stay counted"
    words["on change"] = declaration.on_change
    return words


def event_words(event: Event) -> Words:
    """One event."""
    return {
        "event": f"{event.pk} / {event.sk}",
        "kept for": "good" if event.retention is None else duration_words(event.retention),
        "corrected by": "nothing" if event.version is None else f"a greater {event.version}",
        "packed": "no" if event.packed is None else "; before that: ".join(map(_packed_words, event.packed.layouts)),
    }


def condition_words(condition: Condition) -> str:
    """A condition as one would say it.

    >>> from dynamodb_counters._items.conditions import Attr
    >>> condition_words(Attr("bytes").gt(5) & ~Attr("test").exists())
    'bytes > 5 and test is missing'
    """
    return _said(condition, inside="")


def duration_words(duration: timedelta) -> str:
    """A length of time in its largest whole unit.

    >>> duration_words(timedelta(hours=25)), duration_words(timedelta(days=1))
    ('25 hours', '1 day')
    """
    for name, unit in _UNITS.items():
        if duration and not duration % unit:
            return _several(duration // unit, name)
    return f"{duration.total_seconds():g} seconds"


def _said(condition: Condition, *, inside: str) -> str:
    name, attribute, parts = condition.operator, condition.attribute, condition.operands
    if name in ("and", "or"):
        equal = {part.attribute for part in parts if part.operator == "eq"}
        if name == "or" and len(equal) == 1 and all(part.operator == "eq" for part in parts) and len(parts) > 1:
            return f"{equal.pop()} is one of {', '.join(_literal(part.operands[0]) for part in parts)}"
        said = f" {name} ".join(_said(part, inside=name) for part in parts)
        return f"({said})" if inside not in ("", name) and len(parts) > 1 else said
    if name == "not":
        [part] = parts
        return f"{part.attribute} is missing" if part.operator == "exists" else f"not ({_said(part, inside='')})"
    if name == "exists":
        return f"{attribute} is there"
    return f"{attribute} {_SIGNS[name]} {_literal(parts[0])}"


def _literal(value: str | int | Decimal | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else format_number(value)


def _source_words(source: Event | Items | Aggregate) -> str:
    if isinstance(source, Items):
        return f"items where {condition_words(source.where)}"
    return f"event {source.name}" if isinstance(source, Event) else f"groups of {source.name}"


def _measure_words(measure: Measure) -> str:
    if isinstance(measure, Count):
        return "count"
    if isinstance(measure, Sum):
        cap = "" if measure.cap is None else f", at most {format_number(measure.cap)} of each"
        return f"sum of {measure.attribute}{cap}"
    if isinstance(measure, Average):
        return f"average of {measure.attribute}"
    return f"count by {measure.attribute}: {_BINS[measure.kind]} {_bins_words(measure)}"


def _bins_words(histogram: Histogram) -> str:
    bins = histogram.bins
    steps = {high - low for low, high in pairwise(bins)}
    if len(bins) > _ALIKE and len(steps) == 1:
        step = steps.pop()
        by = "" if step == 1 else f" by {format_number(step)}"
        return f"{format_number(bins[0])} to {format_number(bins[-1])}{by}"
    return ", ".join(map(format_number, bins))


def _aggregate_words(aggregate: Aggregate) -> Words:
    ranking = aggregate.ranking
    return {
        "ranked": "no"
        if ranking is None
        else f"by {ranking.by} on {_spread(ranking.leaderboard, ranking.write_shards)}",
        "write shards": str(aggregate.write_shards),
        "groups of an item": f"at most {aggregate.max_groups}",
    }


def _window_words(window: Window) -> Words:
    ahead = window.future_tolerance
    return {
        "by time": window.time,
        "buckets": ", ".join(tier.name for tier in window.kept_tiers),
        "precision": duration_words(window.precision),
        "kept for": "good" if window.retention is None else duration_words(window.retention),
        "late events": "are dropped" if window.late == "drop" else "go to quarantine",
        "events ahead": "are counted" if ahead is None else f"by more than {duration_words(ahead)} go to quarantine",
    }


def _packed_words(packed: Packed) -> str:
    found = [f"buckets of {duration_words(packed.bucket)} by {packed.time}", _several(packed.parts, "part")]
    if packed.by is not None:
        found[1] += f" by {packed.by}"
    found.append(f"chunks of {packed.chunk_bytes} bytes")
    if packed.future_tolerance != timedelta(minutes=15):
        ahead = packed.future_tolerance
        found.append("any ahead" if ahead is None else f"up to {duration_words(ahead)} ahead")
    if packed.since is not None:
        found.append(f"since {packed.since.isoformat()}")
    return ", ".join(found)


def _spread(leaderboard: str, shards: int) -> str:
    return leaderboard if shards == 1 else f"{leaderboard}, over {shards} write shards"


def _several(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
