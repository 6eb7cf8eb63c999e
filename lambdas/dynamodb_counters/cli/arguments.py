"""Arguments that people type: groups as field=value, durations such as 24h, moments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import click

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DURATION: Final = re.compile(r"(\d{1,9})([smhdw])")


def duration(text: str) -> timedelta:
    """A length of time: a number and a unit."""
    found = _DURATION.fullmatch(text)
    if not found or not int(found[1]):
        raise click.BadParameter(f"{text!r}: expected a number and a unit, such as 30s, 15m, 24h, 7d or 2w")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def moment(text: str) -> datetime:
    """A moment; without an offset, UTC."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r}: expected ISO 8601, such as 2026-11-20 or 2026-11-20T10:30Z") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def fields_of(given: Sequence[str], known: Sequence[str] | None, *, needed: Sequence[str] = ()) -> dict[str, str]:
    """The values of fields given as field=value; those `needed` may not be missing, and others than `known` not be."""
    values: dict[str, str] = {}
    listed = f"the fields are: {', '.join(known or needed) or 'none'}"
    for one in given:
        name, equals, value = one.partition("=")
        if not equals:
            raise click.UsageError(f"{one!r} is no field=value; {listed}")
        if known is not None and name not in known:
            raise click.UsageError(f"there is no field {name!r}; {listed}")
        if name in values:
            raise click.UsageError(f"the field {name!r} is given twice")
        values[name] = value
    missing = [name for name in needed if name not in values]
    if missing:
        raise click.UsageError(f"missing {' '.join(f'{name}=…' for name in missing)}")
    return values


def span_of(
    now: float, last: timedelta | None, since: datetime | None, until: datetime | None
) -> tuple[datetime, datetime]:
    """From when to when: the last so much, or since a moment."""
    end = until or datetime.fromtimestamp(now, UTC)
    if (last is None) == (since is None):
        raise click.UsageError("one of --last and --since says from when on")
    start = since if since is not None else end - (last or timedelta())
    if start >= end:
        raise click.UsageError(f"--until must lie after --since, {start.isoformat()}")
    return start, end
