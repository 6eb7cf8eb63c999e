"""Where a declaration's groups are stored, and until when: the keys and the bookkeeping of their items, and back."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final, TypeAlias

from dynamodb_counters._assumptions import GROUP_KEPT, WIDE_MARGIN
from dynamodb_counters._declarations import BUCKET_FIELD, TIER_FIELD, WRITE_SHARD_FIELD, Aggregate, Declaration, Window
from dynamodb_counters._declarations.groups import Key, typed_key, values_of
from dynamodb_counters._fold.page_layout import PageLayout, hash_of
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.derived_fields import tier_of
from dynamodb_counters._items.key_templates import HASH_MARKER, is_hashed
from dynamodb_counters._items.table_schema import LEADERBOARD, PK, SK, TTL, TYPE, is_reserved
from dynamodb_counters._timeline.tiers import BY_LETTER, TOTAL, Tier
from dynamodb_counters.errors import InvalidArgumentError, MalformedImageError

_KEPT: Final = GROUP_KEPT - WIDE_MARGIN
"""For how long after its closing time a group is surely there, in seconds."""

UNDATED: Final = "the record lacks ApproximateCreationDateTime, which distinguishes late from early"

GroupKey: TypeAlias = tuple[Any, ...]
"""Texts of the group's fields; a window's end in the letter of the tier and the number of the bucket."""

GroupRef: TypeAlias = tuple[str, GroupKey]
"""Identifies a group before its key is rendered: declaration name and group key."""


class ItemLayout:
    def __init__(self, declaration: Declaration) -> None:
        self.declaration = declaration
        self.name = declaration.name
        self._pk, self._sk = declaration._pk_template, declaration._sk_template
        self._window = declaration if isinstance(declaration, Window) else None
        self.ranking = declaration.ranking if isinstance(declaration, Aggregate) else None
        self._names = (*declaration.fields, *((TIER_FIELD, BUCKET_FIELD) if self._window else ()))
        self._shards = 1 if isinstance(declaration, Window) else declaration.write_shards
        self.pages = PageLayout(declaration) if isinstance(declaration, Aggregate) and declaration.pages else None
        self.closing_time: Callable[[GroupKey], float] | None = None
        """From when on nothing counts in a group of an aggregate with a retention, in seconds since 1970."""
        if isinstance(declaration, Aggregate) and declaration.retention is not None:
            self.closing_time = closing_times(declaration.fields, declaration.retention)
        names = (*self._names, WRITE_SHARD_FIELD)
        self._pk_indexes = [names.index(field) for field in self._pk.fields]
        self._sk_indexes = [names.index(field) for field in self._sk.fields]
        self._only_sk = self._sk.prefix if not self._sk_indexes else None

    def key(self, group: GroupKey, source_shard: str) -> dict[str, str]:
        """Key of the item that numbers from a source shard go to; only write-sharded groups have several."""
        texts = self._texts(group)
        if self._shards > 1:
            texts = (*texts, _shard_of(source_shard, self._shards))
        return self._rendered(texts)

    def address(self, group: GroupKey) -> tuple[str, int]:
        """Where a group of pages lies: the shelf of its pages, and its hash."""
        assert self.pages is not None
        key = self._rendered(group)
        return self.pages.shelf(key[PK], [group[index] for index in self._sk_indexes]), hash_of(key[SK])

    def keys(self, group: GroupKey) -> list[Key]:
        texts = self._texts(group)
        return [typed_key(self._rendered((*texts, str(shard)))) for shard in range(self._shards)]

    def _rendered(self, texts: Sequence[str]) -> dict[str, str]:
        pk = self._pk.render_texts([texts[index] for index in self._pk_indexes])
        sk = self._only_sk or self._sk.render_texts([texts[index] for index in self._sk_indexes])
        return {PK: pk, SK: sk}

    def values(self, group: GroupKey) -> dict[str, str]:
        """Text of each field; for a window also the tier and the start of the bucket."""
        return dict(zip(self._names, self._texts(group), strict=True))

    def attributes(self, group: GroupKey, key: dict[str, str]) -> dict[str, Any]:
        """Attributes of a group's item besides its numbers and bookkeeping."""
        found: dict[str, Any] = {TYPE: {"S": self.name}}
        if self.ranking is not None:
            shard = _shard_of(f"{key[PK]}\0{key[SK]}", self.ranking.write_shards)
            board = self.ranking._template.render({**self.values(group), WRITE_SHARD_FIELD: shard})
            found[LEADERBOARD] = {"S": board}
        if HASH_MARKER in key[PK] or HASH_MARKER in key[SK]:
            # A hashed key does not show its values.
            templates = [template for name, template in ((PK, self._pk), (SK, self._sk)) if is_hashed(key[name])]
            names = {name for template in templates for name in template.fields if not is_reserved(name)}
            found |= {name: {"S": text} for name, text in self.values(group).items() if name in names}
        expires_at = self.expires_at(group)
        if expires_at is not None:
            found[TTL] = {"N": str(expires_at)}
        return found

    def images(self, item: Image, unlike: Image | None = None) -> list[Image]:
        """The items of the groups that an item holds: itself, or what would be those of a page."""
        return [item] if self.pages is None else self.pages.groups(item, unlike)

    def is_late(self, group: GroupKey, created: float | None) -> bool:
        """Whether a record was created after a group's retention; MalformedImageError if it does not say."""
        if self.closing_time is None:
            return False
        if created is None:
            raise MalformedImageError(UNDATED)
        return self.closing_time(group) <= created

    def is_gone(self, group: GroupKey, now: float) -> bool:
        """Whether an aggregate's item may have been deleted by TTL, and with it what it has counted."""
        return self.closing_time is not None and self.closing_time(group) + _KEPT <= now

    def expires_at(self, group: GroupKey) -> int | None:
        """Epoch second after which the item may be deleted; None if it is kept."""
        if self.closing_time is not None:
            return int(self.closing_time(group) + GROUP_KEPT)
        if self._window is None or self._window.retention is None:
            return None
        letter, bucket = group[-2:]
        return int(_bucket(letter, bucket)[1] + self._window.retention.total_seconds())

    def _texts(self, group: GroupKey) -> tuple[str, ...]:
        if self._window is None:
            return group
        *fields, letter, bucket = group
        return (*fields, letter, _bucket(letter, bucket)[0])


def group_of_item(declaration: Declaration, item: Image) -> GroupKey | None:
    """The group of an item; None if its key does not show it, as that of another declaration."""
    try:
        values = values_of(declaration, item)
        if values is None or isinstance(declaration, Aggregate):
            return None if values is None else tuple(values.values())
        place = declaration._sk_template.parse(item[SK]["S"])
        tier = BY_LETTER[place[TIER_FIELD]]
        return (*values.values(), tier.letter, tier.parse(place[BUCKET_FIELD]))
    except (LookupError, ValueError):
        return None


def closing_times(fields: Sequence[str], retention: timedelta) -> Callable[[Sequence[Any]], float]:
    """A function that returns the epoch second from which on nothing counts in a group, read from its key.

    The fold drops what was created later, so every delivery of a record is judged alike. The group's item is deleted
    when no delivery can count in it any more: one that came after would count a member a second time.
    """
    [(index, tier)] = [(index, tier) for index, field in enumerate(fields) if (tier := tier_of(field)) is not None]
    seconds = retention.total_seconds()
    return lambda group: _end(tier, group[index]) + seconds


def require_kept(aggregate: Aggregate, texts: Mapping[str, str], now: float) -> None:
    """Refuse a group, known as far as its texts, whose item TTL may have deleted: it would read as 0."""
    retention, name = aggregate.retention, aggregate.name
    if retention is None:
        return
    field, tier = next((field, tier) for field in aggregate.fields if (tier := tier_of(field)) is not None)
    if field in texts and _end(tier, texts[field]) + retention.total_seconds() <= now - _KEPT:
        allowed = f"a {tier.name} whose retention, {retention}, is not over: {name!r} keeps no other"
        raise InvalidArgumentError(field, texts[field], allowed)


def late_parts(declaration: Declaration, group: Sequence[Any], created: float) -> frozenset[str]:
    """Events counted in a bucket of a window that would be late by now: its finest buckets decide."""
    if not isinstance(declaration, Window) or declaration.retention is None:
        return frozenset()
    finest, keep = declaration._kept_tiers[0], declaration.retention.total_seconds()
    tier = BY_LETTER[group[-2]]
    start = tier.start(group[-1])
    moments = {slot: start + index * tier.slot_seconds for index, slot in enumerate(tier.slots)}
    late = frozenset(slot for slot, moment in moments.items() if finest.end(finest.locate(moment)[0]) + keep <= created)
    return late | {TOTAL} if late else late


@lru_cache(maxsize=4096)
def _end(tier: Tier, text: str) -> int:
    return tier.end(tier.parse(text))


@lru_cache(maxsize=1024)
def _bucket(letter: str, bucket: int) -> tuple[str, int]:
    """The start of a bucket as keys spell it, and its end; the groups of a batch share a few."""
    tier = BY_LETTER[letter]
    return tier.text(bucket), tier.end(bucket)


def _shard_of(text: str, write_shards: int) -> str:
    return str(zlib.crc32(text.encode()) % write_shards)
