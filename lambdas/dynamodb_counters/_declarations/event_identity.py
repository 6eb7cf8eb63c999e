"""Identity of an event: its keys, as 16 bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

from dynamodb_counters._declarations.sources import Event
from dynamodb_counters._items.attributes import Image, text_reader
from dynamodb_counters._items.chunks import Chunk
from dynamodb_counters._items.key_templates import KeyTemplate

DIGEST_BYTES: Final = 16
"""Bytes of a digest: two of a billion events in one bucket share one with a probability of 10^-21."""


class EventIdentity:
    """Identities of a declaration's events, whatever else they hold."""

    def __init__(self, event: Event) -> None:
        self._pk, self._sk = event._pk_template, event._sk_template
        self._readers = {name: text_reader(name, literal=True) for name in event.fields}

    def digest(self, values: Image) -> bytes:
        texts = {name: read(values) for name, read in self._readers.items()}
        return digest_of(self._pk.render(texts), self._sk.render(texts))

    def digests(self, chunk: Chunk) -> list[bytes]:
        """Identity of each row, by the columns of the key alone."""
        texts = {name: self._texts(chunk, name) for name in self._readers}
        pks, sks = (_rendered(template, texts, chunk.rows) for template in (self._pk, self._sk))
        return [digest_of(pk, sk) for pk, sk in zip(pks, sks, strict=True)]

    def _texts(self, chunk: Chunk, name: str) -> Sequence[str]:
        kind, cells = chunk.columns.get(name, ("", ()))
        if kind == "S" and None not in cells:
            return cells
        read = self._readers[name]
        return [read({} if value is None else {name: value}) for value in chunk.typed(name)]


def _rendered(template: KeyTemplate, texts: Mapping[str, Sequence[str]], rows: int) -> list[str]:
    columns = [texts[name] for name in template.fields]
    return [template.render_texts(list(each)) for each in (zip(*columns, strict=True) if columns else [()] * rows)]


def digest_of(pk: str, sk: str) -> bytes:
    # Rendered keys hold no control characters.
    return hashlib.blake2b(f"{pk}\0{sk}".encode(), digest_size=DIGEST_BYTES).digest()
