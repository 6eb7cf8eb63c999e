"""Output of commands: safe text, numbers, moments, spans, tables and progress, alike in all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Final, TextIO

from dynamodb_counters._tiers import DAY, HOUR, MINUTE, utc

_LIKELY: Final = re.compile(r"[^ -~]")  # All but the ASCII that prints: few characters are left to look at.
_NUMBERS: Final = (int, float, Decimal, type(None))


def visible(text: str) -> str:
    r"""Return a text with what does not just print escaped.

    >>> print(visible("/é\x1b]0;x\x07\n"))
    /é\x1b]0;x\x07\n
    """
    return _LIKELY.sub(lambda hit: hit[0] if hit[0].isprintable() else hit[0].encode("unicode_escape").decode(), text)


def print_line(stream: TextIO, text: str, begin: str = "", end: str = "\n") -> None:
    """Write a text as one line, on which nothing acts; all output for people comes through here."""
    stream.write(f"{begin}{visible(text)}{end}")
    stream.flush()


def number(value: Any) -> str:
    """Return a number with thousands separated, and no more decimals than help; a dash for none."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    rounded = round(Decimal(value), 4)
    return f"{rounded:,f}".rstrip("0").rstrip(".") if rounded % 1 else f"{int(rounded):,}"


def counted(count: int, singular: str, plural: str = "") -> str:
    return f"{number(count)} {singular if count == 1 else plural or f'{singular}s'}"


def stamp(seconds: float) -> str:
    return utc(round(seconds)).isoformat().replace("+00:00", "Z")


def span(seconds: float) -> str:
    """Return a length of time in its two greatest units: 1 d 1 h."""
    remaining, parts = round(seconds), list[tuple[int, str]]()
    for unit, length in (("d", DAY), ("h", HOUR), ("min", MINUTE), ("s", 1)):
        times, remaining = divmod(remaining, length)
        parts += [(times, unit)] if times or parts else []
    return " ".join(f"{times} {unit}" for times, unit in parts[:2] if times) or "0 s"


def group_text(values: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())


def table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return rows by the names of their columns, those of numbers to the right; nothing if there are none."""
    if not rows:
        return []
    columns = list[list[str]]()
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        cells = [visible(name), *map(_cell, values)]
        width, side = max(map(len, cells)), ">" if all(isinstance(value, _NUMBERS) for value in values) else "<"
        cells.insert(1, "-" * width)
        columns.append([f"{cell:{side}{width}}" for cell in cells])
    return ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]


def pairs(values: Mapping[str, Any]) -> list[str]:
    """Return names and what they are; the members of an object by both names."""
    flat = dict[str, Any]()
    for name, value in values.items():
        flat |= {f"{name} {key}": own for key, own in value.items()} if isinstance(value, Mapping) else {name: value}
    return table([{"name": name, "value": value} for name, value in flat.items()])[2:]


def _cell(value: Any) -> str:
    if isinstance(value, Mapping | list | tuple):
        value = group_text(value) if isinstance(value, Mapping) else ", ".join(value)
    return number(value) if isinstance(value, _NUMBERS) and not isinstance(value, bool) else visible(str(value))


@contextmanager
def progress_on(stream: TextIO, clock: Callable[[], float], *, is_brief: bool = False) -> Iterator[Callable[..., None]]:
    """Show phases, and how much of their total, 0 if unknown: on a terminal in a line that changes, and goes if brief.

    Elsewhere in a line a minute; of brief work, after 10 s.
    """
    phase, began, start, printed_at, is_live = "", clock(), 0, clock(), stream.isatty()
    pause = 1 / 4 if is_live else 10.0 if is_brief else 60.0

    def show(name: str, count: int, total: int, *, unit: str = "", consumed: float = 0.0) -> None:
        nonlocal phase, began, start, printed_at
        now, is_new = clock(), name != phase
        if is_new:
            if phase and is_live:
                stream.write("\n")
            phase, began, start = name, now, count
        if now < printed_at + pause and not (is_new and (is_live or not is_brief)):
            return
        printed_at = now
        parts = [f"{number(count)}{f' of {number(total)}' if total else ''} {unit}".rstrip()]
        seconds = (now - began) * (total - count) / (count - start) if total and count > start else 0.0
        parts += [f"{span(seconds)} left"] if round(seconds) else []
        parts += [f"{consumed:,.0f} units"] if consumed else []
        print_line(stream, f"{name}: {', '.join(parts)}", *(("\r", "\x1b[K") if is_live else ()))

    try:
        yield show
    finally:
        if phase and is_live:
            stream.write("\r\x1b[K" if is_brief else "\n")
