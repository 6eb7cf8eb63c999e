"""Watermarks: the last record of each stream shard that an item has applied. Per item and shard; not event time.

An item pays for its watermarks in every write, so they are compact: ``_w`` and 72 bits of the shard id's digest, and
the sequence number as binary, which DynamoDB orders like the number.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dynamodb_counters._items.table_schema import SEQUENCE_DIGITS, WATERMARK_PREFIX

_DIGEST_BYTES: Final = 9


def shard_digest(shard: str) -> str:
    """Name of a shard in watermarks and checkpoints.

    >>> shard_digest("shardId-00000001414576573621-f55eea83")
    'ly2uFlpcxkp3'
    """
    return base64.urlsafe_b64encode(hashlib.sha256(shard.encode()).digest()[:_DIGEST_BYTES]).decode()


class Watermark:
    """How the items of one shard hold the watermark of one of its books.

    `book` is the name of the book, by default that of the shard. The watermarks of books `before` it refuse as well:
    they hold what was counted when there was no later book yet.
    """

    __slots__ = ("book", "guards", "name", "shard")

    def __init__(self, shard: str, book: str = "", before: Sequence[str] = ()) -> None:
        self.shard = shard
        self.book = book or shard
        self.name = WATERMARK_PREFIX + shard_digest(self.book)
        self.guards = (self.name, *(WATERMARK_PREFIX + shard_digest(name) for name in before))

    def values(self, *sequences: str) -> list[dict[str, Any]]:
        """Attributes that say that padded sequence numbers are the last applied."""
        return [{"B": packed(sequence)} for sequence in sequences]

    def of(self, item: Mapping[str, Any]) -> str:
        """The padded sequence number in an item that has the watermark; an error if it is spoiled."""
        return max(sequence_of(item[name]) for name in self.guards if name in item)


def packed(sequence: str) -> bytes:
    """A length byte and the number's bytes, so that the order of bytes is that of numbers.

    >>> packed("0000000000000000000000000000000000000258").hex()
    '020102'
    """
    number = int(sequence)
    content = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return bytes([len(content)]) + content


def sequence_of(value: Mapping[str, Any]) -> str:
    """The padded sequence number of a watermark; an error if it is none."""
    length, *content = value["B"]
    if length != len(content):
        raise ValueError(f"invalid watermark {value['B']!r:.80}: expected a length byte and as many bytes")
    return str(int.from_bytes(bytes(content), "big")).zfill(SEQUENCE_DIGITS)
