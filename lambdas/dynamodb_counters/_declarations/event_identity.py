"""What makes an event the same one: its keys, as 16 bytes."""

from __future__ import annotations

import hashlib
from typing import Final

from dynamodb_counters._declarations.sources import Event
from dynamodb_counters._items.attributes import Image, text_reader

DIGEST_BYTES: Final = 16
"""Of a billion events in one bucket, two share a digest with a probability of 10^-21."""


class EventIdentity:
    """Tells the events of a declaration apart, whatever else they hold."""

    def __init__(self, event: Event) -> None:
        self._pk, self._sk = event.pk_template, event.sk_template
        self._readers = {name: text_reader(name, literal=True) for name in event.fields}

    def digest(self, values: Image) -> bytes:
        texts = {name: read(values) for name, read in self._readers.items()}
        return digest_of(self._pk.render(texts), self._sk.render(texts))


def digest_of(pk: str, sk: str) -> bytes:
    # Rendered keys hold no control characters.
    return hashlib.blake2b(f"{pk}\0{sk}".encode(), digest_size=DIGEST_BYTES).digest()
