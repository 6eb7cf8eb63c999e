"""Arguments that people type: groups as field=value, attributes by declared types, durations such as 24h, moments."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import click

from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.event_attributes import Attribute
from dynamodb_counters._http.lossless_json import write_json
from dynamodb_counters.cli.session import options

NUMBER: Final = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d{1,3})?")
_ANY: Final = "…"
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DURATION: Final = re.compile(r"(\d{1,9})([smhdw])")


class Within(click.FloatRange):
    """A number of a range; click itself takes `nan`, which is in any."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = float(super().convert(value, param, ctx))
        if math.isnan(found):
            self.fail(f"{value!r} is no number", param, ctx)
        return found


ABOVE_0: Final = Within(0, min_open=True)


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


def fields_of(
    given: Sequence[str], known: Sequence[str] | None, *, needed: Sequence[str] | None = None
) -> dict[str, str]:
    """The values of `known` fields given as field=value; all of them are `needed`, unless others are named."""
    values: dict[str, str] = {}
    needed = (known or ()) if needed is None else needed
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


with_span: Final = options(
    click.option("--last", type=duration, help="Such as 24h, 15m or 7d."),
    click.option("--since", type=moment, help="ISO 8601; without an offset, UTC."),
    click.option("--until", type=moment, help="Default: now."),
)
with_consistent: Final = click.option(
    "--consistent", is_flag=True, help="Read strongly consistently, at twice the read units."
)


def span_of(
    now: float, *, last: timedelta | None, since: datetime | None, until: datetime | None
) -> tuple[datetime, datetime]:
    end = until or datetime.fromtimestamp(now, UTC)
    if (last is None) == (since is None):
        raise click.UsageError("one of --last and --since says from when on")
    start = since if since is not None else end - (last or timedelta())
    if start >= end:
        raise click.UsageError(f"--until must lie after --since, {start.isoformat()}")
    return start, end


def typed(event: Event, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values; texts are numbers or truth values where these are declared. Others are left to be refused."""
    declared = event._declared_attributes or {}
    return {name: _typed(declared.get(name), value) for name, value in values.items()}


def _typed(declared: Attribute | None, value: Any) -> Any:
    if declared is None or not isinstance(value, str):
        return value
    if declared.type in (int, Decimal) and NUMBER.fullmatch(value):
        return Decimal(value)
    return value == "true" if declared.type is bool and value in ("true", "false") else value


def example(name: str, declared: Attribute | None, now: str) -> str:
    """An attribute as one types it: a text after `=`, anything else as JSON after `:=`."""
    value = _ANY if declared is None else _example(declared, now)
    shown = f"{name}={value}" if isinstance(value, str) else f"{name}:={write_json(value)}"
    return shown if value == _ANY else shlex.quote(shown)


def _example(declared: Attribute, now: str) -> Any:
    if declared.one_of:
        return declared.one_of[0]
    if declared.type in (int, Decimal):
        return next((limit for limit in (declared.minimum, declared.maximum) if limit is not None), 1)
    if declared.type is dict:
        return {name: _example(each, now) for name, each in (declared.attributes or {}).items() if each.required}
    times = {"date-time": now, "date": now[:10]}
    return {bool: True, list: []}.get(declared.type, times.get(declared.format or "", _ANY))
