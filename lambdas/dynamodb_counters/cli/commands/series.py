"""``counters series``: counts step by step, as a chart."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, cast

import click
from rich.console import Group as Lines
from rich.text import Text

from dynamodb_counters._declarations import Window
from dynamodb_counters._declarations.composites import group_fields
from dynamodb_counters._reads.span_reads import ActiveReader, Distribution
from dynamodb_counters._reads.window_counts import WindowCount
from dynamodb_counters._timeline.tiers import DAY, HOUR, MINUTE, PERIODS, Period, time_zone
from dynamodb_counters.cli.arguments import duration, fields_of, span_of, with_consistent, with_span
from dynamodb_counters.cli.commands.window import count_document, reader_of
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
@with_span
@click.option("--step", "given", help=f"Such as 15m, or {', '.join(PERIODS)}. Default: by the span.")
@click.option("--tz", default="UTC", help="Time zone, such as Europe/Berlin.")
@click.option("--rolling", type=duration, help="A trailing span per unit of time, such as 30d, of active members.")
@click.option("--p", default=0.95, type=click.FloatRange(0, 1), help="The percentile, of percentiles.")
@with_consistent
@shared
def series(
    session: Session,
    name: str,
    group: tuple[str, ...],
    *,
    given: str | None,
    tz: str,
    rolling: timedelta | None,
    p: float,
    consistent: bool,
    **when: Any,
) -> None:
    """Count one group of the window NAME step by step, and draw it; or active members, or a percentile."""
    declared = session.find_timed(name)
    values = fields_of(group, group_fields(declared))
    reader = reader_of(session, declared, values)
    start, end = span_of(session.clock(), **when)
    unit = declared._unit
    step = _step(given, end - start, unit)
    zone = time_zone(tz)
    if isinstance(step, timedelta) and when["last"] is not None:
        # The last step is the one that has begun: steps begin at round times.
        end = _rounded_up(end, step, zone)
        start = _rounded_up(start, step, zone)
    found: Sequence[WindowCount | Distribution]
    if rolling is None:
        found = reader.series(start, end, step=step, tz=zone, consistent=consistent)
    elif isinstance(reader, ActiveReader) and given is None:
        found, step = reader.rolling(start, end, rolling, consistent=consistent), timedelta(seconds=unit)
    else:
        raise click.UsageError("--rolling is for active members, by their unit of time: leave out --step")
    # Neither different members nor percentiles of several steps add up.
    adds_up = isinstance(declared, Window)
    drawn = [(one.p(p) or 0) if isinstance(one, Distribution) else one.count for one in found]
    together = sum(drawn) if adds_up else max(drawn)
    document = {
        "window": name,
        "values": values,
        "step": int(step.total_seconds()) if isinstance(step, timedelta) else step,
        "tz": tz,
        "total" if adds_up else "most": together,
        "series": [count_document(one, [f"{p:g}"]) for one in found],
    }
    length = timedelta(0) if rolling is None else rolling - timedelta(seconds=unit)
    starts = [one.start for one in found if one.start is not None]
    points = [Point(start + length, float(value)) for start, value in zip(starts, drawn, strict=True)]
    chart, merged = bar_chart(points, session.out.width, zone, sum if adds_up else max)
    each = span(step * merged) if isinstance(step, timedelta) else f"{merged} {step}"
    title = f"{name} {group_text(values)}".rstrip()
    what = "" if rolling is None else f", members of {span(rolling)} each"
    what = f", p{p * 100:g}" if isinstance(found[0], Distribution) else what
    all_of = f"{number(together)} {'in all' if adds_up else 'at most'}"
    head = Text.assemble((title, HEADING), (f"  {all_of}, {each} per bar{what}", QUIET))
    foot = Text(f"{moment_text(starts[0], zone)} to {moment_text(found[-1].end or end, zone)}", QUIET)
    session.emit(document, Lines(head, "", *chart, "", foot))


def _step(given: str | None, length: timedelta, unit: int) -> Step:
    if given is not None:
        return cast("Period", given) if given in PERIODS else duration(given)
    fitting = (one for one in _STEPS if one >= unit and length.total_seconds() / one <= _MOST_POINTS)
    return timedelta(seconds=next(fitting, DAY))


def _rounded_up(when: datetime, step: timedelta, zone: object) -> datetime:
    """The next multiple of a step, counted from local midnight."""
    local = when.astimezone(zone)  # type: ignore[arg-type]
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    behind = (local - midnight) % step
    return when if not behind else when + step - behind
