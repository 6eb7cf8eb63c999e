"""The live page of a `CounterApi`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from cdk_dynamodb_counters._arguments import require_instance, require_route
from dynamodb_counters._declarations import ActiveMembers, Aggregate, Count, Sum, Threshold, Window
from dynamodb_counters.errors import InvalidArgumentError

_ACTIVE: Final = timedelta(days=30)
_UNITS: Final = ((1440, "day", "d"), (60, "hour", "h"), (1, "minute", "m"))
_PLACEHOLDERS: Final = ("{page}", "{time}", "{client}")


@dataclass(frozen=True, kw_only=True)
class LivePage:
    """A page with a total, the top of a leaderboard, a window of one of its groups, and how many members were active.

    Parameters
    ----------
    title : str
        The page's heading.
    total : Aggregate
        An aggregate without fields; its first count or sum is the total.
    top : Aggregate
        A ranked aggregate whose leaderboard has no fields.
    window : Window
        A window whose fields are all fields of `top`.
    threshold : Threshold, optional
        One of the ranked measure of `top`: the leaderboard's bars have a line at each.
        Default: none.
    active : ActiveMembers, optional
        Members of one group of all, such as the unique visitors: the page shows how many were active in the last 30
        days, or the longest span if that is shorter. Default: none.
    beacon : mapping of str to str, optional
        The event that the page posts after 3 seconds: a template per attribute, in which ``{page}`` is the page's
        address, ``{time}`` the current time and ``{client}`` a random name that the browser keeps. Default: none.
    beacon_path : str, optional
        Where the beacon is posted: the path of an `EventIngest` on the same API. Default: ``"/events"``.

    Raises
    ------
    InvalidArgumentError
        If an argument is invalid.

    Examples
    --------
    >>> LivePage(title="Blog", total=SITE, top=VIEWS, window=ROLLING)  # doctest: +SKIP
    """

    title: str
    total: Aggregate
    top: Aggregate
    window: Window
    threshold: Threshold | None = None
    active: ActiveMembers | None = None
    beacon: Mapping[str, str] | None = field(default=None)
    beacon_path: str = "/events"

    def __post_init__(self) -> None:
        if not isinstance(self.title, str) or not self.title.strip():
            raise InvalidArgumentError("title", self.title, "a non-blank string")
        require_instance("total", self.total, Aggregate)
        if self.total.fields or _first(self.total) is None:
            raise InvalidArgumentError("total", self.total.name, "an aggregate without fields, with a Count or Sum")
        require_instance("top", self.top, Aggregate)
        if self.top.ranking is None or {*self.top.ranking._template.fields} & {*self.top.fields}:
            raise InvalidArgumentError("top", self.top.name, "a ranked aggregate whose leaderboard has no fields")
        require_instance("window", self.window, Window)
        if not {*self.window.fields} <= {*self.top.fields}:
            raise InvalidArgumentError(
                "window", self.window.name, f"a window whose fields are all fields of {self.top.name!r}"
            )
        if self.threshold is not None:
            require_instance("threshold", self.threshold, Threshold)
            if (self.threshold.aggregate, self.threshold.measure) != (self.top, self.top.ranking.measure):
                allowed = f"one of {self.top.ranking.measure!r} of {self.top.name!r}"
                raise InvalidArgumentError("threshold", self.threshold.name, allowed)
        if self.active is not None:
            require_instance("active", self.active, ActiveMembers)
            if self.active.fields:
                raise InvalidArgumentError("active", self.active.name, "one without fields")
        if self.beacon is not None and not (
            isinstance(self.beacon, Mapping)
            and all(isinstance(text, str) for pair in self.beacon.items() for text in pair)
        ):
            raise InvalidArgumentError(
                "beacon", self.beacon, f"a mapping of str to str; optional placeholders: {', '.join(_PLACEHOLDERS)}"
            )
        require_route("beacon_path", self.beacon_path)

    def _settings(self) -> str:
        """The page's configuration as JSON."""
        settings: dict[str, object] = {
            "title": self.title,
            "total": {"aggregate": self.total.name, "measure": _first(self.total)},
            "top": {"aggregate": self.top.name},
            "window": {"name": self.window.name, "fields": list(self.window.fields)},
        }
        if self.threshold is not None:
            levels = [float(level) for level in self.threshold.at]
            settings["top"] = {"aggregate": self.top.name, "threshold": {"name": self.threshold.name, "levels": levels}}
        if self.active is not None:
            span = min(_ACTIVE, self.active._longest)
            minutes = span // timedelta(minutes=1)
            unit, name, letter = next(one for one in _UNITS if minutes % one[0] == 0)
            last = minutes // unit
            settings["active"] = {"name": self.active.name, "last": f"{last}{letter}", "words": f"{last} {name}s"}
        if self.beacon is not None:
            settings["beacon"] = {"path": self.beacon_path.removeprefix("/"), "event": dict(self.beacon)}
        return json.dumps(settings, separators=(",", ":"))


def _first(aggregate: Aggregate) -> str | None:
    return next((name for name, measure in aggregate.measures.items() if isinstance(measure, Count | Sum)), None)
