"""Units to accept packed events, by how many come at a time: of a real access log, and of generated page views."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from benchmarks import workloads
from benchmarks.databases import READ_PRICE, TABLE, MemoryDatabase
from dynamodb_counters import Counters, Event, Packed

_KEY: Final = ("url", "time", "client")
_HIT: Final = Event("hit", key=_KEY, retention=timedelta(days=7), packed=Packed("time"))
_FLUSHES: Final = (16, 64, 256, 1_000, 5_000)
_LINE: Final = re.compile(
    r'(?P<client>\S+) \S+ \S+ \[(?P<time>[^]]+)] "\S+ (?P<url>\S+)[^"]*" (?P<status>\d+) (?P<bytes>\S+)'
    r' "(?P<referrer>[^"]+)" "(?P<agent>[^"]+)"'
)
_BEGIN: Final = datetime(2026, 11, 20, tzinfo=UTC).timestamp()
_FASTER: Final = 1_000
"""The log has a request every half a minute, of which no flush is made: here one every 30 ms."""


def accept_units(logged: int | None = None) -> dict[str, dict[str, float]]:
    """Return write units per event, and read units at their price, by kind of event and by events of a flush."""
    kinds: dict[str, list[dict[str, Any]]] = {
        "url, time, client of generated views": [view._asdict() for view in workloads.hot(10_000)]
    }
    if workloads.LOG.exists():
        lines = workloads.LOG.read_text(errors="replace").splitlines()[:logged]
        hits = sorted((hit.groupdict() for hit in map(_LINE.match, lines) if hit), key=_seconds)
        first = _seconds(hits[0])
        times = [datetime.fromtimestamp(_BEGIN + (_seconds(hit) - first) / _FASTER, UTC) for hit in hits]
        hits = [{**hit, "time": time.isoformat(timespec="milliseconds")} for hit, time in zip(hits, times, strict=True)]
        kinds["url, time, client of the real log"] = [{name: hit[name] for name in _KEY} for hit in hits]
        kinds["the same, status, bytes, referrer, agent"] = hits
    return {kind: {str(size): _units(hits, size) for size in _FLUSHES} for kind, hits in kinds.items()}


def _seconds(hit: Mapping[str, Any]) -> float:
    # A log in English, whatever the locale of this process.
    return datetime.strptime(hit["time"], "%d/%b/%Y:%H:%M:%S %z").timestamp()


def _units(hits: Sequence[Mapping[str, Any]], size: int) -> float:
    database: Any = MemoryDatabase()
    database.create(TABLE, "pk", "sk")
    counters = Counters(TABLE, client=database, clock=lambda: _BEGIN)
    whole = len(hits) // size * size or len(hits)
    for first in range(0, whole, size):
        counters.accept_many(_HIT, hits[first : first + size])
    return float(database.usage.writes + database.usage.reads * READ_PRICE) / whole
