"""A table's declarations: flattened, checked against each other, and as text for a Lambda function's environment."""

from __future__ import annotations

import base64
import bz2
import json
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from datetime import timedelta
from decimal import Decimal
from functools import lru_cache, partial
from itertools import combinations, product
from operator import attrgetter
from typing import Any, Final, TypeAlias, TypeVar

from dynamodb_counters._declarations.aggregates import PARTITION_MARK, Aggregate, Counter, Ranking, Window
from dynamodb_counters._declarations.checks import named_key, require
from dynamodb_counters._declarations.composites import Composite, Threshold, watched
from dynamodb_counters._declarations.event_attributes import KINDS, Attribute
from dynamodb_counters._declarations.measures import MEASURES, TimeWeighted
from dynamodb_counters._declarations.sources import Direct, Event, Items, Packed, TableKeys
from dynamodb_counters._items import schema
from dynamodb_counters._items.conditions import Condition
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

Declaration: TypeAlias = Aggregate | Window  # The fold counts by these.
Declarable: TypeAlias = Declaration | Composite | Threshold  # A table takes these.
_Key: TypeAlias = tuple[KeyTemplate, KeyTemplate]
_Counting = TypeVar("_Counting", bound=Aggregate | Window)

_PLAIN_CHARACTERS: Final = 1000  # Longest text that stays readable: a function has up to three variables of such text.
_COMPRESSED: Final = base64.b85encode(b"BZh9").decode()  # Begins compressed text, as no JSON begins.
_OF_READS: Final = {"tz": "UTC", "anchor": 1}  # What says how a window is read, and nothing of what it counts.
_KINDS: Final = (Aggregate, Attribute, Condition, Counter, Event, Items, Packed, Ranking, TableKeys, Threshold, Window)
_TYPES: Final[dict[str, type]] = {kind.__name__: kind for kind in (*MEASURES, TimeWeighted, *_KINDS)}
# By type: the key of its text, how it is written, how it is read.
_TEXTS: Final[dict[str, tuple[str, Callable[[Any], str], Callable[[str], Any]]]] = {
    "timedelta": ("s", lambda value: str(value.total_seconds()), lambda text: timedelta(seconds=float(text))),
    "Decimal": ("d", str, Decimal),
    "type": ("n", lambda value: str(value.__name__), {kind.__name__: kind for kind in KINDS}.__getitem__),
}


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


def encode(declarations: tuple[Declaration | Event, ...], *, attributes: bool = False) -> str:
    """Return declarations as ASCII; rules for `attributes` of events, which change nothing of the counts, if asked."""
    return shortened([_plain(declaration, attributes=attributes) for declaration in declarations])


@lru_cache(maxsize=64)
def decode(text: str) -> tuple[Declaration, ...]:
    """Return declarations equal to those that `encode` wrote; InvalidArgumentError for other text."""
    try:
        plain = restored(text)
        if not isinstance(plain, list):
            raise TypeError("no list")
        return tuple(_typed(part) for part in plain)
    except (LookupError, OSError, TypeError, ValueError) as error:
        raise InvalidArgumentError("text", text, f"text that encode() wrote ({error})") from error


def described(declarations: Iterable[Declaration | Event | Threshold]) -> dict[str, Any]:
    """Return declarations, and the events they count, by name: JSON for people, with nothing in it twice."""
    texts: dict[str, Any] = {}
    for declaration in declarations:
        # CloudFormation takes no member without a name.
        plain = _plain(declaration, label="class")
        for argument in ("source", "aggregate"):
            source = getattr(declaration, argument, None)
            if isinstance(source, Event):
                texts |= described([source])
            if source is not None and not isinstance(source, Items | Direct):
                plain[argument] = source.name
        texts[declaration.name] = plain
    return dict(sorted(texts.items()))


def shortened(document: Any) -> str:
    """Return a document as JSON, compressed if it is long; the same on every machine."""
    # Unlike zlib, of which there are several that differ in their output, bzip2 has one implementation.
    text = json.dumps(document, separators=(",", ":"))
    return text if len(text) <= _PLAIN_CHARACTERS else _compressed(text)


@lru_cache(maxsize=32)
def _compressed(text: str) -> str:
    return base64.b85encode(bz2.compress(text.encode())).decode()


def restored(text: str) -> Any:
    return json.loads(bz2.decompress(base64.b85decode(text)) if text.startswith(_COMPRESSED) else text)


def _plain(value: Any, *, attributes: bool = False, label: str = "") -> Any:
    """Return a value as JSON, with a label before the names of types."""
    plain, kind = partial(_plain, attributes=attributes, label=label), type(value).__name__
    if is_dataclass(value):
        hidden = () if attributes or not isinstance(value, Event) else ("attributes",)
        parts = [(part, getattr(value, part.name)) for part in fields(value) if part.init and part.name not in hidden]
        arguments = {part.name.removeprefix("_"): plain(item) for part, item in parts if item != part.default}
        return {label: kind, **arguments}
    if kind in _TEXTS:
        key, text_of, _ = _TEXTS[kind]
        return {label: kind, key: text_of(value)}
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    if hasattr(value, "items"):
        return {name: plain(part) for name, part in value.items()}
    return value


def _typed(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_typed(part) for part in value)
    if not isinstance(value, dict):
        return value
    kind = value.get("")
    if kind is None:
        return {name: _typed(part) for name, part in value.items()}
    if kind in _TEXTS:
        key, _, read = _TEXTS[kind]
        return read(value[key])
    # Names in the text keep no leading underscore.
    names: Any = {part.name.removeprefix("_"): part.name for part in fields(_TYPES[kind]) if part.init}
    return _TYPES[kind](**{names[name]: _typed(part) for name, part in value.items() if name})


def definition(declaration: _Counting) -> _Counting:
    """Return the declaration without its thresholds, and without what says how it is written or read."""
    source: Any = declaration.source
    changed: dict[str, Any] = {**_OF_READS} if isinstance(declaration, Window) else {"_thresholds": ()}
    if isinstance(source, Event):
        # Chunks are laid out by their retention.
        retention = source.retention if source.packed is not None else None
        changed["source"] = replace(source, retention=retention, attributes=None)
    elif isinstance(source, Aggregate):
        changed["source"] = definition(source)
    return replace(declaration, **changed)


def same_definition(first: Aggregate | Window, second: Aggregate | Window) -> bool:
    """Return whether two declarations count the same in the same items, those of an event by its name."""
    return first is second or _meaning(first) == _meaning(second)


def _meaning(declaration: Aggregate | Window) -> str:
    source: Any = declaration.source
    text = _plain(source) if isinstance(source, Items) else source.name
    plain = _plain(declaration) | {"source": _meaning(source) if isinstance(source, Aggregate) else text}
    # As text, in which True is not 1; the order of measures does not matter.
    return json.dumps({name: plain[name] for name in plain.keys() - {"thresholds", *_OF_READS}}, sort_keys=True)
