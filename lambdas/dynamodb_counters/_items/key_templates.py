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
from string import Formatter
from typing import Final

from dynamodb_counters._items.conversions import UNSAFE, escape, key_text, unescape
from dynamodb_counters._items.derived_fields import derivation, parts_of
from dynamodb_counters.errors import InvalidArgumentError, MalformedImageError

DELIMITER: Final = "#"
HASH_MARKER: Final = "%~"

_HASH_CHARACTERS: Final = 43  # a SHA-256 in unpadded base64
_FIELD_NAME: Final = re.compile(
    r"[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z_][A-Za-z0-9_-]*)*(\[\])?"
    r"(:[a-z0-9.]+)?(\?[A-Za-z0-9_.-]+)?"
)
_FORMS: Final = "{name}, {outer.inner}, {list[]}, {time:day}, {status:class} or {plan?none}"
_UNFIT: Final = re.compile(r"[%\x00-\x1f\x7f\ud800-\udfff]")


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
        self._literals, self.fields = _split(argument, text)
        if len(text.encode()) > max_bytes - len(HASH_MARKER) - _HASH_CHARACTERS:
            raise InvalidArgumentError(argument, text, f"well under {max_bytes} bytes")
        self.text, self.max_bytes, self.prefix = text, max_bytes, self._literals[0]
        self._format = "%s".join(self._literals)  # No literal holds a "%".
        self._pattern = re.compile("([^#]*)".join(map(re.escape, self._literals)), re.DOTALL)
        # Values hold no "#", so keys are equal only segment by segment; \0 stands for a value.
        segments = "\0".join(self._literals).split("#")
        self._segments = [(one.removesuffix("\0"), one.endswith("\0")) for one in segments]

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
        if HASH_MARKER in key:
            raise MalformedImageError(f"{key!r} holds a hash of its values")
        match = self._pattern.fullmatch(key)
        if match is None:
            raise MalformedImageError(f"{key!r} does not match {self.text!r}")
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
        ours, theirs = self._segments, other._segments
        return len(ours) == len(theirs) and all(map(_segments_overlap, ours, theirs))


key_template: Final = lru_cache(maxsize=1024)(KeyTemplate)


def is_field(name: str) -> bool:
    """Whether a template may have a field of this name.

    >>> is_field("address.city"), is_field("time:day"), is_field("tags[]:day"), is_field("a}")
    (True, True, False, False)
    """
    path, derived, _ = parts_of(name)
    is_known = not derived or derivation(derived) is not None
    # Members of a list have no marks.
    is_fit = name == path or "[]" not in path
    return _FIELD_NAME.fullmatch(name) is not None and is_known and is_fit


def is_hashed(key: str) -> bool:
    """Whether a rendered key ends in a hash, so that `KeyTemplate.parse` cannot return its values."""
    return HASH_MARKER in key


def _split(argument: str, text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if not isinstance(text, str) or not text:
        raise InvalidArgumentError(argument, text, "a non-empty template such as 'URL#{url}'")
    try:
        parsed = list(Formatter().parse(text))
    except ValueError as error:
        raise InvalidArgumentError(argument, text, f"balanced braces ({error})") from None
    literals, fields = [""], list[str]()
    for literal, name, spec, conversion in parsed:
        literals[-1] += literal
        if name is None:
            continue
        name = f"{name}:{spec}" if spec else name  # noqa: PLW2901
        if conversion or not is_field(name):
            raise InvalidArgumentError(argument, text, f"fields of the form {_FORMS}")
        if name in fields:
            raise InvalidArgumentError(argument, text, f"each field once ({name!r} is repeated)")
        fields.append(name)
        literals.append("")
    if _UNFIT.search("".join(literals)):
        raise InvalidArgumentError(argument, text, "valid Unicode without '%' and control characters in literal text")
    if any(not literal.startswith(DELIMITER) for literal in literals[1:-1]) or (
        literals[1:] and literals[-1] and not literals[-1].startswith(DELIMITER)
    ):
        raise InvalidArgumentError(argument, text, f"text after a field that starts with {DELIMITER!r}")
    return tuple(literals), tuple(fields)


def _shorten(key: str, max_bytes: int) -> str:
    if len(key) * 4 <= max_bytes or len(encoded := key.encode()) <= max_bytes:
        return key
    digest = base64.urlsafe_b64encode(hashlib.sha256(encoded).digest()).decode().rstrip("=")
    kept = encoded[: max_bytes - len(HASH_MARKER) - len(digest)].decode(errors="ignore")
    return f"{kept}{HASH_MARKER}{digest}"


def _segments_overlap(one: tuple[str, bool], two: tuple[str, bool]) -> bool:
    (first, first_open), (second, second_open) = one, two
    if first_open and second_open:
        return first.startswith(second) or second.startswith(first)
    # A value is never empty in a key: "A#{x}" does not render "A#".
    if first_open:
        return second != first and second.startswith(first)
    return first != second and first.startswith(second) if second_open else first == second
