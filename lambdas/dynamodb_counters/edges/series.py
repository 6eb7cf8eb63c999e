"""Windows step by step, for a plot."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from dynamodb_counters.counters import Counters
from dynamodb_counters.declarations import Window
from dynamodb_counters.edges.problems import refused
from dynamodb_counters.edges.questions import MAX_STEPS
from dynamodb_counters.windows import WindowCount


def series(
    counters: Counters, window: Window, values: Mapping[str, str], *, last: timedelta, step: timedelta, as_of: datetime
) -> list[WindowCount]:
    """Count the last so long step by step.

    Parameters
    ----------
    counters : Counters
        Where from.
    window : Window
        Which window.
    values : mapping of str to str
        Its group.
    last : timedelta
        How long in all; a whole number of steps, at most 200.
    step : timedelta
        How long each.
    as_of : datetime
        Until when; the unit of precision that holds it is the last one.

    Returns
    -------
    list of WindowCount
        Without gap or overlap, in order.

    Raises
    ------
    ProblemError
        `last` is no number of steps, or they are too many.
    """
    if last % step or last // step > MAX_STEPS:
        raise refused(f"last is a whole number of steps, {MAX_STEPS} at most")
    # The runtime's own, where it has one: one or two Queries for all steps.
    read: Any = getattr(counters, "series", None)
    end = counters.window(window, values, last=step, as_of=as_of).end
    if read is not None:
        return list(read(window, values, end - last, end, step=step))
    ends = [end - step * back for back in reversed(range(last // step))]
    # A window includes the minute its end is in: a second before, that is the minute that ends there.
    return [counters.window(window, values, last=step, as_of=end - timedelta(seconds=1)) for end in ends]
