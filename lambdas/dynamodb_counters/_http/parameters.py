"""The query parameters of each resource; unknown ones are rejected."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

from dynamodb_counters._declarations import Aggregate, Declaration, Event, Window
from dynamodb_counters._declarations.composites import group_fields, longest_of, read_by, require_answerable
from dynamodb_counters._fold.contributions import MAX_GROUP_BYTES
from dynamodb_counters._http.requests import ProblemError, bad_request, filled_in, read_json
from dynamodb_counters._items.table_schema import MAX_PK_BYTES, MAX_SK_BYTES
from dynamodb_counters._reads.window_reader import require_retained
from dynamodb_counters._timeline.tiers import FIRST_SECOND, LAST_SECOND, PERIODS, Interval, steps, time_zone

SPAN: Final = ("start", "end")
_PAGE: Final = ("limit", "next", "consistent")
_SPANS: Final = ("last", "as_of", *SPAN)

PATHS: Final[Mapping[str, tuple[str, str]]] = {
    "get": ("aggregates/{}", "One group of {}"),
    "groups": ("aggregates/{}/groups", "All groups of {} in one partition, page by page"),
    "top": ("aggregates/{}/top", "Top groups of {}"),
    "window": ("windows/{}", "Count of {} in a span"),
    "series": ("windows/{}/series", "Counts of {} by step"),
    "active": ("active/{}", "Active members of {}"),
    "distribution": ("distributions/{}", "Percentiles of {}"),
    "distributions": ("distributions/{}", "Percentiles of {}"),
    "extremes": ("extremes/{}", "Extremes of {}"),
    "events": ("events/{}", "Events {}, page by page"),
}
"""By resource of a declaration: its path, and what it is."""

OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "get": ("consistent",),
    "groups": _PAGE,
    "top": ("count",),
    "window": (*_SPANS, "consistent"),
    "series": (*_SPANS, "step", "tz", "anchor"),
    "batch": _SPANS,
    "active": (*_SPANS, "consistent"),
    "distribution": ("p", "consistent"),
    "distributions": (*_SPANS, "p", "consistent"),
    "extremes": ("order", "count", "consistent"),
    "events": _PAGE,
}
"""Parameters that a request may leave out, by its resource; of a batch, those of each window."""

MAX_QUERY_BYTES: Final = 10_240
"""Bytes that API Gateway takes of a request's line and headers together.
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html"""

MAX_COUNT: Final = 100
INTEGERS: Final = {"count": (10, MAX_COUNT), "limit": (100, 1000), "anchor": (1, 31)}
"""By whole number that a request may have: its default, and its maximum."""

MAX_DURATION: Final = timedelta(days=366)
DEFAULT_STEP: Final = timedelta(hours=1)
MAX_STEPS: Final = 200

DEFAULT_SHARES: Final = "0.5,0.9,0.95,0.99,1"
SHARES: Final = r"(0(\.[0-9]{1,6})?|1)(,(0(\.[0-9]{1,6})?|1)){0,19}"
ORDERS: Final = ("largest", "smallest")

_DURATION: Final = re.compile(r"([1-9][0-9]{0,6})(m|h|d)", re.ASCII)
_UNITS: Final = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_DIGITS: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
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
    def parse(cls, token: str) -> Position:
        with suppress(ValueError, TypeError):
            parts = read_json(urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode(), max_levels=1)
            seconds, pk, sk = parts
            is_typed = [*map(type, parts)] == [int, str, str] and FIRST_SECOND <= seconds <= LAST_SECOND
            if is_typed and len(pk.encode()) <= MAX_PK_BYTES and len(sk.encode()) <= MAX_SK_BYTES:
                return cls(seconds, pk, sk)
        raise _invalid("next", token, "the 'next' of a response, unchanged")


@dataclass(frozen=True)
class QueryParameters:
    """The parameters of a request, by name."""

    by_name: Mapping[str, str]

    @classmethod
    def parse(
        cls, query_string: str, required: Collection[str], optional: Collection[str], bound: Mapping[str, str]
    ) -> QueryParameters:
        """Read the parameters; those that the caller's claims decide are `bound`."""
        if len(query_string) > MAX_QUERY_BYTES:
            raise bad_request(f"invalid query string: expected at most {MAX_QUERY_BYTES} bytes")
        try:
            pairs = parse_qsl(query_string, keep_blank_values=True, errors="strict", max_num_fields=100)
        except ValueError:
            raise bad_request("invalid query string: expected UTF-8 with at most 100 parameters") from None
        by_name = dict(pairs)
        if len(by_name) < len(pairs):
            raise bad_request("a parameter is given more than once")
        if unknown := by_name.keys() - {*required, *optional}:
            allowed = ", ".join([*required, *optional]) or "none"
            raise bad_request(f"unknown parameter {min(unknown)!r:.120}; allowed: {allowed}")
        if unbound := bound.keys() - {*required, *optional}:
            detail = f"{min(unbound)!r}, which the caller's claim decides, is no parameter here"
            raise ProblemError(HTTPStatus.FORBIDDEN, detail)
        by_name = filled_in(by_name, bound)
        if missing := [name for name in required if name not in by_name]:
            raise bad_request(f"missing parameter {missing[0]!r}")
        return cls(by_name)

    def values(self, fields: Collection[str]) -> dict[str, str]:
        """Return the values that identify a group, or of some events those that are given."""
        return {name: self.by_name[name] for name in fields if name in self.by_name}

    def consistent(self) -> bool:
        text = self.by_name.get("consistent", "false")
        if text not in ("true", "false"):
            raise _invalid("consistent", text, "true or false")
        return text == "true"

    def integer(self, name: str) -> int:
        default, most = INTEGERS[name]
        text = self.by_name.get(name, str(default))
        if not _DIGITS.fullmatch(text) or not 1 <= int(text) <= most:
            raise _invalid(name, text, f"an integer from 1 to {most}")
        return int(text)

    def after(self) -> Position:
        """The position that the page before ended at, which `next` names."""
        text = self.by_name.get("next")
        return Position(FIRST_SECOND, "", "") if text is None else Position.parse(text)

    def shares(self) -> list[str]:
        text = self.by_name.get("p", DEFAULT_SHARES)
        if not re.fullmatch(SHARES, text, re.ASCII):
            raise _invalid("p", text, "up to 20 numbers from 0 to 1, such as 0.5,0.95")
        return text.split(",")

    def order(self) -> str:
        order = self.by_name.get("order", ORDERS[0])
        if order not in ORDERS:
            raise _invalid("order", order, " or ".join(ORDERS))
        return order

    def last(self, declared: Declaration) -> timedelta:
        """The length of a window: no longer than the longest that is declared, which its tiers are chosen for."""
        longest = longest_of(declared) or MAX_DURATION
        last = self._duration("last", default_last(declared._unit, longest))
        if last > longest:
            raise _invalid("last", self.by_name["last"], f"at most {longest}, the longest window of {declared.name!r}")
        require_answerable("last", declared, last)
        return last

    def interval(self, declared: Declaration, now: float) -> Interval:
        """The span of time that is asked for: from `start` to `end`, or the trailing `last`."""
        given = self.by_name
        spans = [names for names in (("last", "as_of"), SPAN) if not given.keys().isdisjoint(names)]
        if len(spans) > 1:
            raise bad_request(f"{spans[0][0]!r} and {spans[1][0]!r} are given: expected one span of time")
        for name in SPAN:
            if spans == [SPAN] and name not in given:
                raise bad_request(f"missing parameter {name!r}")
        if "start" in given:
            first, last = (self.moment(name).timestamp() for name in SPAN)
            if first >= last:
                raise _invalid("end", given["end"], "a moment after 'start'")
            interval = Interval.around(first, last, declared._unit)
        else:
            until = self.moment("as_of").timestamp() if "as_of" in given else now
            interval = Interval.ending_at(until, self.last(declared), declared._unit)
        require_retained(declared, spans[0][0] if spans else "last", interval.start, now)
        return interval

    def steps(self, window: Window, now: float) -> list[Interval]:
        """The steps of a series: of a length that the span is a multiple of, or periods of a calendar."""
        span, text = self.interval(window, now), self.by_name.get("step", "")
        length = timedelta(seconds=span.end - span.start)
        step = text if text in PERIODS else self._duration("step", min(DEFAULT_STEP, length))
        if isinstance(step, timedelta) and length % step:
            raise bad_request(f"invalid step: expected the span, {length}, to be a multiple of it")
        zone, anchor = time_zone(self.by_name.get("tz", "UTC")), self.integer("anchor")
        found = steps(span.start, span.end, step, zone, window._unit, anchor=anchor)
        if len(found) > MAX_STEPS:
            raise bad_request(f"invalid step: expected at most {MAX_STEPS} steps, not {len(found)}")
        return found

    def moment(self, name: str) -> datetime:
        text = self.by_name[name]
        with suppress(ValueError):
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is not None and _EARLIEST <= moment <= _LATEST:
                return moment
        raise _invalid(name, text, "an ISO 8601 time with a UTC offset, in the years 1970 to 9998")

    def _duration(self, name: str, default: timedelta) -> timedelta:
        text = self.by_name.get(name)
        if text is None:
            return default
        match = _DURATION.fullmatch(text)
        duration = int(match[1]) * _UNITS[match[2]] if match else timedelta(0)
        if not timedelta(0) < duration <= MAX_DURATION:
            raise _invalid(name, text, f"minutes, hours or days such as 30m, 24h or 7d, at most {MAX_DURATION.days}d")
        return duration


def default_last(unit: int, longest: timedelta) -> timedelta:
    """The span that is meant where none is given: 24 hours, or 7 units if those are longer; no longer than may be."""
    return min(longest, max(timedelta(hours=24), 7 * timedelta(seconds=unit)))


def body_values(where: str, values: object, fields: Collection[str], bound: Mapping[str, str]) -> dict[str, str]:
    """The values of a group in a body, those that the caller's claims decide among them."""
    if isinstance(values, Mapping):
        values = filled_in(values, bound)
    if not isinstance(values, Mapping) or values.keys() != {*fields}:
        members = f"members {', '.join(fields)}" if fields else "no members"
        raise bad_request(f"invalid {where}: expected an object with {members}")
    if not all(isinstance(value, str) for value in values.values()):
        raise bad_request(f"invalid {where}: expected strings")
    if sum(map(len, values.values())) > MAX_GROUP_BYTES:
        raise bad_request(f"invalid {where}: expected at most {MAX_GROUP_BYTES} bytes, as a group has")
    return dict(values)


def asked_of(resource: str, declared: Declaration | Event) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The parameters that a request for a resource must have, and those that it may leave out."""
    if isinstance(declared, Event):
        if declared.packed is None:
            return declared._pk_template.fields, OPTIONS["events"]
        return (*SPAN, *declared.packed._tenants), (*declared.fields, *OPTIONS["events"])
    fields = group_fields(declared)
    if isinstance(declared, Aggregate) and resource == "distributions":
        resource = read_by(declared)
    elif isinstance(declared, Aggregate) and resource in ("groups", "top"):
        fields = declared._listed_by if resource == "groups" else leaderboard_fields(declared)
    return fields, OPTIONS[resource]


def leaderboard_fields(aggregate: Aggregate) -> tuple[str, ...]:
    """Return the fields that select one of a ranked aggregate's leaderboards."""
    if aggregate.ranking is None:
        raise ProblemError(HTTPStatus.NOT_FOUND, f"{aggregate.name!r} has no ranking")
    return tuple(name for name in aggregate.ranking._template.fields if name in aggregate.fields)


def _invalid(name: str, text: str, expected: str) -> ProblemError:
    return bad_request(f"invalid {name}={text!r:.120}: expected {expected}")
