"""Declarations in plain words, aspect by aspect, for people who read a diff; defaults, too: these may change. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final, TypeAlias

from dynamodb_counters._changes.words import condition_words, length_words, measure_words, source_words
from dynamodb_counters._declarations.aggregates import Aggregate
from dynamodb_counters._declarations.consistency import Declaration
from dynamodb_counters._declarations.packed import Packed
from dynamodb_counters._declarations.sources import Event
from dynamodb_counters._declarations.windows import Window

Words: TypeAlias = dict[str, Any]
"""Texts by aspect; what is kept has one text a measure."""

_EXPIRED: Final = {"keep": "stay counted", "subtract": "are taken back", "tally": "move into the tally"}


def aspects(declaration: Declaration) -> Words:
    where = declaration.where
    words: Words = {
        "counts": source_words(declaration.source),
        "where": "all" if where is None else condition_words(where),
    }
    if isinstance(declaration, Window):
        words["keeps"] = measure_words(declaration.measure)
    else:
        words["keeps"] = {name: measure_words(measure) for name, measure in declaration.measures.items()}
    words["per"] = ", ".join(declaration.fields) or "all together"
    words["key"] = declaration.pk if isinstance(declaration, Window) else f"{declaration.pk} / {declaration.sk}"
    words |= _window_words(declaration) if isinstance(declaration, Window) else _aggregate_words(declaration)
    words["expired items"] = _EXPIRED[declaration.on_expiry]
    words["on change"] = declaration.on_change
    return words


def event_words(event: Event) -> Words:
    return {
        "event": f"{event.pk} / {event.sk}",
        "kept for": "good" if event.retention is None else length_words(event.retention),
        "corrected by": "nothing" if event.version is None else f"a greater {event.version}",
        "packed": "no" if event.packed is None else "; before that: ".join(map(_packed_words, event.packed._layouts)),
    }


def _aggregate_words(aggregate: Aggregate) -> Words:
    ranking, spread = aggregate.ranking, ""
    if ranking is not None and ranking.write_shards > 1:
        spread = f", over {ranking.write_shards} write shards"
    return {
        "ranked": "no" if ranking is None else f"by {ranking.measure} on {ranking.leaderboard}{spread}",
        "write shards": str(aggregate.write_shards),
        "in pages": "yes" if aggregate.pages else "no",
        "groups of an item": f"at most {aggregate.max_groups}",
        # Few have a retention, so it is not shown at its default.
        **({} if aggregate.retention is None else {"retention": length_words(aggregate.retention)}),
    }


def _window_words(window: Window) -> Words:
    ahead = window.future_tolerance
    return {
        "by time": window.time,
        "buckets": ", ".join(tier.name for tier in window._kept_tiers),
        "precision": length_words(window.precision),
        "kept for": "good" if window.retention is None else length_words(window.retention),
        "late events": "are dropped" if window.late == "drop" else "go to quarantine",
        "events ahead": "are counted" if ahead is None else f"by more than {length_words(ahead)} go to quarantine",
    }


def _packed_words(packed: Packed) -> str:
    found = [f"buckets of {length_words(packed.bucket)} by {packed.time}", f"{packed.parts} parts"]
    if packed.partition_by is not None:
        found[1] += f" by {packed.partition_by}"
    found.append(f"chunks of {packed.chunk_bytes} bytes")
    if packed.future_tolerance != timedelta(minutes=15):
        ahead = packed.future_tolerance
        found.append("any ahead" if ahead is None else f"up to {length_words(ahead)} ahead")
    if packed.since is not None:
        found.append(f"since {packed.since.isoformat()}")
    return ", ".join(found)
