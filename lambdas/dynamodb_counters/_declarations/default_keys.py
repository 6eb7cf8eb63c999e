"""Key templates for declarations that only name fields: of unique names, so no two write the same item. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from dynamodb_counters._declarations.checks import require_field
from dynamodb_counters._items.key_templates import KeyTemplate, is_field, key_template
from dynamodb_counters._items.table_schema import MAX_SK_BYTES
from dynamodb_counters.errors import InvalidArgumentError

Fields: TypeAlias = str | Sequence[str]
"""The names of fields, or of the only one."""

_TAKEN: Final = ("CHECKPOINT", "LEASES", "PACK", "QUARANTINE", "WINDOW")
"""First words of bookkeeping's keys, as which no key may begin."""

_PLAIN: Final = "an attribute name or a sequence of different ones, such as ('url', 'clientId')"
_ANY: Final = (
    "a field or a sequence of different ones, such as 'url', 'address.city', 'tags[]', 'time:day', 'status:class', "
    "'ms:100,1000' (ascending, from 0 on) or 'plan?none'"
)


def field_names(argument: str, given: object, *, plain: bool = False) -> tuple[str, ...]:
    """The names of some fields; refuses others than attributes if they must be `plain`."""
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, Sequence) or isinstance(names, bytes) or len({*map(repr, names)}) < len(names):
        raise InvalidArgumentError(argument, given, _PLAIN if plain else _ANY)
    for name in names:
        if not isinstance(name, str) or not is_field(name):
            raise InvalidArgumentError(argument, name, _PLAIN if plain else _ANY)
        require_field(argument, name, name, plain=plain)
    return tuple(names)


def fields_instead(
    name: str,
    argument: str,
    given: Fields | None,
    *,
    default: Fields | None = None,
    plain: bool = False,
    **templates: str,
) -> tuple[str, ...] | None:
    """The fields given instead of `templates`, None if those are given; refuses both, and neither without `default`."""
    those, are_given = " and ".join(templates), any(templates.values())
    if given is None and are_given:
        return None
    given = default if given is None else given
    if given is None:
        raise InvalidArgumentError(argument, None, f"fields such as 'url', or {those}")
    if are_given:
        raise InvalidArgumentError(argument, given, f"None where {those} {'are' if 'and' in those else 'is'} given")
    if name in _TAKEN:
        allowed = f"a name other than {', '.join(_TAKEN)} where {argument} is given, as keys begin with the name"
        raise InvalidArgumentError("name", name, allowed)
    return field_names(argument, given, plain=plain)


def named_key(name: str, fields: Sequence[str]) -> str:
    """A template that begins with a name, as ``views#{url}#{time:day}``."""
    return "#".join([name, *(f"{{{field}}}" for field in fields)])


def keys_beside(name: str, fields: tuple[str, ...], source: tuple[KeyTemplate, KeyTemplate] | None) -> tuple[str, str]:
    """Templates of a group's keys: in its source's partition if that determines the group, else in one of its own."""
    # In the source's partition a single shard of the stream feeds the group, and one Query reads both.
    if source is not None:
        pk, sk = source
        count, rest = len(pk.fields), named_key(name, fields[len(pk.fields) :])
        if count and fields[:count] == pk.fields and not key_template(rest, MAX_SK_BYTES, "sk").overlaps(sk):
            return pk.text, rest
    return named_key(name, fields[:1]), named_key(name, fields[1:])
