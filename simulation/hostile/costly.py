"""Bodies of up to 1 MB that cost whoever reads them as much as their bytes can."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

MAX_BYTES: Final = 1_000_000

_VIEW: Final = {
    "customer": "c0",
    "url": "/",
    "time": "2026-09-21T14:13:20Z",
    "clientId": "c",
    "bytes": 1,
    "tags": ["a"],
}


SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "url": {"type": "string"},
        "bytes": {"type": "number", "multipleOf": 0.01},
        "email": {"format": "email"},
        "host": {"format": "hostname"},
        "at": {"format": "date-time"},
        "iri": {"format": "iri-reference"},
        "name": {"format": "idn-hostname"},
        "pointer": {"format": "json-pointer"},
        "template": {"format": "uri-template"},
        "code": {"type": "string", "pattern": r"^\s*[A-Z]+\s*$"},
        "words": {"type": "string", "pattern": r"^(\w+\s?)*$"},
        "list": {"type": "array", "uniqueItems": True},
    },
    "patternProperties": {"^x-.*-.*-y$": {"type": "string"}},
}
"""A schema as heavy as people write them, with a pattern that takes exponential time."""


def _fill(part: str, before: str, after: str, size: int = MAX_BYTES) -> str:
    """As many parts, joined by commas, as fit into a body."""
    count = (size - len(before) - len(after)) // (len(part) + 1)
    return before + ",".join([part] * count) + after


def _event(number: int, attributes: str) -> str:
    """Return a view with more attributes, which replace its own; each number's is another one."""
    own = {name: value for name, value in _VIEW.items() if f'"{name}":' not in attributes}
    return f"{json.dumps(own | {'clientId': str(number)})[:-1]},{attributes}}}"


def _events(attributes: str, count: int) -> str:
    return "[" + ",".join(_event(number, attributes) for number in range(count)) + "]"


def _members(count: int, value: str) -> str:
    return ",".join(f'"{number:x}":{value}' for number in range(count))


def _view(attributes: str) -> str:
    return _event(0, attributes)


def _text(kind: str, text: str, size: int = 190_000) -> str:
    """Five events with an attribute of text that long."""
    long = json.dumps((text * (size // len(text) + 1))[:size])
    return _events(f'"{kind}":{long}', 5)


BODIES: Final[Mapping[str, Callable[[], str]]] = {
    "many empty objects": lambda: _fill("{}", "[", "]"),
    "many empty lists": lambda: _fill("[]", "[", "]"),
    "500 views of 200 members": lambda: _events(_members(205, "1"), 500),
    "500 views of 100 fractions": lambda: _events(_members(100, "1.5"), 500),
    "five views of 30,000 numbers": lambda: _events(f'"list":[{",".join(["1"] * 90_000)}]', 5),
    "one view of 490,000 numbers": lambda: _view(f'"list":[{",".join(["1"] * 490_000)}]'),
    "one view of 240,000 fractions": lambda: _view(f'"list":[{",".join(["1.5"] * 240_000)}]'),
    "one view of 300,000 texts": lambda: _view(f'"list":[{",".join([chr(34) * 2] * 320_000)}]'),
    "one view of 80,000 members": lambda: _view(_members(90_000, "1")),
    "one view of 80,000 small maps": lambda: _view(f'"list":[{",".join(["{}"] * 300_000)}]'),
    "views of different numbers": lambda: _events(f'"list":[{",".join(map(str, range(30_000)))}]', 5),
    "integers of 4,300 digits": lambda: _events(f'"list":[{",".join(["9" * 4300] * 40)}]', 5),
    "integers of 38 digits": lambda: _events(f'"list":[{",".join(["9" * 38] * 4800)}]', 5),
    "an integer of a million digits": lambda: _view(f'"bytes":{"9" * 990_000}'),
    "a fraction of a million digits": lambda: _view(f'"bytes":0.{"9" * 990_000}'),
    "fractions of 30,000 digits": lambda: _events(f'"bytes":1.{"9" * 190_000}', 5),
    "a huge exponent": lambda: _events('"bytes":1E+999999999', 500),
    "a huge exponent in the key": lambda: _events('"url":1E+999999999,"customer":1E+999999999', 500),
    "an exponent beyond all": lambda: _events('"bytes":1E+99999999999999999999', 500),
    "500 deep documents": lambda: _events('"more":' + "[" * 900 + "]" * 900, 500),
    "a document of depth 980": lambda: _view('"more":' + "[" * 978 + "]" * 978),
    "a document of depth 32": lambda: _events('"more":' + "[" * 31 + "1" + "]" * 31, 500),
    "a document that never closes": lambda: "[" * MAX_BYTES,
    "a document of objects that never close": lambda: '{"a":' * 200_000,
    "many levels side by side": lambda: _events(f'"list":[{",".join(["[[[[[[[[]]]]]]]]"] * 11_000)}]', 5),
    "escapes": lambda: _view('"text":"' + r"\u0000" * 160_000 + '"'),
    "escaped quotes": lambda: _view('"text":"' + r"\"" * 490_000 + '"'),
    "brackets in a text": lambda: _events('"text":"' + "[" * 190_000 + '"', 5),
    "lone surrogates": lambda: _events('"text":"' + r"\ud800" * 30_000 + '"', 5),
    "characters of three bytes": lambda: _events('"text":"' + "\u20ac" * 33_000 + '"', 5),
    "a name of 200,000 bytes": lambda: _events(f'"{"n" * 190_000}":1', 5),
    "names that differ in length": lambda: _view(",".join(f'"{"n" * n}":1' for n in range(1400))),
    "an email of dots": lambda: _text("email", ".."),
    "many emails of dots": lambda: _events('"email":"' + ".." * 900 + '"', 500),
    "a host of dots": lambda: _text("host", "a."),
    "a host of hyphens": lambda: _text("host", "a-"),
    "a time of digits": lambda: _text("at", "2026-09-21T14:13:20.1"),
    "an iri of hashes": lambda: _text("iri", "#"),
    "a name of hyphens": lambda: _text("name", "a-"),
    "a pointer of slashes": lambda: _text("pointer", "/~0"),
    "a template of braces": lambda: _text("template", "{a,"),
    "blanks before a code": lambda: _text("code", " "),
    "words that never end": lambda: _events(f'"words":"{"a" * 40}!"', 5),
    "different members of a list": lambda: _events(f'"list":[{",".join(map(str, range(30_000)))}]', 5),
    "names for a pattern": lambda: _view(",".join(f'"x-{"-" * 90}{n}":1' for n in range(9_000))),
    "keys of 190,000 characters": lambda: _events('"url":"' + "#" * 190_000 + '"', 5),
    "tags by the fifty": lambda: _events(f'"tags":{json.dumps([f"t{n}" for n in range(50)])}', 500),
    "tags by the thousand": lambda: _events(f'"tags":{json.dumps([f"{n:x}" for n in range(9000)])}', 5),
    "texts that are no JSON": lambda: "x" * MAX_BYTES,
    "quotes": lambda: '"' * MAX_BYTES,
    "backslashes": lambda: '"' + "\\" * (MAX_BYTES - 2) + '"',
    "blanks": lambda: " " * MAX_BYTES,
}
