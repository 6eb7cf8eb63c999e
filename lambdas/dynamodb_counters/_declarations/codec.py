"""Declarations as text small enough for a Lambda function's environment, and back; and what is stored of them."""

from __future__ import annotations

import base64
import bz2
import json
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from datetime import timedelta
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any, Final, TypeVar

from dynamodb_counters._declarations.aggregates import Aggregate, Counter, Ranking, Window
from dynamodb_counters._declarations.composites import Threshold
from dynamodb_counters._declarations.consistency import Declaration
from dynamodb_counters._declarations.event_attributes import KINDS, Attribute
from dynamodb_counters._declarations.measures import MEASURES, TimeWeighted
from dynamodb_counters._declarations.sources import Direct, Event, Items, Packed, TableKeys
from dynamodb_counters._items.conditions import Condition
from dynamodb_counters.errors import InvalidArgumentError

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

Declared = TypeVar("Declared", bound=Aggregate | Window)


def encode(declarations: tuple[Declaration | Event, ...], *, attributes: bool = False) -> str:
    """Return declarations as ASCII: readable JSON while it is short, compressed JSON beyond."""
    # Events come without what their attributes must be unless `attributes`: that changes nothing about what is counted.
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


def definition(declaration: Declared) -> Declared:
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
    """Whether two declarations count the same in the same items, those of an event by its name."""
    return first is second or _meaning(first) == _meaning(second)


def _meaning(declaration: Aggregate | Window) -> str:
    source: Any = declaration.source
    text = _plain(source) if isinstance(source, Items) else source.name
    plain = _plain(declaration) | {"source": _meaning(source) if isinstance(source, Aggregate) else text}
    # As text, in which True is not 1; the order of measures does not matter.
    return json.dumps({name: plain[name] for name in plain.keys() - {"thresholds", *_OF_READS}}, sort_keys=True)
