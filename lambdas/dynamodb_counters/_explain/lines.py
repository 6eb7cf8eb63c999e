"""Lines of an explanation, on disk until they are read: so that memory is bounded however many there are."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import localcontext
from itertools import chain
from threading import Lock
from typing import Any, Final, Literal

from dynamodb_counters._items.conversions import EXACT, Number, format_number, parse_number

_COLUMNS: Final = ("kind", "time", "source", "key", "group", "reason", "adds")
_SCHEMA: Final = "CREATE TABLE lines (item, part, rank, time, key, line, PRIMARY KEY (item, part)) WITHOUT ROWID"
_PUT: Final = (
    "INSERT INTO lines VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET rank = excluded.rank, time = excluded.time, "
    "key = excluded.key, line = excluded.line WHERE excluded.rank <= rank"
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an explanation.

    Parameters
    ----------
    kind : {"counted", "taken back", "waiting", "left out", "tally", "difference"}
        An event, item or group that counts; a row of a chunk that takes back another one; an entry of the quarantine,
        which the number lacks; an item that is not in the number; a group's tally; a rest that nothing shows.
    adds : mapping of str to int or Decimal
        How much it adds to the number, by measure.
    source, key, time, group : str or mapping of str to str
        The declaration it is of, what identifies it there, when it happened, and which of several groups it is in.
    reason : str
        Why it does not count, or what is known of a difference.
    """

    kind: Literal["counted", "taken back", "waiting", "left out", "tally", "difference"]
    adds: Mapping[str, Number] = field(default_factory=dict)
    source: str = ""
    key: Mapping[str, str] = field(default_factory=dict)
    time: str = ""
    group: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""

    def document(self) -> dict[str, Any]:
        """It as JSON has it; numbers are texts, which no reader rounds."""
        found = {name: value for name in _COLUMNS if (value := getattr(self, name))}
        return {**found, "adds": {name: format_number(number) for name, number in self.adds.items()}}


def canonical(document: Mapping[str, Any]) -> str:
    """The same bytes for the same content."""
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


class LineStore:
    """A line per item and group: as its earliest change after the group's position shows it, or else a read."""

    def __init__(self) -> None:
        # A nameless database lies in a file of its own, which goes with it.
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._db.execute(_SCHEMA)
        self._lock = Lock()

    def put(self, item: str, part: str, rank: str, line: Line | None) -> None:
        shown = (
            ("", "", None) if line is None else (line.time, "\0".join(line.key.values()), canonical(line.document()))
        )
        with self._lock:
            self._db.execute(_PUT, (item, part, rank, *shown))

    def lines(self) -> Iterator[tuple[str, Line]]:
        """All lines by time, then by key, each with its part."""
        asked = "SELECT part, line FROM lines WHERE line IS NOT NULL ORDER BY time, key, item, part"
        for part, text in self._db.execute(asked):
            document = json.loads(text)
            adds = {name: parse_number(number) for name, number in document["adds"].items()}
            yield part, Line(**{**document, "adds": adds})


@dataclass(frozen=True)
class Explanation:
    """Why a number is what it is: its lines add up to it exactly, at its position in the stream.

    Parameters
    ----------
    numbers : mapping of str to int or Decimal
        The groups' sums, by measure; of a window, ``total``.
    position : mapping of str to str
        By shard of the stream, the last record that the groups have applied, or ``end``.
    rest : list of Line
        The last lines: tallies, and differences that neither items nor tallies show.

    Examples
    --------
    >>> found = counters.explain(VIEWS, {"url": "/"})  # doctest: +SKIP
    >>> found.numbers, sum(line.adds.get("views", 0) for line in found.lines())  # doctest: +SKIP
    ({'views': 17}, 17)
    """

    asked: Mapping[str, Any]
    numbers: Mapping[str, Number]
    position: Mapping[str, str]
    rest: list[Line]
    _store: LineStore = field(repr=False)

    @property
    def difference(self) -> dict[str, Number]:
        """How much the number differs from what is explained, by measure."""
        with localcontext(EXACT):
            return added(line.adds for line in self.rest if line.kind == "difference")

    def lines(self) -> Iterator[Line]:
        """Yield all lines, page by page as they are asked for: by time, then by key."""
        yield from (line for _, line in self._store.lines())
        yield from self.rest

    def document(self) -> dict[str, Any]:
        """Return the sum, and what is asked for at which position, as JSON has them."""
        sums = {name: format_number(number) for name, number in self.numbers.items()}
        return {"kind": "sum", "adds": sums, "key": {**self.asked, "position": dict(self.position)}}

    def file(self, form: Literal["jsonl", "csv"] = "jsonl") -> Iterator[str]:
        """Yield the lines of a file that others can check; the last has the sum, and a digest of those before."""
        digest, end = hashlib.sha256(), self.document()
        head = [dict(zip(_COLUMNS, _COLUMNS, strict=True))] if form == "csv" else []
        for document in chain(head, (line.document() for line in self.lines())):
            text = _text(document, form)
            digest.update(text.encode())
            yield text
        yield _text({**end, "key": {**end["key"], "digest": digest.hexdigest()}}, form)


def _text(document: Mapping[str, Any], form: str) -> str:
    if form == "jsonl":
        return canonical(document) + "\n"
    text, cells = io.StringIO(), [document.get(name, "") for name in _COLUMNS]
    csv.writer(text, lineterminator="\n").writerow([one if isinstance(one, str) else canonical(one) for one in cells])
    return text.getvalue()


def added(each: Iterable[Mapping[str, Number]]) -> dict[str, Number]:
    sums: dict[str, Number] = {}
    for numbers in each:
        for name, number in numbers.items():
            sums[name] = sums.get(name, 0) + number
    return {name: number for name, number in sums.items() if number}
