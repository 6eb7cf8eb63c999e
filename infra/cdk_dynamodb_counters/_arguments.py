"""Checks of constructor arguments that jsii does not make: ranges, formats, and types that are not CDK's classes."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, Final, TypeVar

from aws_cdk import Duration, Token

from dynamodb_counters.errors import InvalidArgumentError

_T = TypeVar("_T")

MAX_WINDOW: Final = Duration.minutes(5)
_AT_ONCE: Final = 10
"""Messages or records that Lambda takes without a batching window; a token is a negative number, so it passes."""

_SERVICE_NAME: Final = re.compile(r"[\x21-\x39\x3b-\x7e][\x20-\x7e]{0,254}")
"""A value of a CloudWatch dimension."""
_ROUTE: Final = re.compile(r"(/[A-Za-z0-9._~-]+)+")
_ORIGIN: Final = re.compile(r"\*|https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?")


def require_instance(argument: str, value: object, kind: type[_T], allowed: str | None = None) -> _T:
    """Refuse what is no instance of a class of ours."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise InvalidArgumentError(argument, value, allowed or f"{article} {kind.__name__}")
    return value


def require_member(argument: str, value: object, member: str, allowed: str) -> None:
    """Refuse what lacks a member of an interface of CDK: jsii checks classes, but takes anything for an interface."""
    # An import is a proxy that has its members itself, not by its class; a class is no instance.
    if isinstance(value, type) or not hasattr(value, member):
        raise InvalidArgumentError(argument, value, allowed)


def require_list(argument: str, value: object, kinds: Any, allowed: str) -> tuple[Any, ...]:
    """Return the members of a list; refuse anything else, strings included, and other members."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise InvalidArgumentError(argument, value, allowed)
    for member in value:
        if not isinstance(member, kinds):
            raise InvalidArgumentError(argument, member, allowed)
    return tuple(value)


def require_integer(argument: str, value: object, low: int, high: int) -> None:
    """Refuse anything but a whole number from ``low`` to ``high`` or a token."""
    # CDK encodes a number known only at deployment as a float.
    if isinstance(value, int | float) and Token.is_unresolved(value):
        return
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InvalidArgumentError(argument, value, f"a whole number from {low:,} to {high:,}")


def require_duration(argument: str, value: object, low: Duration, high: Duration, unit: str = "seconds") -> None:
    """Refuse anything but a Duration from ``low`` to ``high`` in whole ``unit`` or a token."""
    if isinstance(value, Duration):
        if value.is_unresolved():
            return
        step = {"seconds": 1000, "hours": 3_600_000, "days": 86_400_000}[unit]
        milliseconds = value.to_milliseconds()
        if low.to_milliseconds() <= milliseconds <= high.to_milliseconds() and milliseconds % step == 0:
            return
        value = value.to_human_string()
    allowed = f"a Duration from {low.to_human_string()} to {high.to_human_string()} in whole {unit}"
    raise InvalidArgumentError(argument, value, allowed)


def require_text(argument: str, value: object, pattern: re.Pattern[str], allowed: str) -> None:
    """Refuse anything but a text of a format or a token."""
    if not isinstance(value, str) or not (Token.is_unresolved(value) or pattern.fullmatch(value)):
        raise InvalidArgumentError(argument, value, allowed)


def is_service_name(value: str) -> bool:
    """Return whether it is a token, or a value that CloudWatch takes for a dimension."""
    return Token.is_unresolved(value) or bool(_SERVICE_NAME.fullmatch(value))


def require_service_name(argument: str, value: object) -> None:
    allowed = "1 to 255 printable ASCII characters, not starting with a space or ':'"
    require_text(argument, value, _SERVICE_NAME, allowed)


def require_choice(argument: str, value: object, allowed: Collection[object]) -> None:
    if value not in allowed:
        raise InvalidArgumentError(argument, value, "one of " + ", ".join(map(str, allowed)))


def require_route(argument: str, value: object) -> None:
    require_text(argument, value, _ROUTE, "a path without parameters, such as '/events'")


def require_origins(argument: str, value: object) -> None:
    allowed = "a list of web origins such as 'https://example.com', or ['*']"
    for origin in require_list(argument, value, str, allowed):
        require_text(argument, origin, _ORIGIN, allowed)


def require_gathering(batch_size: float, window: Duration) -> None:
    """Refuse a window of more than 5 minutes, and a large batch without one, as the API does for queues and streams.

    https://docs.aws.amazon.com/lambda/latest/api/API_CreateEventSourceMapping.html
    """
    require_duration("max_batching_window", window, Duration.seconds(0), MAX_WINDOW)
    if batch_size > _AT_ONCE and not window.is_unresolved() and not window.to_seconds():
        allowed = f"at least 1 second for a batch_size above {_AT_ONCE}"
        raise InvalidArgumentError("max_batching_window", window.to_human_string(), allowed)
