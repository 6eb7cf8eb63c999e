"""Checks that declarations share, and keys of those that only name fields; all raise InvalidArgumentError."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import fields
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeAlias

from dynamodb_counters._items.conditions import LIST_MARK, Condition, is_plain
from dynamodb_counters._items.keys import is_field, key_template, scale_of, tier_of
from dynamodb_counters._items.schema import MAX_PK_BYTES, MAX_SK_BYTES, QUARANTINE, RESERVED_PREFIX, is_reserved
from dynamodb_counters._tiers import DAYS, HOURS, MINUTES, Tier
from dynamodb_counters.errors import InvalidArgumentError

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")

Fields: TypeAlias = str | Sequence[str]  # The names of fields, or of the only one.

# Fields of keys that the runtime fills in: the number of a write shard, the letter of a bucket's tier, its start.
WRITE_SHARD_FIELD: Final = "_shard"
TIER_FIELD: Final = "_tier"
BUCKET_FIELD: Final = "_bucket"

# First words of bookkeeping's keys, as which no key may begin.
_WORDS: Final = ("CHECKPOINT", "LEASES", "PACK", "QUARANTINE", "WINDOW")
_PLAIN: Final = "an attribute name or a sequence of different ones, such as ('url', 'clientId')"
_ANY: Final = (
    "a field or a sequence of different ones, such as 'url', 'address.city', 'tags[]', 'time:day', "
    "'status:class' or 'plan?none'"
)


def require(is_allowed: object, argument: str, value: object, allowed: str) -> None:
    if not is_allowed:
        raise InvalidArgumentError(argument, value, allowed)


def is_name(name: object) -> bool:
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def require_name(argument: str, name: object) -> None:
    allowed = f"a letter, then up to 63 letters, digits, '-' or '_'; not {QUARANTINE!r}"
    require(is_name(name) and name != QUARANTINE, argument, name, allowed)


def require_key(argument: str, text: Any, *, plain: bool = False) -> None:
    require(isinstance(text, str), argument, text, "a template such as 'URL#{url}'")
    for name in key_template(text, MAX_SK_BYTES if argument == "sk" else MAX_PK_BYTES, argument).fields:
        _require_field(argument, text, name, plain=plain)


def _require_field(argument: str, value: str, name: str, *, plain: bool) -> None:
    require(not is_reserved(name), argument, value, "fields that are not reserved (pk, sk, ttl, _…)")
    allowed = "fields that are plain attributes, not parts of maps, list members or derived fields"
    require(not plain or is_plain(name), argument, value, allowed)


def require_attribute(argument: str, name: object) -> None:
    is_allowed = isinstance(name, str) and name and not is_reserved(name)
    require(is_allowed, argument, name, "an attribute name that is not reserved (pk, sk, ttl, _…)")


def require_where(where: Any, *, bookkeeping: bool = False, allowed: Collection[str] = ()) -> None:
    """Refuse all but None and conditions; on this package's attributes only those `allowed`."""
    if where is not None:
        require(isinstance(where, Condition), "where", where, "a Condition such as Attr('status').eq('paid')")
        for name in where._attributes:
            is_allowed = bookkeeping or name in allowed or not name.startswith(RESERVED_PREFIX)
            require(is_allowed, "where", name, f"attribute names that do not start with {RESERVED_PREFIX!r}")


def require_choice(argument: str, value: object, allowed: tuple[str, ...]) -> object:
    require(value in allowed, argument, value, "one of " + ", ".join(map(repr, allowed)))
    return value


def require_bool(argument: str, value: object) -> None:
    require(isinstance(value, bool), argument, value, "True or False")


def require_duration(argument: str, value: object, *, zero: bool = False) -> None:
    is_allowed = value is None or (isinstance(value, timedelta) and value >= timedelta(seconds=0 if zero else 1))
    require(is_allowed, argument, value, f"a timedelta of {'0' if zero else '1 second'} or more, or None")


def require_precision(precision: object) -> Tier:
    for tier in (MINUTES, HOURS, DAYS):
        if precision == timedelta(seconds=tier.seconds):
            return tier
    raise InvalidArgumentError("precision", precision, "1 minute, 1 hour or 1 day")


def require_retention(retention: object, names: Iterable[str]) -> None:
    is_allowed = retention is None or len([*filter(tier_of, names)]) == 1
    require(is_allowed, "retention", retention, "None, or exactly one time that groups, such as at:day")


def require_count(argument: str, value: object, limit: float = math.inf, least: int = 1) -> object:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= limit:
        allowed = f"an int from {least} to {limit}" if limit < math.inf else f"an int of {least} or more"
        raise InvalidArgumentError(argument, value, allowed)
    return value


# By name of an argument that means the same in all declarations.
_CHECKS: Final[dict[str, Callable[[str, object], object]]] = {
    "name": require_name,
    "on_expiry": partial(require_choice, allowed=("keep", "subtract")),
    "late": partial(require_choice, allowed=("drop", "quarantine")),
    "direction": partial(require_choice, allowed=("up", "down", "both")),
    "burst": partial(require_choice, allowed=("all", "highest")),
    **dict.fromkeys(("retention", "longest"), require_duration),
    "future_tolerance": partial(require_duration, zero=True),
    **dict.fromkeys(("pages", "once"), require_bool),
    "write_shards": partial(require_count, limit=100),  # A read adds up so many items, or merges so many partitions.
    "max_groups": partial(require_count, limit=10_000),  # What an invocation can write, and write again, in time.
    "parts": partial(require_count, limit=256),
    "chunk_bytes": partial(require_count, limit=131_072, least=1024),  # Well below the 400 KB of an item.
}


def require_arguments(declaration: Any) -> None:
    for part in fields(declaration):
        if part.name in _CHECKS:
            _CHECKS[part.name](part.name, getattr(declaration, part.name))


def require_no_member(argument: str, paths: Iterable[str]) -> None:
    for path in paths:
        require(LIST_MARK not in path, argument, path, "an attribute of the item, not of a list's members")


def field_names(argument: str, value: object, *, plain: bool = False) -> tuple[str, ...]:
    """Return names of fields; refuse others than attributes if they must be `plain`."""
    names, allowed = (value,) if isinstance(value, str) else value, _PLAIN if plain else _ANY
    if not isinstance(names, Sequence) or isinstance(names, bytes) or len({*map(repr, names)}) < len(names):
        raise InvalidArgumentError(argument, value, allowed)
    for name in names:
        require(isinstance(name, str) and is_field(name) and not scale_of(name), argument, name, allowed)
        _require_field(argument, name, name, plain=plain)
    return tuple(names)


def fields_instead(
    name: str, argument: str, value: Fields | None, *templates: str, plain: bool = False
) -> tuple[str, ...] | None:
    """Return the fields that stand for key templates, by default none; None where there are templates; refuse both."""
    if any(templates):
        require(value is None, argument, value, "None where key templates are given")
        return None
    require(name not in _WORDS, "name", name, f"a name other than {', '.join(_WORDS)}, as keys begin with the name")
    return field_names(argument, () if value is None else value, plain=plain)


def named_key(name: str, names: Sequence[str]) -> str:
    """Return a template that begins with a name, as ``views#{url}#{time:day}``."""
    return "#".join([name, *(f"{{{field}}}" for field in names)])
