"""Marks of images that were discarded from the quarantine while their items show them. Pure.

A mark names a declaration and the image, but for when it expires. So a correction counts, in place or not.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.conversions import base64_text
from dynamodb_counters._items.table_schema import ERASED, NOT_IN, TTL

_ALL: Final = "*"
_BYTES: Final = 12
_UNSEEN: Final = frozenset((NOT_IN, ERASED, TTL))
_SETS: Final = frozenset(("SS", "NS", "BS"))


def marks_of(image: Image, names: Iterable[str]) -> list[str]:
    """The marks that an image is discarded with for some declarations; for all if none is named."""
    digest = image_digest(image)
    return [f"{name} {digest}" for name in (sorted(names) or [_ALL])]


def is_discarded(name: str, image: Image, marks: Iterable[str]) -> bool:
    """Whether an image is discarded for a declaration."""
    known = frozenset(marks)
    return bool(known) and not known.isdisjoint(marks_of(image, (name, _ALL)))


def stored_marks(*images: Image | None) -> frozenset[str]:
    """The marks on images of an item; an image that is malformed has none."""
    found = frozenset[str]()
    for image in images:
        # Every record passes here, and hardly any has marks.
        if isinstance(image, dict) and NOT_IN in image:
            held = image[NOT_IN]
            marks = held.get("SS") if isinstance(held, Mapping) else None
            found |= frozenset(map(str, marks) if isinstance(marks, list | set | tuple) else ())
    return found


def image_digest(image: Image) -> str:
    """Digest of an image, read from the table or with a record; marks do not change it, nor does an erasure."""
    shown = {name: _plain(value) for name, value in image.items() if name not in _UNSEEN}
    text = json.dumps(shown, sort_keys=True)
    return base64_text(hashlib.sha256(text.encode()).digest()[:_BYTES])


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        # An attribute's name may be that of a type: its value is no list.
        return {
            name: sorted(map(_plain, each)) if name in _SETS and not isinstance(each, Mapping) else _plain(each)
            for name, each in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    return base64_text(value) if isinstance(value, bytes | bytearray) else value
