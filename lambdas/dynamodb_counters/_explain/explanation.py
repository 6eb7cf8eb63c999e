"""An explanation: a number, the lines that add up to it, and the position in the stream at which they do."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

from dynamodb_counters._declarations.generations import base_name
from dynamodb_counters._explain.asked import Asked
from dynamodb_counters._explain.lines import Line, LineStore, canonical
from dynamodb_counters._items.decimals import Number, format_number
from dynamodb_counters._timeline.times import utc

_COLUMNS: Final = ("kind", "time", "source", "key", "group", "reason")


@dataclass(frozen=True)
class Explanation:
    """Why a number is what it is: its `lines` add up to it exactly, at its `position` in the stream.

    Parameters
    ----------
    numbers : mapping of str to int or Decimal
        What the groups count, by measure; of a window, ``total``.
    position : mapping of str to str
        By shard, the sequence number of the last record that they have applied.
    rest : list of Line
        The lines that no item shows: tallies and differences.

    Examples
    --------
    >>> explanation = counters.explain(VIEWS, url="/")  # doctest: +SKIP
    >>> explanation.numbers, sum(line.adds.get("views", 0) for line in explanation.lines())  # doctest: +SKIP
    ({'views': 17}, 17)
    """

    _asked: Asked = field(repr=False)
    _store: LineStore = field(repr=False)
    rest: list[Line]
    numbers: Mapping[str, Number]
    position: Mapping[str, str]

    @property
    def difference(self) -> dict[str, Number]:
        """What neither items nor tallies show; empty if all is explained."""
        found: dict[str, Number] = {}
        for line in self.rest:
            for name, number in line.adds.items() if line.kind == "difference" else ():
                found[name] = found.get(name, 0) + number
        return {name: number for name, number in found.items() if number}

    def lines(self) -> Iterator[Line]:
        """All lines: of events, items and groups by time and key, as they are asked for; then tallies and differences."""
        return chain(self._store.lines(), self.rest)

    def file(self, form: str = "jsonl") -> Iterator[str]:
        """The lines of a file that others can check; the last one has the sum, the position and a digest of the others.

        Parameters
        ----------
        form : {"jsonl", "csv"}, optional
            Default ``"jsonl"``.
        """
        digest = hashlib.sha256()
        measures = list(self.numbers) if form == "csv" else []
        measures += sorted({name for line in self.rest for name in line.adds} - {*measures}) if form == "csv" else []
        head = [_row([*_COLUMNS, *measures])] if form == "csv" else []
        for line in chain(head, (_cells(one, measures) if measures else one.text() + "\n" for one in self.lines())):
            digest.update(line.encode())
            yield line
        end = {**self.document(), "digest": digest.hexdigest()}
        yield _row(["end", "", "", canonical(end)]) if form == "csv" else canonical(end) + "\n"

    def document(self) -> dict[str, Any]:
        """The sum and the position, as JSON has them."""
        interval = self._asked.interval
        span = [utc(each).isoformat() for each in (interval.start, interval.end)] if interval else None
        numbers = {name: format_number(number) for name, number in self.numbers.items()}
        name = base_name(self._asked.declaration.name)
        document = {"explains": name, "values": dict(self._asked.texts), "span": span, "position": dict(self.position)}
        return {key: value for key, value in document.items() if value is not None} | {"sum": numbers}


def _cells(line: Line, measures: list[str]) -> str:
    document = line.document()
    told = [canonical(value) if isinstance(value := document.get(name, ""), dict) else value for name in _COLUMNS]
    return _row([*told, *(document["adds"].get(name, "0") for name in measures)])


def _row(cells: list[str]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()
