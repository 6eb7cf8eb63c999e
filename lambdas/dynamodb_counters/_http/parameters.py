"""What a request asks, read from its query string. Each parameter stands once; unknown ones are refused."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import parse_qsl

from dynamodb_counters._http.problems import ProblemError, refused

LONGEST: Final = timedelta(days=366)
MAX_STEPS: Final = 200
MAX_COUNT: Final = 100

RESERVED: Final = frozenset({"as_of", "consistent", "count", "last", "step"})
"""Parameters that no field of a group may be called."""

_DURATION: Final = re.compile(r"([1-9][0-9]{0,6})(m|h|d)", re.ASCII)
_UNITS: Final = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_WHOLE: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
# A window that begins before the year 1, or ends after 9999, has no name for its buckets.
_FIRST: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(9998, 12, 31, tzinfo=UTC)


@dataclass(frozen=True)
class Question:
    """The parameters of a request.

    Parameters
    ----------
    parameters : mapping of str to str
        As they were sent.
    """

    parameters: Mapping[str, str]

    @classmethod
    def parse(cls, query: str, fields: Collection[str], options: Collection[str]) -> Question:
        """Read a query string.

        Parameters
        ----------
        query : str
            Percent-encoded.
        fields : collection of str
            Parameters that must be there.
        options : collection of str
            Parameters that may be there.

        Returns
        -------
        Question
            With all that must be there, and nothing that may not.

        Raises
        ------
        ProblemError
            One is missing, unknown, there twice or not UTF-8.

        Examples
        --------
        >>> Question.parse("url=%2Fa&last=24h", ["url"], ["last"]).duration("last", None)
        datetime.timedelta(days=1)
        """
        try:
            pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=100)
        except ValueError:
            raise refused("the query string is not UTF-8, or has over 100 parameters") from None
        parameters = dict(pairs)
        if len(parameters) < len(pairs):
            raise refused("a parameter stands twice")
        if unknown := parameters.keys() - {*fields, *options}:
            known = ", ".join([*fields, *options]) or "none"
            raise refused(f"unknown parameter {sorted(unknown)[0]!r}; known: {known}")
        if missing := [name for name in fields if name not in parameters]:
            raise refused(f"parameter {missing[0]!r} is missing")
        return cls(parameters)

    def values(self, fields: Collection[str]) -> dict[str, str]:
        """Give the fields of a group."""
        return {name: self.parameters[name] for name in fields}

    def consistent(self) -> bool:
        """Tell whether all writes that are done are to be seen."""
        text = self.parameters.get("consistent", "false")
        if text not in ("true", "false"):
            raise refused(f"invalid consistent={text!r}: expected true or false")
        return text == "true"

    def count(self, default: int = 10) -> int:
        """Tell how many are wanted."""
        text = self.parameters.get("count", str(default))
        if not _WHOLE.fullmatch(text) or not 1 <= int(text) <= MAX_COUNT:
            raise refused(f"invalid count={text!r}: expected 1 to {MAX_COUNT}")
        return int(text)

    def as_of(self, now: float) -> datetime:
        """Tell until when; without the parameter, now."""
        text = self.parameters.get("as_of")
        if text is None:
            return datetime.fromtimestamp(now, UTC)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise _no_time(text) from None
        if moment.tzinfo is None or not _FIRST <= moment <= _LAST:
            raise _no_time(text)
        return moment

    def duration(self, name: str, default: str | None) -> timedelta:
        """Give a length of time, such as ``24h``."""
        text = self.parameters.get(name, default)
        if text is None:
            raise refused(f"parameter {name!r} is missing")
        match = _DURATION.fullmatch(text)
        length = int(match[1]) * _UNITS[match[2]] if match else timedelta(0)
        if not timedelta(0) < length <= LONGEST:
            raise refused(
                f"invalid {name}={text!r}: expected minutes, hours or days such as 24h, up to {LONGEST.days}d"
            )
        return length


def _no_time(text: str) -> ProblemError:
    return refused(f"invalid as_of={text!r}: expected ISO 8601 with an offset from UTC, of the years 1970 to 9998")
