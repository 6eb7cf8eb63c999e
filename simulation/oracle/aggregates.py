"""Declarations by brute force over the rows there are: no fold, no deltas, nothing of the runtime's code."""

from __future__ import annotations

import operator
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any, Final

from dynamodb_counters import Aggregate, Average, Condition, Count, Event, Histogram, Items, Sum, TimeWeighted, Window

Row = Mapping[str, Any]
"""Plain values of an event, an item, or a group."""

Group = tuple[str, ...]
"""Texts of the fields in the order of the key; of a window the bucket at the end: the second that it begins at."""

Parts = dict[str, Any]
"""Numbers by attribute."""

Groups = dict[Group, Parts]
Counted = list[tuple[Group, Parts]]

UNCOUNTABLE: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors for a row that cannot be counted."""

DAY_BUCKET: Final = "D"
"""Begins the text of a day's bucket."""

MOST_TEXT: Final = 8192
SECONDS: Final = {"minute": 60, "hour": 3600, "day": 86_400, "m": 60, "h": 3600, "d": 86_400}
_SHOWN: Final = {60: 16, 3600: 13, 86_400: 10}
"""Characters of a time."""


class OutOfRangeError(ValueError):
    """A score that has no digits."""


def added(declaration: Aggregate | Window, row: Row, created: float | None = None) -> Counted:
    """Return what a row adds to which groups; one of `UNCOUNTABLE` is raised if it cannot be counted, or not yet."""
    literal = isinstance(declaration.source, Aggregate)
    if declaration.where is not None and not holds(declaration.where, row, literal):
        return []
    if isinstance(declaration, Window):
        return list(_buckets(declaration, row, created))
    parts = {name: number for name, number in _parts(declaration, row, literal) if number}
    if not parts:
        return []
    groups = _groups(fields(declaration), row, literal)
    if len(groups) > declaration.max_groups:
        raise ValueError("too many groups")
    if declaration._longest:
        groups = [
            (*who, stretch, unit) for *who, first, unit in groups for stretch in _stretches(declaration, first, unit)
        ]
    return [(group, parts) for group in groups]


def added_by_groups(declaration: Aggregate, groups: Groups) -> list[tuple[Group, Group, Parts]]:
    """Return which group of its source adds what to which group; one of all of them is ()."""
    source: Any = declaration.source
    if source._longest:
        return [((), *pair) for pair in _gaps(source, groups)]
    result: list[tuple[Group, Group, Parts]] = []
    for below, parts in groups.items():
        if any(parts.values()):
            with suppress(OutOfRangeError):  # It waits in quarantine.
                result += [(below, *pair) for pair in added(declaration, row_of(source, below, parts))]
    return result


def row_of(aggregate: Aggregate, group: Group, parts: Parts) -> Row:
    """Return a group as others see it."""
    zeros = dict.fromkeys(attributes(aggregate), 0)
    return {**zeros, **parts, **dict(zip(fields(aggregate), group, strict=True))}


def count(
    aggregate: Aggregate, live: Sequence[tuple[Event | Items, Row]], expired: Sequence[tuple[Event | Items, Row]]
) -> Groups:
    """Evaluate an aggregate over items that are there, and those that TTL deleted."""
    source, counted = aggregate.source, list[tuple[Group, Parts]]()
    if isinstance(source, Aggregate):
        counted = [(group, parts) for _, group, parts in added_by_groups(aggregate, count(source, live, expired))]
    else:
        assert isinstance(source, Event | Items)
        for origin, row in (*live, *(expired if aggregate.on_expiry == "keep" else ())):
            counted += added(aggregate, row) if _belongs(source, origin, row) else []
    groups: Groups = {}
    add_all(groups, counted)
    return groups


def add_all(groups: Groups, counted: Iterable[tuple[Group, Parts]], sign: int = 1) -> None:
    for group, parts in counted:
        numbers = groups.setdefault(group, {})
        for name, number in parts.items():
            numbers[name] = numbers.get(name, 0) + sign * Fraction(number)


def fields(declaration: Aggregate | Window) -> list[str]:
    """Give the names in braces, in their order."""
    sk = declaration.sk if isinstance(declaration, Aggregate) else ""
    return list(dict.fromkeys(re.findall(r"\{([^}]+)\}", f"{declaration.pk} {sk}")))


def attributes(aggregate: Aggregate) -> list[str]:
    """Give the names under which others see its numbers."""
    names: list[str] = []
    for name, measure in aggregate.measures.items():
        if isinstance(measure, Average):
            names += [f"{name}.sum", f"{name}.count"]
        elif isinstance(measure, Histogram):
            below = [f"<{text(measure.bounds[0])}"] if measure.bounds else []
            names += [f"{name}.{text(bound)}" for bound in (*below, *measure.exactly, *measure.bounds)]
        else:
            names.append(name)
    return names


def holds(condition: Condition, row: Row, literal: bool) -> bool:
    parts = condition.operands
    if condition.attribute is None:
        results = [holds(part, row, literal) for part in parts]
        return {"and": all(results), "or": any(results), "not": not results[0]}[condition.operator]
    value = _find(row, condition.attribute, literal)
    if condition.operator == "exists":
        return value is not None
    [operand] = parts
    if value is None or isinstance(value, str) != isinstance(operand, str):
        return condition.operator == "ne"
    if not isinstance(operand, str):
        value, operand = Fraction(value), Fraction(operand)
    return bool(getattr(operator, condition.operator)(value, operand))


def text(value: Any) -> str:
    """Write a value as it stands in a key."""
    if isinstance(value, str):
        return value
    number = Fraction(value)
    if number.denominator == 1:
        return str(number.numerator)
    return format(Decimal(number.numerator) / Decimal(number.denominator), "f")


def _belongs(source: Event | Items, origin: Event | Items, row: Row) -> bool:
    if isinstance(source, Event):
        return source.name == origin.name
    return isinstance(origin, Items) and (source.where is None or holds(source.where, row, literal=False))


def _find(row: Row, path: str, literal: bool) -> Any:
    if literal:
        return row.get(path)
    value: Any = row
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _groups(names: Iterable[str], row: Row, literal: bool) -> list[Group]:
    choices: list[list[str]] = []
    for name in names:
        if name.endswith("[]") and not literal:
            choices.append(sorted({text(member) for member in _find(row, name[:-2], literal)}))
        elif literal and not re.search(r":(digit|above)\d", name):
            choices.append([text(row[name])])
        else:
            choices.append([_derived(row, name)])
    if sum(len(max(texts, key=len, default="").encode()) for texts in choices) > MOST_TEXT:
        raise ValueError("too long for a group")
    return list(product(*choices))


def _derived(row: Row, field: str) -> str:
    marked, is_defaulted, default = field.partition("?")
    path, _, how = marked.partition(":")
    value = _find(row, path, literal=False)
    if value is None:
        if not is_defaulted:
            raise LookupError(field)
        return default
    if not how:
        return text(value)
    if how == "class":
        return f"{text(value)[0]}xx"
    if how.startswith("log"):
        return _bin(Decimal(value), Decimal(how.removeprefix("log")))
    if how == "order":
        number = Decimal(value).normalize()
        assert number > 0
        return f"p{130 + number.adjusted():03d}{''.join(map(str, number.as_tuple().digits))}"
    return _digits(Fraction(value), how) if how.startswith(("digit", "above")) else _moment(value, how)


def _digits(score: Fraction, how: str) -> str:
    """Return two decimal digits of how far a score is above the least, or all before: cut out of its text."""
    match = re.fullmatch(r"(digit|above)(\d)\.(m?\d+)\.(m?\d+)\.(\d)", how)
    assert match is not None
    least, most = (int(bound.replace("m", "-")) for bound in match.group(3, 4))
    steps = score * 10 ** int(match[2])
    if steps.denominator > 1 or not least <= steps <= most:
        raise OutOfRangeError(how)
    digits = f"{int(steps) - least:040d}"
    end = len(digits) - 2 * int(match[5])
    return digits[end - 2 : end] if match[1] == "digit" else digits[: end - 2].lstrip("0") or "0"


def scores(leaf: Aggregate, groups: Groups) -> dict[Group, dict[Decimal, int]]:
    """Return how many members have each score, by board, from the groups that the last digits are."""
    names = fields(leaf)
    width = len(names) - (2 if ":above" in names[-2:][0] else 1)
    match = re.search(r":digit(\d)\.(m?\d+)\.", names[-1])
    assert match is not None
    boards = defaultdict[Group, dict[Decimal, int]](dict)
    for group, parts in groups.items():
        score = Decimal(int("".join(group[width:])) + int(match[2].replace("m", "-"))).scaleb(-int(match[1]))
        boards[group[:width]][score] = int(parts["members"])
    return boards


def _bin(value: Decimal, error: Decimal) -> str:
    """Return the bin of a whole number, found bound by bound."""
    margin = error * Decimal("0.999")
    growth, bound, index = (1 + margin) / (1 - margin), Decimal(1), 0
    assert value >= 1
    while value > bound:
        bound, index = bound * growth, index + 1
    return str(index)


def _moment(value: Any, unit: str) -> str:
    """Return the begin of a unit of time, or of a stretch of some."""
    match = re.fullmatch(r"(\d*)(\w+)", unit)
    assert match is not None
    seconds = SECONDS[match[2]]
    length = seconds * int(match[1] or 1)
    return timestamp(_seconds(value) // length * length, seconds)


def _seconds(value: Any) -> int:
    moment = datetime.fromisoformat(value).timestamp() if isinstance(value, str) else value
    return int(moment)


def timestamp(moment: int, unit: int) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat()[: _SHOWN[unit]]


def _parts(aggregate: Aggregate, row: Row, literal: bool) -> Iterator[tuple[str, Any]]:
    for name, measure in aggregate.measures.items():
        if isinstance(measure, Count):
            yield name, 1
            continue
        value = _number(measure, row, literal)
        if isinstance(measure, Average):
            yield from ((f"{name}.sum", value), (f"{name}.count", 1))
        elif isinstance(measure, Histogram):
            bounds = [low for low in measure.bounds if Fraction(low) <= value]
            exact = [bound for bound in measure.exactly if Fraction(bound) == value]
            below = [f"<{text(measure.bounds[0])}"] if measure.bounds and not bounds else []
            yield from ((f"{name}.{text(bound)}", 1) for bound in (*exact, *below, *bounds[-1:]))
        else:
            yield name, value if measure.cap is None else min(value, Fraction(measure.cap))


def _number(measure: Any, row: Row, literal: bool) -> Fraction:
    value = _find(row, measure.attribute, literal)
    return Fraction(measure.default if value is None else value)


def _buckets(window: Window, row: Row, created: float | None) -> Iterator[tuple[Group, Parts]]:
    measure, is_weighted = window.measure, isinstance(window.measure, TimeWeighted)
    number: Any = 1 if isinstance(measure, Count) else _number(measure, row, literal=False)
    if isinstance(measure, Sum) and measure.cap is not None:
        number = min(number, Fraction(measure.cap))
    if not number:
        return
    seconds, ahead = _seconds(row[window.time]), window.future_tolerance
    if created is not None and ahead is not None and seconds > created + ahead.total_seconds():
        raise ValueError("too early")
    [group] = _groups(fields(window), row, literal=False)
    days = [(86_400, 3600, "h", DAY_BUCKET)] if window.longest and window.longest > timedelta(days=1) else []
    for length, part, mark, prefix in [(3600, 60, "m", ""), *days]:
        start = seconds // length * length
        slot = f"{mark}{(seconds - start) // part:02d}"
        parts = {"total": number, slot: number}
        if is_weighted and (moment := number * (seconds - start)):
            parts |= {"total.t": moment, f"{slot}.t": moment}
        yield (*group, f"{prefix}{start}"), parts


def _stretches(members: Aggregate, stretch: str, unit: str) -> list[str]:
    """Return the stretch of a unit of time, and the next one if that looks back at it."""
    match = re.search(r":(\d+)([mhd])$", fields(members)[-2])
    assert match is not None
    seconds = SECONDS[match[2]]
    length, begin, at = int(match[1]) * seconds, epoch(stretch), epoch(unit)
    following = begin + length
    return [stretch, *([timestamp(following, seconds)] if at > following - members._longest * seconds else [])]


def epoch(stamp: str) -> int:
    return int(datetime.fromisoformat(f"{stamp}{'0001-01-01T00:00'[len(stamp) :]}+00:00").timestamp())


def _gaps(members: Aggregate, groups: Groups) -> Counted:
    """Members of each unit by the gap to their unit before, of all pages of all members."""
    units = defaultdict[Group, list[str]](list)
    for (*who, stretch, unit), parts in groups.items():
        if parts.get("items", 0) > 0:
            units[*who, stretch].append(unit)
    seconds = SECONDS[fields(members)[-1].partition(":")[2]]
    result: Counted = []
    for (*who, _, stretch), active in units.items():
        for unit in (start for start in active if start >= stretch):
            before = [epoch(start) for start in active if start < unit]
            gap = min((epoch(unit) - max(before)) // seconds if before else members._longest, members._longest)
            result.append(((*who, unit, str(gap)), {"active": 1}))
    return result
