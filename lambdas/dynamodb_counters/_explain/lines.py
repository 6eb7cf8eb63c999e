"""Lines of an explanation, on disk until they are read: so that memory is bounded however many there are."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import localcontext
from threading import Lock
from typing import Any, Final, Literal, TypeAlias

from dynamodb_counters._items.decimals import EXACT, Number, format_number, parse_number

Kind: TypeAlias = Literal["counted", "taken back", "waiting", "left out", "tally", "difference"]

READ: Final = "~"
"""The rank of what was read last: after those of all changes."""

_SCHEMA: Final = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE parts (item TEXT, part TEXT, rank TEXT, lines TEXT, PRIMARY KEY (item, part)) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an explanation.

    Parameters
    ----------
    kind : str
        ``"counted"``: an event, item or group that counts. ``"taken back"``: a row of a chunk that does so with one
        before. ``"waiting"``: the quarantine holds what the items show, or the reverse. ``"left out"``: it adds nothing.
        ``"tally"``: direct counts, and what was erased or has expired and stays counted. ``"difference"``: the rest.
    adds : mapping of str to int or Decimal
        What it adds to the number, by measure; nothing if it is left out.
    source : str
        The declaration of the event, item or group.
    key : mapping of str to str
        What identifies it there.
    time : str
        When it happened, as far as the declarations say so.
    group : mapping of str to str
        The group that counts it, if several are explained.
    reason : str
        Why it is not counted, or what is known of a difference.
    """

    kind: Kind
    adds: Mapping[str, Number] = field(default_factory=dict)
    source: str = ""
    key: Mapping[str, str] = field(default_factory=dict)
    time: str = ""
    group: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""

    def document(self) -> dict[str, Any]:
        """It as JSON has it: numbers are texts, for no reader to round them."""
        adds = {name: format_number(number) for name, number in self.adds.items()}
        found = {name: getattr(self, name) for name in self.__slots__ if name != "adds"}
        return {
            name: dict(value) if isinstance(value, Mapping) else value for name, value in found.items() if value
        } | {"adds": adds}

    def text(self) -> str:
        """One line of the file, the same for the same content."""
        return canonical(self.document())


def canonical(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def line_of(text: str) -> Line:
    document = json.loads(text)
    return Line(**document | {"adds": {name: parse_number(number) for name, number in document["adds"].items()}})


class LineStore:
    """What items contribute to groups, as the earliest change after each group's position shows it, or else a read."""

    def __init__(self) -> None:
        # A nameless database lies in a file that SQLite deletes.
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._db.executescript(_SCHEMA)
        self._lock = Lock()

    def put(self, item: str, part: str, rank: str, lines: Sequence[Line]) -> None:
        known = "SET rank = excluded.rank, lines = excluded.lines WHERE excluded.rank <= rank"
        text = "\n".join(each.text() for each in lines)
        with self._lock:
            self._db.execute(
                f"INSERT INTO parts VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE {known}", (item, part, rank, text)
            )

    def sums(self) -> dict[str, dict[str, Number]]:
        """What the lines of each part add up to."""
        found: dict[str, dict[str, Number]] = {}
        with localcontext(EXACT):
            for part, lines in self._db.execute("SELECT part, lines FROM parts"):
                held = found.setdefault(part, {})
                for text in filter(None, lines.split("\n")):
                    for name, number in line_of(text).adds.items():
                        held[name] = held.get(name, 0) + number
        return found

    def lines(self) -> Iterator[Line]:
        """All lines, by time, then by key."""
        with self._lock:
            self._db.executescript(
                "CREATE TABLE IF NOT EXISTS sorted (time TEXT, key TEXT, line TEXT); DELETE FROM sorted"
            )
            for (lines,) in self._db.execute("SELECT lines FROM parts"):
                each = [(text, json.loads(text)) for text in filter(None, lines.split("\n"))]
                rows = [(one.get("time", ""), canonical(one.get("key", {})), text) for text, one in each]
                self._db.executemany("INSERT INTO sorted VALUES (?, ?, ?)", rows)
        for (text,) in self._db.execute("SELECT line FROM sorted ORDER BY time, key, line"):
            yield line_of(text)
