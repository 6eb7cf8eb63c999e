"""Active members: how many different members were active in any span of time, as daily and monthly active users."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from typing import Final

from dynamodb_counters._declarations.aggregates import GAP, Aggregate
from dynamodb_counters._declarations.checks import require_attribute, require_precision
from dynamodb_counters._declarations.composites import MEMBERS, Grouped
from dynamodb_counters._declarations.default_keys import named_key
from dynamodb_counters._declarations.measures import Count
from dynamodb_counters._declarations.sources import Event
from dynamodb_counters.errors import InvalidArgumentError

ACTIVE: Final = "active"
"""The measure that counts members, by how long ago they were active before."""

MOST_UNITS: Final = 372
"""Most units of time in a member's page: all may change in one update, whose expression has at most 4 KB.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html"""

MOST_LONGEST: Final = MOST_UNITS // 2


@dataclass(frozen=True, slots=True)
class ActiveMembers(Grouped):
    """How many different members were active in any span of time, past or present: the users of the last 30 days.

    A member counts once in a span, however many items it has there, and no longer when all of them are gone. It keeps
    the units of time in which each member was active, and for each unit how many members had been active how long
    before: those active from a to b are all that were active at some unit in there, but not since a.

    Parameters
    ----------
    name : str
        A letter, then up to 55 letters, digits, ``-`` or ``_``; unique in a table.
    source : Event or Items
    member : str
        Attribute that identifies a member.
    time : str
        Attribute that holds the event's time: ISO 8601 with an offset, or epoch seconds or milliseconds.
    precision : timedelta, optional
        1 minute, hour or day: spans begin and end on such a unit, in UTC. Default 1 day.
    longest : timedelta, optional
        The longest span that can be asked for, up to 186 units. Default 30 units.
    by, where, on_expiry, max_groups, on_change
        As in `Aggregate`.

    Examples
    --------
    >>> from dynamodb_counters import Event
    >>> view = Event("view", key=("url", "time", "client"))
    >>> users = ActiveMembers("users", view, by="url", member="client", time="time", longest=timedelta(days=90))
    >>> users.fields
    ('url',)

    Source of the idea: S. Muthukrishnan, "Efficient algorithms for document retrieval problems", SODA 2002.
    """

    _: KW_ONLY
    member: str
    time: str
    precision: timedelta = timedelta(days=1)
    longest: timedelta | None = None
    max_groups: int = 1000

    def __post_init__(self) -> None:
        Grouped.__post_init__(self)
        require_attribute("member", self.member)
        require_attribute("time", self.time)
        if isinstance(self.source, Event):
            self.source._known.require_key("member", [self.member], self.where)
            self.source._known.require("time", self.time, "a time", self.where)
        require_precision(self.precision)
        longest: object = self._longest
        is_whole = isinstance(longest, timedelta) and not longest % self.precision
        if not is_whole or not 1 <= self._longest // self.precision <= MOST_LONGEST:
            allowed = f"1 to {MOST_LONGEST} times the precision, {self.precision}"
            raise InvalidArgumentError("longest", longest, allowed)
        if not {GAP, self._unit_field}.isdisjoint(self.fields):
            raise InvalidArgumentError("by", self.by, f"fields other than {GAP!r} and {self._unit_field!r}")
        if self.member in (*self.fields, GAP):
            raise InvalidArgumentError("member", self.member, f"an attribute other than {GAP!r} and those of `by`")
        _ = self._parts

    @property
    def _longest(self) -> timedelta:
        return 30 * self.precision if self.longest is None else self.longest

    @property
    def _members(self) -> Aggregate:
        """The aggregate that counts the items of each member by the unit: a page holds a stretch of units."""
        # A unit less than the longest span before the end of a stretch is in the next one's page, too: each page shows
        # how long ago its member was active before.
        name, units = f"{self.name}{MEMBERS}", self._longest // self.precision
        stretch = f"{self.time}:{MOST_UNITS - units}{require_precision(self.precision).name[0]}"
        pk, sk = named_key(name, (*self.fields, self.member)), named_key(name, (stretch, self._unit_field))
        return self._part(name, pk=pk, sk=sk, items=Count(), pages=True, _shelved=1, _longest=units)

    @property
    def _active(self) -> Aggregate:
        """The aggregate that counts a unit's members by their gaps: a page per unit."""
        pk, sk = named_key(self.name, self.fields), named_key(self.name, (self._unit_field, GAP))
        measures = {ACTIVE: Count()}
        return Aggregate(
            self.name, self._members, pk=pk, sk=sk, measures=measures, on_change=self.on_change, pages=True, _shelved=1
        )

    @property
    def _parts(self) -> tuple[Aggregate, ...]:
        return self._members, self._active
