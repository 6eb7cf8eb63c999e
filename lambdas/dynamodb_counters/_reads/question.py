"""What is asked of a declaration, as texts say it: parsed once, alike for HTTP and for the terminal.

Methods of Python pass what is parsed already; the functions that check a span are the same.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias, get_args, get_origin, get_type_hints

from dynamodb_counters import _tiers
from dynamodb_counters._declarations import Aggregate, Declaration, Event, Window
from dynamodb_counters._declarations.checks import require_choice
from dynamodb_counters._declarations.composites import TIMED, group_fields, longest_of, read_by, require_answerable
from dynamodb_counters._declarations.groups import fields_text, require_values
from dynamodb_counters._items.conversions import Number, whole
from dynamodb_counters._items.schema import MAX_PK_BYTES, MAX_SK_BYTES
from dynamodb_counters._tiers import DAY, FIRST_SECOND, LAST_SECOND, PERIODS, Interval, Period, seconds_of, utc
from dynamodb_counters.errors import InvalidArgumentError

Declared: TypeAlias = Declaration | Event
Texts: TypeAlias = Mapping[str, str]
Names: TypeAlias = tuple[str, ...]
Order: TypeAlias = Literal["largest", "smallest"]

SPAN: Final = ("last", "as_of", "start", "end")
_PAGE: Final = ("limit", "next")
_OPTIONS: Final[Mapping[str, Names]] = {
    "get": _PAGE,
    "window": SPAN,
    "active": SPAN,
    "distribution": ("p",),
    "distributions": (*SPAN, "p"),
    "extremes": ("order", "limit"),
    "ranks": ("score", "rank", "low", "high", "order"),
    "events": _PAGE,
    "packed": (*SPAN, *_PAGE),
}
"""By kind of declaration: what a read of it takes besides `consistent`."""

MAX_DURATION: Final = timedelta(days=366)
MAX_STEPS: Final = 200  # Of a series that a stranger may ask for.
ORDERS: Final = get_args(Order)
SHARES: Final = ("0.5", "0.9", "0.95", "0.99", "1")
_NUMBER: Final = r"-?[0-9]{1,30}(\.[0-9]{1,9})?"
_SHARES: Final = r"(0(\.[0-9]{1,6})?|1)(,(0(\.[0-9]{1,6})?|1)){0,19}"
MAX_LIMIT: Final = 1000
MAX_RANK: Final = 999_999_999
_LIMIT: Final = 100  # What is listed by default.
_RANKED: Final = 10  # Of leaderboards and extremes.
_STEPS: Final = (_tiers.MINUTE, _tiers.HOUR, DAY, 7 * DAY, 28 * DAY)
"""Steps where none is given: the shortest that a stranger may ask for."""
_DURATION: Final = "([1-9][0-9]{0,6})([smhdw])"
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
# Leaves room for the longest window within datetime's years 1 to 9999.
_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(9998, 12, 31, tzinfo=UTC)


class Position(NamedTuple):
    """Where an event or group stands in the order of a listing; written as an opaque token."""

    seconds: int
    pk: str
    sk: str

    @property
    def token(self) -> str:
        text = json.dumps(self, separators=(",", ":"), ensure_ascii=False)
        return urlsafe_b64encode(text.encode()).decode().rstrip("=")

    @classmethod
    def parse(cls, name: str, token: str) -> Position:
        with suppress(ValueError, TypeError, RecursionError):
            parts = json.loads(urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
            seconds, pk, sk = parts
            is_typed = [*map(type, parts)] == [int, str, str] and FIRST_SECOND <= seconds <= LAST_SECOND
            if is_typed and len(pk.encode()) <= MAX_PK_BYTES and len(sk.encode()) <= MAX_SK_BYTES:
                return cls(seconds, pk, sk)
        raise InvalidArgumentError(name, token, "the 'next' of a response, unchanged")


def parse_duration(name: str, text: str) -> timedelta:
    match = re.fullmatch(_DURATION, text, re.ASCII)
    length = timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else timedelta(0)
    if not timedelta(0) < length <= MAX_DURATION:
        expected = f"a number and a unit such as 30s, 15m, 24h, 7d or 2w, at most {MAX_DURATION.days}d"
        raise InvalidArgumentError(name, text, expected)
    return length


def _step(name: str, text: str) -> timedelta | str:
    return text if text in PERIODS else parse_duration(name, text)


def _moment(name: str, text: str) -> datetime:
    with suppress(ValueError):
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None and _EARLIEST <= moment <= _LATEST:
            return moment
    raise InvalidArgumentError(name, text, "an ISO 8601 time with a UTC offset, in the years 1970 to 9998")


def _integer(maximum: int, expected: str = "") -> Callable[[str, str], int]:
    def parse(name: str, text: str) -> int:
        if not re.fullmatch("[0-9]{1,9}", text, re.ASCII) or not 1 <= int(text) <= maximum:
            raise InvalidArgumentError(name, text, expected or f"an int from 1 to {maximum}")
        return int(text)

    return parse


def _number(name: str, text: str) -> Number:
    if not re.fullmatch(_NUMBER, text, re.ASCII):
        raise InvalidArgumentError(name, text, "a number such as 1200 or -0.5")
    return whole(Decimal(text))


def _shares(name: str, text: str) -> Names:
    if not re.fullmatch(_SHARES, text, re.ASCII):
        raise InvalidArgumentError(name, text, "up to 20 numbers from 0 to 1, such as 0.5,0.95")
    return tuple(text.split(","))


class Option(NamedTuple):
    """How the text of an option is described, and parsed; its schema is OpenAPI's."""

    description: str
    parse: Callable[[str, str], Any] = lambda _, text: text
    schema: Mapping[str, Any] = MappingProxyType({})


FIRST: Final = Position(FIRST_SECOND, "", "")
_TIME: Final = {"format": "date-time"}
_LENGTH: Final = {"pattern": f"^{_DURATION}$"}
_STEP: Final = {"pattern": f"^({_DURATION}|{'|'.join(PERIODS)})$"}
_DAY: Final = {"type": "integer", "minimum": 1, "maximum": 31}
_TZ: Final = ("Time zone, such as Europe/Berlin; default: the window's, or UTC", lambda _, text: _tiers.time_zone(text))
_ANCHOR: Final = "Day on which months begin, at the latest their last; default: the window's, or 1"
_SCORE: Final = {"pattern": f"^{_NUMBER}$"}
_P: Final = {"pattern": f"^{_SHARES}$", "default": ",".join(SHARES)}
_FLAG: Final = (lambda _, text: text == "true", {"enum": ["true", "false"], "default": "false"})
_MOST: Final = "Most to list; a page may have fewer, even none"
_STEPS_TEXT: Final = "Length of a step, or hour, day, week, month or year; default: by the span"


@dataclass(frozen=True, kw_only=True)
class Question:
    """A read of a declaration: its values, its span of time, its limit, and its order."""

    now: float
    declared: Any = None
    resource: str = "get"
    values: Texts = field(default_factory=dict)
    is_bounded: bool = False  # True for HTTP, whose limits a person at a terminal does not need.
    last: Annotated[timedelta | None, Option("Length of the span, such as 24h or 7d", parse_duration, _LENGTH)] = None
    as_of: Annotated[datetime | None, Option("End of a span that is not over; default: now", _moment, _TIME)] = None
    start: Annotated[datetime | None, Option("First moment of the span, instead of `last`", _moment, _TIME)] = None
    end: Annotated[datetime | None, Option("First moment after the span; default: now", _moment, _TIME)] = None
    step: Annotated[timedelta | Period | None, Option(_STEPS_TEXT, _step, _STEP)] = None
    tz: Annotated[tzinfo | None, Option(*_TZ)] = None
    anchor: Annotated[int | None, Option(_ANCHOR, _integer(31, _tiers.ANCHORS), _DAY)] = None
    rolling: Annotated[timedelta | None, Option("Trailing span for each unit of time", parse_duration, _LENGTH)] = None
    p: Annotated[Names, Option("Shares of the percentiles; 1 is the maximum", _shares, _P)] = SHARES
    order: Annotated[str | None, Option("Which end; default: both; ranks: largest", schema={"enum": [*ORDERS]})] = None
    score: Annotated[Number | None, Option("Ranks: a score instead of a member", _number, _SCORE)] = None
    rank: Annotated[int | None, Option("Ranks: score at it", _integer(MAX_RANK), _DAY | {"maximum": MAX_RANK})] = None
    low: Annotated[Number | None, Option("Ranks: how many members from this score", _number, _SCORE)] = None
    high: Annotated[Number | None, Option("Ranks: up to this score, included; with `low`", _number, _SCORE)] = None
    limit: Annotated[int, Option(_MOST, _integer(MAX_LIMIT))] = _LIMIT
    next: Annotated[Position, Option("The 'next' of the page before", Position.parse)] = FIRST
    consistent: Annotated[bool, Option("Read strongly consistently, at twice the read units", *_FLAG)] = False
    scan: Annotated[bool, Option("Read the whole table, if nothing less will do", *_FLAG)] = False

    @classmethod
    def parse(
        cls, declared: Declared, resource: str, options: Texts, values: Texts, now: float, *, is_bounded: bool = False
    ) -> Question:
        """Read texts by name: options, and the values of fields."""
        allowed = options_of(declared, resource, is_bounded=is_bounded)
        required, fields = fields_of(declared, resource, values, is_bounded=is_bounded)
        for texts, names in ((options, allowed), (values, fields)):
            if names is not None and (unknown := texts.keys() - {*names}):
                name, expected = min(unknown), fields_text(declared.name, required if fields is None else fields)
                raise InvalidArgumentError(name, texts[name], f"{expected}; or of {', '.join(allowed)}")
        require_values(required, values)
        for name, second in (("last", "start"), ("as_of", "start"), ("as_of", "end")):
            if {name, second} <= options.keys():
                raise InvalidArgumentError(name, options[name], f"one span of time, not {second!r} as well")
        for name, text in options.items():
            require_choice(name, text, tuple(OPTIONS[name].schema.get("enum", (text,))))
        parsed = {name: OPTIONS[name].parse(name, text) for name, text in options.items()}
        parsed.setdefault("limit", default_limit(declared, resource))
        return cls(now=now, declared=declared, resource=resource, values=values, is_bounded=is_bounded, **parsed)

    @property
    def interval(self) -> Interval:
        """The span of time: from `start`, or the trailing `last`, up to `end`, `as_of` or now; in whole units."""
        end = self.end or utc(self.now)
        if self.start is not None:
            return around(self.declared, self.start, end, self.now)
        longest = longest_of(self.declared) or self.declared.retention or MAX_DURATION
        # 24 hours, or 7 units if those are longer, if it may be.
        last = self.last or min(longest, max(timedelta(hours=24), 7 * timedelta(seconds=self.declared._unit)))
        if self.is_bounded:
            require_length(self.declared, last)
        if self.end is not None:
            return around(self.declared, end - last, end, self.now)
        return trailing(self.declared, last, self.as_of, self.now)

    @property
    def ends(self) -> tuple[datetime, datetime]:
        """The span of time to the second, of events."""
        end = self.end or self.as_of or utc(self.now)
        start = self.start or end - (self.last or timedelta(days=1))
        require_order(start.timestamp(), end.timestamp(), end)
        return start, end

    @property
    def steps(self) -> list[Interval]:
        """The steps of a series, in order, without gaps; or the trailing span of each unit of time."""
        span, unit = self.interval, self.declared._unit
        fit = (length for length in _STEPS if length % unit == 0 and (span.end - span.start) / length <= MAX_STEPS)
        step = timedelta(seconds=unit) if self.rolling else self.step or timedelta(seconds=next(fit, _STEPS[-1]))
        calendar = calendar_of(self.declared, self.values, self.tz, self.anchor, step)
        intervals = _tiers.steps(span, step, *calendar, unit)
        if self.rolling is not None:
            intervals = [Interval.ending_at(interval.start, self.rolling, unit) for interval in intervals]
        if self.is_bounded and len(intervals) > MAX_STEPS:
            raise InvalidArgumentError("step", step, f"at most {MAX_STEPS} steps, not {len(intervals)}")
        return intervals


OPTIONS: Final[Mapping[str, Option]] = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(Question, include_extras=True).items()
    if get_origin(hint) is Annotated
}
"""The fields of a question that a text may give."""


def kind_of(declared: Declared) -> str:
    if isinstance(declared, Event):
        return "packed" if declared.packed is not None else "events"
    return "window" if isinstance(declared, Window) else read_by(declared)


def resources_of(declared: object) -> Names:
    if not isinstance(declared, Aggregate | Window):
        return ("events",) if isinstance(declared, Event) else ()
    if isinstance(declared, Window) or kind_of(declared) in TIMED:
        return ("get", "series")
    return ("get",) if declared.ranking is None else ("get", "top")


def options_of(declared: Declared, resource: str, *, is_bounded: bool = True) -> Names:
    kind = kind_of(declared)
    if resource == "top":
        return ("limit",)
    series = ("step", "tz", "anchor", *(("rolling",) if kind == "active" else ())) if resource == "series" else ()
    own = ("scan",) if kind == "get" and not is_bounded else ()
    return (*_OPTIONS[kind], *series, *own, "consistent")


def parameters_of(declared: Declared) -> set[str]:
    """Return the options of all that there is to ask: no field may be named like one."""
    return {name for resource in resources_of(declared) for name in options_of(declared, resource)}


def default_limit(declared: Declared, resource: str) -> int:
    return _RANKED if resource == "top" or kind_of(declared) == "extremes" else _LIMIT


def fields_of(
    declared: Declared, resource: str, values: Texts | None = None, *, is_bounded: bool = True
) -> tuple[Names, Names | None]:
    """Return the fields that a question must give values of, by those that are given; and all that it may, None: any.

    A stranger selects events by what their keys hold: a filter may find nothing for long.
    """
    if isinstance(declared, Event):
        required = declared._pk_template.fields if declared.packed is None else declared.packed._tenants
        return required, (declared.fields if declared.packed is not None else required) if is_bounded else None
    if isinstance(declared, Aggregate) and resource == "top":
        assert declared.ranking is not None
        board = tuple(name for name in declared.ranking._template.fields if name in declared.fields)
        return board, board
    fields = group_fields(declared)
    if kind_of(declared) == "ranks" and isinstance(declared.source, Aggregate):
        # Those of a member, too.
        return fields, tuple(dict.fromkeys((*fields, *declared.source.fields)))
    if isinstance(declared, Aggregate) and kind_of(declared) == "get" and declared.write_shards == 1:
        # Whoever may scan is told what that takes.
        listed = declared._listed_by if is_bounded or declared.pages else ()
        return listed if {*(values or ())} <= {*declared._listed_by} else fields, fields
    return fields, fields


def limits_of(declared: Declared, resource: str) -> Names:
    """Return the fields by which all answers are limited: of ranks those of the board, not of one member of it."""
    required, fields = fields_of(declared, resource)
    return required if kind_of(declared) == "ranks" else fields or ()


def calendar_of(
    declared: Declaration, values: Mapping[str, Any], tz: str | tzinfo | None, anchor: int | None, period: object
) -> tuple[tzinfo, int]:
    """Return the time zone and the first day of months that are requested, or else those that a window declares."""
    own = declared if isinstance(declared, Window) else None
    if tz is None:
        tz = "UTC" if own is None else str(values[own.tz]) if own.tz in own.fields else own.tz
    if anchor is None:
        anchor = own.anchor if own is not None and period == "month" else 1
    _tiers.require_anchor(anchor, period)
    return _tiers.time_zone(tz), anchor


def require_length(declared: Declaration, length: timedelta) -> None:
    longest = longest_of(declared)
    if longest is not None and length > longest:
        raise InvalidArgumentError("span", str(length), f"at most {longest}, the longest of {declared.name!r}")


def require_order(first: float, last: float, end: object) -> None:
    if first >= last:
        raise InvalidArgumentError("end", end, "a moment after start")


def around(declared: Declaration, start: datetime, end: datetime, now: float) -> Interval:
    """Return the units of time that a span touches."""
    first, last = seconds_of("start", start), seconds_of("end", end)
    require_order(first, last, end)
    require_retained(declared, "start", first, now)
    return Interval.around(first, last, declared._unit)


def trailing(declared: Declaration, length: timedelta, as_of: datetime | None, now: float) -> Interval:
    """Return a span of whole units, the last one of which holds its end, so far; of a single one, it is refused."""
    until = now if as_of is None else seconds_of("as_of", as_of)
    require_answerable("last", declared, length)
    interval = Interval.ending_at(until, length, declared._unit)
    require_retained(declared, "last", interval.start, now)
    return interval


def require_retained(declared: Declaration, argument: str, start: float, now: float) -> None:
    """Refuse a span of which part may be deleted already, or uncounted because it came late."""
    if declared.retention is None:
        return
    # An expired bucket may not be deleted yet, or a late redelivery may have written it again; it lies before this.
    oldest = now - declared.retention.total_seconds()
    if start < oldest:
        allowed = f"an interval that starts at {utc(oldest).isoformat()} or later; {declared.name!r} retains no more"
        raise InvalidArgumentError(argument, f"from {utc(start).isoformat()}", allowed)
