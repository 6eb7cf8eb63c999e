"""Declarations that share a table: flattened and checked against each other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations, product
from operator import attrgetter
from typing import Any, Final, TypeAlias

from dynamodb_counters._declarations.aggregates import PARTITION_MARK, Aggregate, Window
from dynamodb_counters._declarations.checks import named_key, require
from dynamodb_counters._declarations.composites import Composite, Threshold, watched
from dynamodb_counters._declarations.sources import Direct, Event, Items
from dynamodb_counters._items import schema
from dynamodb_counters._items.keys import KeyTemplate, key_template
from dynamodb_counters.errors import InvalidArgumentError

_RESERVED: Final = tuple(
    key_template(text, schema.MAX_PK_BYTES, "pk")
    for text in (
        f"{schema.QUARANTINE_PREFIX}{{number}}",
        f"{schema.CHECKPOINT_PREFIX}{{number}}",
        f"{schema.CROSSING_PREFIX}{{name}}#{{number}}",
        *(schema.LEASES_PREFIX + named_key("{name}", "abc"[:count]) for count in range(1 + schema.MAX_LEASE_FIELDS)),
    )
)

Declaration: TypeAlias = Aggregate | Window
"""Declarations that the fold counts by."""
Declarable: TypeAlias = Declaration | Composite | Threshold
"""Declarations that a table takes."""
_Key: TypeAlias = tuple[KeyTemplate, KeyTemplate]


def flatten(declarations: Iterable[Declarable]) -> tuple[Declaration, ...]:
    """Return the aggregates and windows that declarations consist of, in order, with the thresholds that watch them."""
    parts, thresholds, watchers = list[Any](), list[Threshold](), dict[str, tuple[Threshold, ...]]()
    for declaration in declarations:
        if isinstance(declaration, Threshold):
            thresholds.append(declaration)
        else:
            parts += declaration._parts if isinstance(declaration, Composite) else (declaration,)
    names = [threshold.name for threshold in thresholds]
    for threshold in sorted(thresholds, key=attrgetter("name")):
        require(names.count(threshold.name) == 1, "name", threshold.name, "one threshold per name")
        target = watched(threshold.aggregate)
        allowed = f"a declared aggregate; declare it together with {threshold.name!r}"
        require(target in parts, "aggregate", target.name, allowed)
        watchers[target.name] = (*watchers.get(target.name, ()), replace(threshold, aggregate=None))
    return tuple(replace(part, _thresholds=watchers[part.name]) if part.name in watchers else part for part in parts)


def require_consistent(
    declarations: tuple[Declaration, ...], events: Iterable[Event] = (), *, complete: bool = True
) -> None:
    """Refuse declarations, and other `events` of a table, that contradict each other or could write the same item."""
    # Unless they are `complete`, the sources of aggregates over aggregates may be declared elsewhere.
    parts: dict[str, Declaration | Event | Items | Direct] = {}
    for part in (*(part for declaration in declarations for part in (declaration.source, declaration)), *events):
        is_same = parts.setdefault(part.name, part) == part
        require(is_same, "name", part.name, "one declaration per name; rename one of the two")
    names = [declaration.name for declaration in declarations]
    for declaration in declarations:
        require(names.count(declaration.name) == 1, "name", declaration.name, "each declaration only once")
        if complete and isinstance(declaration.source, Aggregate):
            allowed = f"an aggregate that is declared with {declaration.name!r}"
            require(declaration.source.name in names, "source", declaration.source.name, allowed)
    _require_apart([(part, _keys(part)) for part in parts.values() if not isinstance(part, Items | Direct)])
    sources = [part for part in parts.values() if isinstance(part, Items)]
    for source in sources[1:]:
        allowed = f"those of {sources[0].name!r}, which lies in the same table"
        require(source._table_keys == sources[0]._table_keys, "keys", source.keys, allowed)


def _keys(part: Declaration | Event) -> list[_Key]:
    """Return templates of the keys that its items have: partition and sort key."""
    if isinstance(part, Aggregate) and part.pages:
        shelf = "".join(f"{{{field}}}#" for field in part._sk_template.fields[: part._shelved])
        return [_key(f"{part.pk}{PARTITION_MARK}{{partition}}", f"{schema.PAGE_PREFIX}{part.name}#{shelf}{{page}}")]
    if not isinstance(part, Event) or part.packed is None:
        return [(part._pk_template, part._sk_template)]
    pk, tenant = f"{schema.PACK_PREFIX}{part.name}", "" if part.packed.tenant is None else "#{tenant}"
    return [_key(f"{pk}#{{part}}{tenant}", "{bucket}#{number}"), _key(pk, schema.LAYOUT)]


def _key(pk: str, sk: str) -> _Key:
    return key_template(pk, schema.MAX_PK_BYTES, "pk"), key_template(sk, schema.MAX_SK_BYTES, "sk")


def _require_apart(keyed: list[tuple[Declaration | Event, list[_Key]]]) -> None:
    """Refuse keys that are reserved, or that two of a table could both have."""
    for part, keys in keyed:
        for pk, _ in keys:
            for reserved in filter(pk.overlaps, _RESERVED):
                raise InvalidArgumentError("pk", part.pk, f"a key that cannot match the reserved {reserved.text!r}")
    for (first, first_keys), (second, second_keys) in combinations(keyed, 2):
        allowed = f"keys that cannot match items of {first.name!r}; change those of {second.name!r}, or its name"
        for first_key, second_key in product(first_keys, second_keys):
            require(not all(map(KeyTemplate.overlaps, first_key, second_key)), "pk", second.pk, allowed)
        rankings = [part.ranking for part in (first, second) if isinstance(part, Aggregate) and part.ranking]
        if len(rankings) > 1 and rankings[0]._template.overlaps(rankings[1]._template):
            allowed = f"a leaderboard that cannot hold groups of {first.name!r}"
            raise InvalidArgumentError("leaderboard", rankings[1].leaderboard, allowed)
