"""Lines of an explanation: what images contribute, folded as the aggregator folds them; on disk until they are read."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import localcontext
from threading import Lock
from typing import Any, Final, Literal, TypeAlias

from dynamodb_counters._backfill.verification import awaited
from dynamodb_counters._control.run_items import Held, Sums, folded_alone, item_digest, sums_of
from dynamodb_counters._declarations import Aggregate, Count, Declaration, Event, Window
from dynamodb_counters._declarations.groups import with_below
from dynamodb_counters._explain.asked import Asked
from dynamodb_counters._fold.contributions import UNFOLDABLE
from dynamodb_counters._fold.item_layout import GroupKey, ItemLayout, group_of_item
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import Origins
from dynamodb_counters._items.bookkeeping import is_discarded, stored_marks
from dynamodb_counters._items.chunks import decode_chunk
from dynamodb_counters._items.conditions import Image, reader, text_reader
from dynamodb_counters._items.conversions import EXACT, Number, event_seconds, format_number, parse_number
from dynamodb_counters._items.table_schema import CHUNK, PACK_SUFFIX, PK, SK, TYPE
from dynamodb_counters._quarantine.quarantine import REASON
from dynamodb_counters._timeline.tiers import utc

_COLUMNS: Final = ("kind", "time", "source", "key", "group", "reason", "adds")
_SCHEMA: Final = "CREATE TABLE lines (item, part, rank, time, key, line, PRIMARY KEY (item, part)) WITHOUT ROWID"
_PUT: Final = (
    "INSERT INTO lines VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET rank = excluded.rank, time = excluded.time, "
    "key = excluded.key, line = excluded.line WHERE excluded.rank <= rank"
)

_FILTERED: Final = "the declaration's `where` leaves it out"
_NOTHING: Final = "it adds 0"
_TAKEN_BACK: Final = "it was retracted"
_BEFORE: Final = "it was retracted before it came"
_DISCARDED: Final = "it was discarded from the quarantine"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an explanation.

    Parameters
    ----------
    kind : {"counted", "taken back", "waiting", "left out", "difference"}
        An event, item or group that counts; a row of a chunk that takes back another one; an entry of the quarantine,
        which the number lacks; an item that is not in the number; a rest that nothing shows.
    adds : mapping of str to int or Decimal
        How much it adds to the number, by measure.
    source, key, time, group : str or mapping of str to str
        The declaration it is of, what identifies it there, when it happened, and which of several groups it is in.
    reason : str
        Why it does not count, or what is known of a difference.
    """

    kind: Literal["counted", "taken back", "waiting", "left out", "difference"]
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
        The last lines: differences that no item shows.

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

    def file(self) -> Iterator[str]:
        """Yield the JSON Lines of a file that others can check; the last has the sum, and a digest of those before."""
        digest, end = hashlib.sha256(), self.document()
        for line in self.lines():
            text = canonical(line.document()) + "\n"
            digest.update(text.encode())
            yield text
        yield canonical({**end, "key": {**end["key"], "digest": digest.hexdigest()}}) + "\n"


def added(each: Iterable[Mapping[str, Number]]) -> dict[str, Number]:
    sums: dict[str, Number] = {}
    for numbers in each:
        for name, number in numbers.items():
            sums[name] = sums.get(name, 0) + number
    return {name: number for name, number in sums.items() if number}


Found: TypeAlias = dict[tuple[str, GroupKey], Line]
"""Lines by the item, or the row of a chunk, that each is of, and by the group."""


class ImageLines:
    """The lines of images as of a moment by which nothing is early, and nothing late."""

    def __init__(self, asked: Asked, origins: Origins, now: float) -> None:
        self.asked, self._origins, self._now, declared = asked, origins, now, asked.declaration
        self._names = frozenset((declared.name,))
        # An early event waits in the quarantine; nothing shows a late one.
        self._plan = Plan(tuple(with_below(_timeless(declared))))
        counting = _counting(declared)
        self._probes = [(_NOTHING, Plan(tuple(with_below(counting))))]
        if declared.where is not None:
            self._probes.append((_FILTERED, Plan(tuple(with_below(replace(counting, where=None))))))
        self._source: Any = declared.source
        over = self._source if isinstance(self._source, Aggregate) else None
        self.pages = ItemLayout(over).pages if over is not None and not over._longest else None
        """How an item of the source holds many groups, each of which counts on its own."""
        packed = self._source.packed if isinstance(self._source, Event) else None
        time = None if over is not None else asked.time or (packed and packed.time)
        self._find_time = reader(time) if time else lambda _: None

    def lines(self, image: Image | None, keys: Image, is_foreign: bool | None, marks: Iterable[str] = ()) -> Found:
        """Lines of an item, if there is one; `marks` are those that a change puts on it."""
        found: Found = {}
        if image is None or not self._plan.sources(image, is_foreign=is_foreign):
            return found
        seen: Counter[str] = Counter()
        is_out = is_discarded(self.asked.declaration.name, image, {*stored_marks(image), *marks})
        try:
            for row, sign in self.rows(image):
                held = Held(keys if self.pages is None else {PK: row[PK], SK: row[SK]}, is_foreign, "")
                name = item_digest(held.keys, is_foreign=bool(is_foreign))
                for group, line in self._of_row(row, _DISCARDED if is_out else sign, held):
                    if CHUNK in image:
                        # The row itself: others of its chunk may be erased.
                        text = canonical(line.document())
                        name, seen[text] = f"{item_digest(keys)}{text}{seen[text]}", seen[text] + 1
                    found[name, group] = line
        except UNFOLDABLE:
            pass  # The fold leaves it to quarantine.
        return found

    def waiting(self, entry: Image) -> Found:
        """Lines that take away an entry of the quarantine: it would add so much."""
        keys, reason = {PK: entry[PK], SK: entry[SK]}, entry.get(REASON, {}).get("S", "")
        about: Any = {"key": {name: value["S"] for name, value in keys.items()}, "reason": reason}
        each = self._added(awaited(self._origins, self._plan, entry, self._now), -1)
        return {(item_digest(keys), group): self._line("waiting", group, adds, **about) for group, adds in each}

    def rows(self, image: Image) -> Iterator[tuple[Image, str]]:
        """The rows of an item, each with the sign of a chunk's row."""
        if image.get(TYPE, {}).get("S") == self._source.name + PACK_SUFFIX:
            for row in decode_chunk(image[CHUNK]).all_rows():
                yield {**row.values, TYPE: {"S": self._source.name}}, row.sign
        else:
            yield from ((each, "+") for each in ([image] if self.pages is None else self.pages.groups(image)))

    def _of_row(self, row: Image, sign: str, held: Held) -> Iterator[tuple[GroupKey, Line]]:
        """Lines of an event, item or group; with a `sign` of no chunk, it is left out for that reason."""
        folded = folded_alone(self._plan, self._names, row, self._now, held)
        about: Any = {"key": self._key(row, held.keys), "time": self._time(row)}
        counts = list(self._added(sums_of(folded), -1 if sign == "-" else 1)) if sign in ("+", "-") else []
        for group, adds in counts:
            why = {"reason": _TAKEN_BACK} if sign == "-" else {}
            yield group, self._line("taken back" if why else "counted", group, adds, **about, **why)
        if not counts:
            told = {"0": _BEFORE, _DISCARDED: _DISCARDED}.get(sign) or "; ".join(
                each.reason for each in folded.unfoldable
            )
            for reason, probe in self._probes:
                sums = sums_of(folded_alone(probe, self._names, row, self._now, held))
                for group, _ in self._added(sums, 1):
                    yield group, self._line("left out", group, {}, **about, reason=told or reason)
                    return

    def _added(self, sums: Sums, sign: int) -> Iterator[tuple[GroupKey, Mapping[str, Any]]]:
        for (name, group), numbers in sums.items():
            if name in self._names and self.asked.holds(group):
                adds = self.asked.counted(group, {each: sign * number for each, number in numbers.items()})
                if adds:
                    yield group, adds

    def _line(self, kind: Any, group: GroupKey, adds: Mapping[str, Any], **about: Any) -> Line:
        return Line(kind, adds, self._source.name, group=self.named(group), **about)

    def named(self, group: GroupKey) -> dict[str, str]:
        """The values that distinguish a group from others that are asked for."""
        values = self.asked.layout.values(group)
        return {name: text for name, text in values.items() if name not in self.asked.texts}

    def _key(self, row: Image, keys: Image) -> dict[str, str]:
        if isinstance(self._source, Aggregate) and (group := group_of_item(self._source, row)) is not None:
            return dict(zip(self._source.fields, group, strict=True))
        names = self._source.fields if isinstance(self._source, Event) else ()
        if names and row.keys() >= {*names}:
            return {name: text_reader(name, literal=True)(row) for name in names}
        return {name: str(next(iter(value.values()))) for name, value in keys.items()}

    def _time(self, row: Image) -> str:
        try:
            value = self._find_time(row)
            return "" if value is None else utc(event_seconds(value)).isoformat()
        except UNFOLDABLE:
            return ""


def _timeless(declared: Declaration) -> Any:
    free: dict[str, Any] = {"retention": None}
    if isinstance(declared, Window):
        free |= {"future_tolerance": None, "tiers": tuple(tier.name for tier in declared._kept_tiers)}
    return replace(declared, **free)


def _counting(declared: Declaration) -> Any:
    """Counts what a declaration groups, whatever it adds."""
    what = {"measure": Count()} if isinstance(declared, Window) else {"measures": {"items": Count()}, "ranking": None}
    return replace(_timeless(declared), **what)
