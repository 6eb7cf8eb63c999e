"""Checks of constructor arguments that CDK accepts, or refuses without naming the argument."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, Final, TypeVar

from aws_cdk import Duration, Token

from dynamodb_counters._declarations import Event
from dynamodb_counters.errors import InvalidArgumentError

_T = TypeVar("_T")

MAX_SERVICE_NAME: Final = 255

_SERVICE_NAME: Final = re.compile(r"[\x21-\x39\x3b-\x7e][\x20-\x7e]*")  # a CloudWatch dimension value
_TABLE_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{3,255}")
_TABLE_ARN: Final = re.compile(rf"arn:[a-z-]+:dynamodb:[a-z0-9-]+:[0-9]{{12}}:table/{_TABLE_NAME.pattern}")
_ROUTE: Final = re.compile(r"(/[A-Za-z0-9._~-]+)+")
_ORIGIN: Final = re.compile(r"\*|https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?")

_MEMBERS: Final = {
    # isinstance cannot test CDK's interfaces, so each is recognized by a member that similar interfaces lack.
    "ITable": "grant_stream_read",
    "IBucket": "bucket_arn",
    "IAlarmAction": "bind",
    "IEventBus": "grant_put_events_to",
    "IRuleTarget": "bind",
    "IGrantable": "grant_principal",
    "IKey": "grant_decrypt",
    "IManagedPolicy": "managed_policy_arn",
    "ISecurityGroup": "add_ingress_rule",
    "IVpc": "select_subnets",
}


def require_instance(argument: str, value: object, kind: type[_T], allowed: str) -> _T:
    if not isinstance(value, kind):
        raise InvalidArgumentError(argument, value, allowed)
    return value


def require_interface(argument: str, value: object, interface: str, allowed: str) -> None:
    # An import is a proxy that has its members itself, not by its class; a class is no instance.
    if isinstance(value, type) or not hasattr(value, _MEMBERS[interface]):
        raise InvalidArgumentError(argument, value, allowed)


def require_sequence(argument: str, value: object, allowed: str) -> Sequence[Any]:
    """Return a list or tuple; refuse anything else, strings included."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise InvalidArgumentError(argument, value, allowed)
    return value


def require_events(argument: str, value: object) -> tuple[Event, ...]:
    events = tuple(require_sequence(argument, value, "a list of Event"))
    for event in events:
        require_instance(argument, event, Event, "a list of Event")
    return events


def require_integer(argument: str, value: object, low: int, high: int) -> None:
    """Refuse anything but a whole number from ``low`` to ``high`` or a token."""
    # CDK encodes a number known only at deployment as a float.
    if isinstance(value, int | float) and Token.is_unresolved(value):
        return
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return
    raise InvalidArgumentError(argument, value, f"a whole number from {low:,} to {high:,}")


def require_boolean(argument: str, value: object) -> None:
    require_instance(argument, value, bool, "True or False")


def require_duration(argument: str, value: object, low: Duration, high: Duration, unit: str = "seconds") -> None:
    """Refuse anything but a Duration from ``low`` to ``high`` in whole ``unit`` or a token."""
    if isinstance(value, Duration):
        if value.is_unresolved():
            return
        step = 86_400_000 if unit == "days" else 1000
        milliseconds = value.to_milliseconds()
        if low.to_milliseconds() <= milliseconds <= high.to_milliseconds() and milliseconds % step == 0:
            return
        value = value.to_human_string()
    allowed = f"a Duration from {low.to_human_string()} to {high.to_human_string()} in whole {unit}"
    raise InvalidArgumentError(argument, value, allowed)


def is_service_name(value: str) -> bool:
    """Whether it is a valid CloudWatch dimension value or a token."""
    return Token.is_unresolved(value) or (len(value) <= MAX_SERVICE_NAME and bool(_SERVICE_NAME.fullmatch(value)))


def require_service_name(argument: str, value: object) -> None:
    if not isinstance(value, str) or not is_service_name(value):
        allowed = f"1 to {MAX_SERVICE_NAME} printable ASCII characters, not starting with a space or ':'"
        raise InvalidArgumentError(argument, value, allowed)


def require_table_name(argument: str, value: object) -> None:
    _require_text(argument, value, _TABLE_NAME, "a table's name, or a token")


def require_table_arn(argument: str, value: object) -> None:
    _require_text(argument, value, _TABLE_ARN, "a table's ARN such as 'arn:aws:dynamodb:…:table/events', or a token")


def _require_text(argument: str, value: object, pattern: re.Pattern[str], allowed: str) -> None:
    if not isinstance(value, str) or not (Token.is_unresolved(value) or pattern.fullmatch(value)):
        raise InvalidArgumentError(argument, value, allowed)


def require_choice(argument: str, value: object, allowed: Collection[object]) -> None:
    if value not in allowed:
        raise InvalidArgumentError(argument, value, "one of " + ", ".join(map(str, allowed)))


def require_route(argument: str, value: object) -> None:
    if not isinstance(value, str) or not _ROUTE.fullmatch(value):
        raise InvalidArgumentError(argument, value, "a path without parameters, such as '/events'")


def require_origins(argument: str, value: object) -> None:
    allowed = "a list of web origins such as 'https://example.com', or ['*']"
    for origin in require_sequence(argument, value, allowed):
        if not isinstance(origin, str) or not (Token.is_unresolved(origin) or _ORIGIN.fullmatch(origin)):
            raise InvalidArgumentError(argument, origin, allowed)
