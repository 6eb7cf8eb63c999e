"""Key templates: from values to a key that no values can forge, and back.

A template such as ``"T#{time}#CID#{clientId}"`` is literal text and fields. Values are escaped, so every ``#`` in a
rendered key is the template's own, and different values never render the same key. A key longer than DynamoDB allows
keeps its beginning and ends in ``%~`` and a SHA-256 of the whole, which no shorter key can contain.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from dynamodb_counters._items.conversions import UNSAFE, escape, key_text, unescape
from dynamodb_counters._items.derived_fields import derivation, parts_of
from dynamodb_counters.errors import InvalidArgumentError, MalformedImageError

DELIMITER: Final = "#"
HASH_MARKER: Final = "%~"

_HASH_CHARACTERS: Final = 43  # a SHA-256 in unpadded base64
_FIELD: Final = (
    r"[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z_][A-Za-z0-9_-]*)*(\[\])?"
    r"(:[a-z0-9.]+)?(\?[A-Za-z0-9_.-]+)?"
)
_PART: Final = re.compile(rf"([^%{{}}\x00-\x1f\x7f\ud800-\udfff]*)(?:\{{({_FIELD})\}})?")
_EXPECTED: Final = (
    "parts with '#' between them, each a text without braces, '%' and control characters, a field, or a text and a "
    "field; no field twice; fields are {name}, {outer.inner}, {list[]}, {time:day}, {status:class} or {plan?none}"
)


class KeyTemplate:
    """A key layout: literal text with ``{field}`` placeholders, which renders up to `max_bytes` of UTF-8.

    Errors about the text name it by `argument`.

    >>> template = KeyTemplate("T#{time}#CID#{clientId}", 1024)
    >>> template.render({"time": "10:30", "clientId": "a#b"})
    'T#10:30#CID#a%23b'
    >>> template.parse("T#10:30#CID#a%23b")
    {'time': '10:30', 'clientId': 'a#b'}
    """

    def __init__(self, text: str, max_bytes: int, argument: str = "template") -> None:
        self._parts = _split(argument, text)
        self.fields = tuple(field for _, field in self._parts if field)
        if len(text.encode()) > max_bytes - len(HASH_MARKER) - _HASH_CHARACTERS:
            raise InvalidArgumentError(argument, text, f"well under {max_bytes} bytes")
        self.text, self.max_bytes, self.prefix = text, max_bytes, text.partition("{")[0]
        # No literal holds a "%".
        self._format = DELIMITER.join([literal + ("%s" if field else "") for literal, field in self._parts])
        pattern = [re.escape(literal) + ("([^#]*)" if field else "") for literal, field in self._parts]
        self._pattern = re.compile(DELIMITER.join(pattern), re.DOTALL)

    def render(self, values: Mapping[str, object]) -> str:
        """The key of some values: a str, int or Decimal per field; other values are ignored."""
        try:
            return self.render_texts([key_text(name, values[name]) for name in self.fields])
        except KeyError as error:
            raise InvalidArgumentError(str(error.args[0]), None, f"a value for {self.text!r}") from None

    def render_texts(self, texts: list[str]) -> str:
        """The key of unescaped texts, one per field in the order of `fields`."""
        if not texts:
            return self.prefix
        if UNSAFE.search("".join(texts)) or "" in texts:
            texts = [escape(text) for text in texts]
        return _shorten(self._format % tuple(texts), self.max_bytes)

    def parse(self, key: str) -> dict[str, str]:
        """The text of each field of a rendered key; MalformedImageError if it is hashed or of another template."""
        match = None if is_hashed(key) else self._pattern.fullmatch(key)
        if match is None:
            raise MalformedImageError(f"{key!r} does not match {self.text!r}, or holds a hash of its values")
        try:
            return {name: unescape(text) for name, text in zip(self.fields, match.groups(), strict=True)}
        except UnicodeDecodeError:
            raise MalformedImageError(f"{key!r} holds escapes that are not valid UTF-8") from None

    def match(self, key: str) -> dict[str, str] | None:
        """The text of each field of a key that other code wrote, unescaped; None if the key has another form.

        >>> KeyTemplate("ACCOUNT#{account}", 2048).match("ACCOUNT#50%")
        {'account': '50%'}
        """
        found = self._pattern.fullmatch(key)
        return None if found is None else dict(zip(self.fields, found.groups(), strict=True))

    def overlaps(self, other: KeyTemplate) -> bool:
        """Whether some values could render the same key from both templates."""
        # Values hold no "#", so keys are equal only part by part.
        return len(self._parts) == len(other._parts) and all(map(_parts_overlap, self._parts, other._parts))


key_template: Final = lru_cache(maxsize=1024)(KeyTemplate)


def is_field(name: str) -> bool:
    """Whether a template may have a field of this name."""
    path, derived, _ = parts_of(name)
    is_known = not derived or derivation(derived) is not None
    # Members of a list have no marks.
    is_fit = name == path or "[]" not in path
    return re.fullmatch(_FIELD, name) is not None and is_known and is_fit


def is_hashed(key: str) -> bool:
    """Whether a rendered key ends in a hash, so that `KeyTemplate.parse` cannot return its values."""
    return HASH_MARKER in key


def _split(argument: str, text: str) -> list[tuple[str, str]]:
    """The parts of a template between its delimiters: a literal, and the field after it or ""."""
    found = [_PART.fullmatch(part) for part in text.split(DELIMITER)] if isinstance(text, str) and text else []
    parts = [(match[1], match[2] or "") for match in found if match is not None]
    fields = [field for _, field in parts if field]
    if not parts or len(parts) < len(found) or len({*fields}) < len(fields) or not all(map(is_field, fields)):
        raise InvalidArgumentError(argument, text, _EXPECTED)
    return parts


def _shorten(key: str, max_bytes: int) -> str:
    if len(key) * 4 <= max_bytes or len(encoded := key.encode()) <= max_bytes:
        return key
    digest = base64.urlsafe_b64encode(hashlib.sha256(encoded).digest()).decode().rstrip("=")
    kept = encoded[: max_bytes - len(HASH_MARKER) - len(digest)].decode(errors="ignore")
    return f"{kept}{HASH_MARKER}{digest}"


def _parts_overlap(one: tuple[str, str], two: tuple[str, str]) -> bool:
    (first, first_open), (second, second_open) = one, two
    if first_open and second_open:
        return first.startswith(second) or second.startswith(first)
    # A value is never empty in a key: "A#{x}" does not render "A#".
    if first_open:
        return second != first and second.startswith(first)
    return first != second and first.startswith(second) if second_open else first == second
