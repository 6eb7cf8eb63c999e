"""``counters series``: counts step by step, as a chart."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, cast

import click
from rich.console import Group as Lines
from rich.text import Text

from dynamodb_counters._declarations import Window
from dynamodb_counters._timeline.calendars import PERIODS, Period, time_zone
from dynamodb_counters._timeline.times import DAY, HOUR, MINUTE
from dynamodb_counters.cli.arguments import duration, fields_of, moment, span_of
from dynamodb_counters.cli.commands.window import count_document
from dynamodb_counters.cli.session import Session, shared
from dynamodb_counters.cli.show.bar_chart import Point, bar_chart
from dynamodb_counters.cli.show.formats import HEADING, QUIET, group_text, moment_text, number, span

Step = timedelta | Period

_MOST_POINTS: Final = 46
"""Bars that have two columns each in 100."""

_MINUTES: Final = tuple(MINUTE * times for times in (1, 2, 5, 10, 15, 30))
_STEPS: Final = (1, 5, 15, 30, *_MINUTES, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY)


@click.command()
@click.argument("name")
@click.argument("group", nargs=-1, metavar="[FIELD=VALUE]…")
@click.option("--last", type=duration, help="Such as 24h, 15m or 7d.")
@click.option("--since", type=moment, help="ISO 8601; without an offset, UTC.")
@click.option("--until", type=moment, help="Default: now.")
@click.option("--step", "given", help=f"Such as 15m, or {', '.join(PERIODS)}. Default: by the span.")
@click.option("--tz", default="UTC", show_default=True, help="Time zone, such as Europe/Berlin.")
@click.option("--consistent", is_flag=True, help="Read strongly consistently, at twice the read units.")
@shared
def series(
    session: Session,
    name: str,
    group: tuple[str, ...],
    *,
    last: timedelta | None,
    since: datetime | None,
    until: datetime | None,
    given: str | None,
    tz: str,
    consistent: bool,
) -> None:
    """Count one group of the window NAME step by step, and draw it."""
    declared = session.find(Window, name)
    values = fields_of(group, declared.fields, needed=declared.fields)
    start, end = span_of(session.clock(), last, since, until)
    step = _step(given, end - start, declared)
    zone = time_zone(tz)
    if isinstance(step, timedelta) and since is None:
        # The last step is the one that has begun: steps begin at round times.
        end = _rounded_up(end, step, zone)
        start = _rounded_up(start, step, zone)
    found = session.counters.window(declared, values).series(start, end, step=step, tz=zone, consistent=consistent)
    total = sum(one.count for one in found)
    document = {
        "window": name,
        "values": values,
        "step": int(step.total_seconds()) if isinstance(step, timedelta) else step,
        "tz": tz,
        "total": total,
        "series": [count_document(one) for one in found],
    }
    chart, merged = bar_chart([Point(one.start, float(one.count)) for one in found], session.out.width, zone)
    each = span(step * merged) if isinstance(step, timedelta) else f"{merged} {step}"
    title = f"{name} {group_text(values)}".rstrip()
    head = Text.assemble((title, HEADING), (f"  {number(total)} in all, {each} per bar", QUIET))
    foot = Text(f"{moment_text(found[0].start, zone)} to {moment_text(found[-1].end, zone)}", QUIET)
    session.emit(document, Lines(head, "", *chart, "", foot))


def _step(given: str | None, length: timedelta, declared: Window) -> Step:
    if given is not None:
        return cast("Period", given) if given in PERIODS else duration(given)
    fitting = (one for one in _STEPS if one >= declared._unit and length.total_seconds() / one <= _MOST_POINTS)
    return timedelta(seconds=next(fitting, DAY))


def _rounded_up(when: datetime, step: timedelta, zone: object) -> datetime:
    """The next multiple of a step, counted from local midnight."""
    local = when.astimezone(zone)  # type: ignore[arg-type]
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    behind = (local - midnight) % step
    return when if not behind else when + step - behind
