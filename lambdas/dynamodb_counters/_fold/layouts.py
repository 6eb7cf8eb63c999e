"""Where the numbers of a group lie, its own item or a page of many; and the requests that add to them. Pure.

A page has one watermark per shard. A group lies in the page whose first bits its hash begins with, as many as the
page's level. A page that splits keeps the groups whose next bit is 0; the others go to a new page, with a copy of all
watermarks. The name of the attribute that holds a group's first number is the group's text; other numbers have a letter
before it, and long texts a digest.
"""

from __future__ import annotations

import base64
import hashlib
import string
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final, TypeAlias

from dynamodb_counters._assumptions import GROUP_KEPT, WIDE_MARGIN
from dynamodb_counters._declarations import BUCKET_FIELD, TIER_FIELD, WRITE_SHARD_FIELD, Declaration, Window
from dynamodb_counters._declarations.aggregates import PARTITION_MARK, Aggregate
from dynamodb_counters._declarations.groups import Key, typed_key, values_of
from dynamodb_counters._items import schema
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.conversions import Number, escape, typed_number, unescape
from dynamodb_counters._items.keys import is_hashed, scale_of, tier_of
from dynamodb_counters._items.schema import LEVEL, PK, SK, TYPE, VERSION, WRITE_UNIT_BYTES
from dynamodb_counters._tiers import BY_LETTER, TOTAL, Tier
from dynamodb_counters.errors import InvalidArgumentError, MalformedImageError
from dynamodb_counters.exactly_once import Bound, update_request

BITS: Final = 64  # Of a group's hash.
LEAST_BYTES: Final = WRITE_UNIT_BYTES // 2  # That a page has for groups, however many watermarks it has.
_UNSHORTENED: Final = 16  # Longest text of a group that is repeated for each number.
_DIGEST, _MARK, _SHELF = "~", "=", "\0"
_CODES: Final = 36**2  # Units of time that two digits distinguish, in a page of fewer.
_DIGITS: Final = string.digits + string.ascii_lowercase
_KEPT: Final = GROUP_KEPT - WIDE_MARGIN  # Seconds after its closing time for which a group is surely there.
_MOST_ADDED: Final = 200  # Attributes of a page that one request changes: its expression has at most 4 KB.
_MOST_CHARACTERS: Final = 3 * WRITE_UNIT_BYTES  # Of their names: to split the page after the update costs more.
MAX_GROUP_BYTES: Final = 8192
"""Longest texts of a group together, in UTF-8 bytes. The item of a hashed key stores them, so that every update pays
for them, and 400 KB must hold them and any number of watermarks."""
SHORT: Final = MAX_GROUP_BYTES // 4  # Characters that fit whatever they are: none takes more than four bytes.
UNDATED: Final = "the record lacks ApproximateCreationDateTime, which distinguishes late from early"

GroupKey: TypeAlias = tuple[Any, ...]
"""Texts of the group's fields; a window's end in the letter of the tier and the number of the bucket."""
GroupRef: TypeAlias = tuple[str, GroupKey]  # Names a group before its key is rendered: declaration name, group key.


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its shelf, the first hash that lies in it, and its level."""

    # What groups that share pages have in common: their partition key, and after a NUL the texts of their first sort
    # key fields, if they share these, too.
    shelf: str
    first: int = 0
    level: int = 0
    # Whether it is not there, though the page that it has split off from says so: the next update creates it.
    is_lost: bool = False

    @property
    def pk(self) -> str:
        """The partition key of its groups' items, if they had some."""
        return self.shelf.partition(_SHELF)[0]

    @property
    def shared(self) -> str:
        """The beginning of their sort keys that they share, escaped; "" if they share none."""
        return self.shelf.partition(_SHELF)[2]

    @property
    def end(self) -> int:
        return self.first + (1 << BITS - self.level)


class PageLayout:
    def __init__(self, aggregate: Aggregate) -> None:
        self.name, self._sk, self._shelved = aggregate.name, aggregate._sk_template, aggregate._shelved
        self._prefix = f"{schema.PAGE_PREFIX}{self.name}#"
        self._own_indexes = [aggregate.fields.index(field) for field in self._sk.fields[self._shelved :]]
        self._longest, self._unit = aggregate._longest, tier_of(aggregate.fields[-1]) if aggregate._longest else None
        # A page never splits: what counts it looks at all groups together; or it has a group per digit.
        digits = [*map(scale_of, self._sk.fields[self._shelved :])]
        self.is_whole = self._unit is not None or (len(digits) == 1 and digits[0] is not None)
        self._marks = {aggregate._attributes[0]: _MARK}
        for index, name in enumerate(aggregate._attributes):
            self._marks.setdefault(name, chr(ord("a") + index) + _MARK)

    def key(self, page: Page) -> dict[str, str]:
        digits = f"{page.first:0{BITS // 4}x}"
        sk = "#".join(filter(None, [page.shared, digits.rstrip("0") or "0"]))
        return {PK: f"{page.pk}{PARTITION_MARK}{digits[0]}", SK: self._prefix + sk}

    def shelf(self, pk: str, texts: Sequence[str]) -> str:
        return _SHELF.join([pk, "#".join(map(escape, texts[: self._shelved]))]) if self._shelved else pk

    def _text(self, group: Sequence[str]) -> str:
        if self._unit is not None:
            # Two digits: its number since 1970 modulo 1,296 in base 36.
            high, low = divmod(self._unit.parse(group[-1]) % _CODES, len(_DIGITS))
            return _DIGITS[high] + _DIGITS[low]
        return "#".join([escape(group[index]) for index in self._own_indexes])

    def page_of(self, image: Image) -> Page | None:
        sk = image[SK]["S"]
        if not sk.startswith(self._prefix):
            return None
        shared, _, digits = sk.removeprefix(self._prefix).rpartition("#")
        pk = image[PK]["S"][: -len(PARTITION_MARK) - 1]
        return Page(f"{pk}{_SHELF}{shared}" if shared else pk, int(digits.ljust(BITS // 4, "0"), 16), level_of(image))

    def added(self, group: Sequence[str], numbers: Mapping[str, Any]) -> dict[str, Any]:
        """Return a group's numbers by the names of their attributes in a page, the first one even if it is 0."""
        text = self._text(group)
        return {_MARK + text: 0, **{self._named(name, text): number for name, number in numbers.items()}}

    def group(self, image: Image, group: Sequence[str]) -> Image:
        return self._item(image, _common(image), self._text(group))

    def groups(self, image: Image, unlike: Image | None = None) -> list[Image]:
        """Return the items that the groups of a page would be; those alone that are otherwise in another image."""
        if self.page_of(image) is None:
            return [image]
        common, texts = _common(image), texts_of(image)
        if unlike is not None:
            texts = [text for text in texts if any(image.get(name) != unlike.get(name) for name in self._names(text))]
        return [self._item(image, common, text) for text in texts]

    def halves(self, image: Image) -> tuple[dict[str, Any], dict[str, Any]]:
        page = self.page_of(image)
        assert page is not None
        bit = 1 << BITS - page.level - 1
        stays, goes = dict(image), {**_common(image), **typed_key(self.key(Page(page.shelf, page.first | bit)))}
        for text in texts_of(image):
            if hash_of(self._sk.render_texts(self._sk_texts(image, text))) & bit:
                goes |= {name: stays.pop(name) for name in self._names(text) if name in stays}
        marks = {LEVEL: {"N": str(page.level + 1)}, VERSION: {"N": str(int(image.get(VERSION, {"N": "0"})["N"]) + 1)}}
        return stays | marks, goes | marks

    def _item(self, image: Image, common: Image, text: str) -> Image:
        texts = self._sk_texts(image, text)
        key = self._sk.render_texts(texts)
        fields = dict(zip(self._sk.fields, texts, strict=True)) if is_hashed(key) else {}
        numbers = {name: image[stored] for name in self._marks if (stored := self._named(name, text)) in image}
        fields |= {PK: image[PK]["S"][: -len(PARTITION_MARK) - 1], SK: key}
        return {**common, **numbers, **{name: {"S": value} for name, value in fields.items()}}

    def _sk_texts(self, image: Image, text: str) -> list[str]:
        shared = image[SK]["S"].removeprefix(self._prefix).split("#")[: self._shelved]
        if self._unit is not None:
            least = self._unit.parse(unescape(shared[-1])) - self._longest
            return [unescape(shared[-1]), self._unit.text(least + (int(text, len(_DIGITS)) - least) % _CODES)]
        return [unescape(part) for part in (*shared, *text.split("#"))]

    def _names(self, text: str) -> list[str]:
        return [self._named(name, text) for name in self._marks]

    def _named(self, name: str, text: str) -> str:
        mark = self._marks[name]
        if mark != _MARK and (len(text) > _UNSHORTENED or text.startswith(_DIGEST)):
            text = _DIGEST + base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()[:12]).decode()
        return mark + text


def digest_of(sk: str) -> str:
    """Return a group's digest, by the sort key that its item would have: groups lie in the order of digests."""
    return hashlib.sha256(sk.encode()).hexdigest()[:32]


def hash_of(sk: str) -> int:
    return int(digest_of(sk)[: BITS // 4], 16)


def level_of(image: Image) -> int:
    return int(image.get(LEVEL, {"N": "0"})["N"])


def texts_of(image: Image) -> list[str]:
    return [name[1:] for name in image if name.startswith(_MARK)]


def is_full(image: Image, least: float = 1.0) -> bool:
    """Return whether a page is to split: it takes more units than `least`, or its other attributes and some groups."""
    limit = max(least, schema.write_units(schema.item_bytes(_common(image)) + LEAST_BYTES))
    return schema.write_units(schema.item_bytes(image)) > limit and len(texts_of(image)) > 1


def is_split(old: Image | None, new: Image | None) -> bool:
    """Return whether a change of an item is half of a split, which moves groups and counts nothing."""
    if new is None or LEVEL not in new or TYPE not in new or not new[SK]["S"].startswith(schema.PAGE_PREFIX):
        return False
    # A new page that an update has created, as one that was lost is, has no update before it.
    return new.get(VERSION) != {"N": "1"} if old is None else level_of(new) > level_of(old)


def _common(image: Image) -> dict[str, Mapping[str, Any]]:
    return {name: value for name, value in image.items() if _MARK not in name[:2]}


class ItemLayout:
    def __init__(self, declaration: Declaration) -> None:
        self.declaration, self.name = declaration, declaration.name
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

    def key(self, group: GroupKey, source_shard: str) -> dict[str, str]:
        """Return the key of the item that numbers from a source shard go to; write-sharded groups have several."""
        texts = self._texts(group)
        if self._shards > 1:
            texts = (*texts, _shard_of(source_shard, self._shards))
        return self._rendered(texts)

    def address(self, group: GroupKey) -> tuple[str, int]:
        """Return where a group of pages lies: the shelf of its pages, and its hash."""
        assert self.pages is not None
        key = self._rendered(group)
        return self.pages.shelf(key[PK], [group[index] for index in self._sk_indexes]), hash_of(key[SK])

    def keys(self, group: GroupKey) -> list[Key]:
        return [typed_key(self._rendered((*self._texts(group), str(shard)))) for shard in range(self._shards)]

    def _rendered(self, texts: Sequence[str]) -> dict[str, str]:
        pk = self._pk.render_texts([texts[index] for index in self._pk_indexes])
        sk = self._sk.render_texts([texts[index] for index in self._sk_indexes])
        return {PK: pk, SK: sk}

    def values(self, group: GroupKey) -> dict[str, str]:
        """Return the text of each field; for a window also the tier and the start of the bucket."""
        return dict(zip(self._names, self._texts(group), strict=True))

    def attributes(self, group: GroupKey, key: dict[str, str]) -> dict[str, Any]:
        attributes: dict[str, Any] = {TYPE: {"S": self.name}}
        if self.ranking is not None:
            shard = _shard_of(f"{key[PK]}\0{key[SK]}", self.ranking.write_shards)
            board = self.ranking._template.render({**self.values(group), WRITE_SHARD_FIELD: shard})
            attributes[schema.LEADERBOARD] = {"S": board}
        if templates := [template for name, template in ((PK, self._pk), (SK, self._sk)) if is_hashed(key[name])]:
            # A hashed key does not show its values.
            names = {name for template in templates for name in template.fields if not schema.is_reserved(name)}
            attributes |= {name: {"S": text} for name, text in self.values(group).items() if name in names}
        if (expires_at := self.expires_at(group)) is not None:
            attributes[schema.TTL] = {"N": str(expires_at)}
        return attributes

    def images(self, item: Image, unlike: Image | None = None) -> list[Image]:
        """Return the items of the groups that an item holds: itself, or what would be those of a page."""
        return [item] if self.pages is None else self.pages.groups(item, unlike)

    def is_late(self, group: GroupKey, created: float | None) -> bool:
        """Return whether a record was created after a group's retention; MalformedImageError if it does not say."""
        if self.closing_time is None:
            return False
        if created is None:
            raise MalformedImageError(UNDATED)
        return self.closing_time(group) <= created

    def is_gone(self, group: GroupKey, now: float) -> bool:
        """Return whether an aggregate's item may have been deleted by TTL, and with it what it has counted."""
        return self.closing_time is not None and self.closing_time(group) + _KEPT <= now

    def expires_at(self, group: GroupKey) -> int | None:
        """Return the epoch second after which the item may be deleted; None if it stays."""
        if self.closing_time is not None:
            return int(self.closing_time(group) + GROUP_KEPT)
        if self._window is None or self._window.retention is None:
            return None
        return int(_bucket(*group[-2:])[1] + self._window.retention.total_seconds())

    def _texts(self, group: GroupKey) -> tuple[str, ...]:
        if self._window is None:
            return group
        *fields, letter, bucket = group
        return (*fields, letter, _bucket(letter, bucket)[0])


def require_storable_group(group: GroupKey) -> GroupKey:
    texts = [text for text in group if isinstance(text, str)]
    if (size := len("".join(texts).encode())) > MAX_GROUP_BYTES:
        starts = ", ".join(f"{text:.20}…" for text in texts)
        expected = f"expected at most {MAX_GROUP_BYTES} bytes, found {size}"
        raise MalformedImageError(f"invalid group {starts!r:.200}: {expected}")
    return group


def group_of_item(declaration: Declaration, item: Image) -> GroupKey | None:
    """Return the group of an item; None if its key does not show it, as that of another declaration."""
    try:
        if (values := values_of(declaration, item)) is None or isinstance(declaration, Aggregate):
            return None if values is None else tuple(values.values())
        place = declaration._sk_template.parse(item[SK]["S"])
        tier = BY_LETTER[place[TIER_FIELD]]
        return (*values.values(), tier.letter, tier.parse(place[BUCKET_FIELD]))
    except (LookupError, ValueError):
        return None


def closing_times(fields: Sequence[str], retention: timedelta) -> Callable[[Sequence[Any]], float]:
    """Return a function of a group: the epoch second from which on nothing counts in it, read from its key."""
    # The fold drops what was created later, so every delivery of a record is judged alike. The group's item is deleted
    # when no delivery can count in it any more: one that came after would count a member a second time.
    [(index, tier)] = [(index, tier) for index, field in enumerate(fields) if (tier := tier_of(field)) is not None]
    seconds = retention.total_seconds()
    return lambda group: _end(tier, group[index]) + seconds


def require_kept(aggregate: Aggregate, texts: Mapping[str, str], now: float) -> None:
    """Refuse a group, known as far as its texts, whose item TTL may have deleted: it would read as 0."""
    if (retention := aggregate.retention) is None:
        return
    field, tier = next((field, tier) for field in aggregate.fields if (tier := tier_of(field)) is not None)
    if field in texts and _end(tier, texts[field]) + retention.total_seconds() <= now - _KEPT:
        allowed = f"a {tier.name} whose retention, {retention}, is not over: {aggregate.name!r} keeps no other"
        raise InvalidArgumentError(field, texts[field], allowed)


def late_parts(declaration: Declaration, group: Sequence[Any], created: float) -> frozenset[str]:
    """Return the slots of a bucket in which events would be late by now, and the total if there are some."""
    if not isinstance(declaration, Window) or declaration.retention is None:
        return frozenset()
    finest, keep = declaration._kept_tiers[0], declaration.retention.total_seconds()
    tier, bucket = BY_LETTER[group[-2]], group[-1]
    moments = {slot: tier.start(bucket) + index * tier.slot_seconds for index, slot in enumerate(tier.slots)}
    late = frozenset(slot for slot, moment in moments.items() if finest.end(finest.locate(moment)[0]) + keep <= created)
    return late | {TOTAL} if late else late


@lru_cache(maxsize=4096)
def _end(tier: Tier, text: str) -> int:
    return tier.end(tier.parse(text))


@lru_cache(maxsize=1024)
def _bucket(letter: str, bucket: int) -> tuple[str, int]:
    """Return the start of a bucket as keys spell it, and its end; the groups of a batch share a few."""
    tier = BY_LETTER[letter]
    return tier.text(bucket), tier.end(bucket)


def _shard_of(text: str, write_shards: int) -> str:
    return str(zlib.crc32(text.encode()) % write_shards)


@lru_cache(maxsize=1024)
def _clauses(to_set: tuple[str, ...], to_add: tuple[str, ...], guard: str) -> str:
    sets = [f"SET {_quoted(name)} = ?" for name in to_set]
    adds = [f"SET {_quoted(name)} = {_quoted(name)} + ?" for name in to_add]
    guarded = f"({_quoted(guard)} IS MISSING OR {_quoted(guard)} < ?)"
    return " ".join([*sets, *adds, f'WHERE "{PK}" = ? AND "{SK}" = ? AND {guarded}'])


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Update:
    """Adds measures to the item of a group; `source_shard` decides which item of a write-sharded group it is."""

    def __init__(self, layout: ItemLayout, group: GroupKey, measures: Mapping[str, Number], source_shard: str) -> None:
        self.key = layout.key(group, source_shard)
        self._added = {name: typed_number(number) for name, number in measures.items() if number}
        self.attributes: dict[str, Mapping[str, Any]] = layout.attributes(group, self.key)
        self.requests = 1.0
        if layout.ranking is not None:
            # Only a repair treats the score apart from its measure.
            score = measures.get(schema.SCORE, measures.get(layout.ranking.measure, 0))
            self._added[schema.SCORE] = typed_number(score)

    def request(self, table_name: str, bound: Bound | None = None) -> dict[str, Any]:
        """Return arguments of UpdateItem, or of ``Update`` in a transaction; with a bound, if a watermark is below."""
        key, is_common = typed_key(self.key), not isinstance(self, PageUpdate)
        return update_request(table_name, key, self.attributes, self._added, bound, is_common=is_common)

    def statement(self, table_name: str, bound: Bound) -> dict[str, Any]:
        """Return the same update in PartiQL, which refuses an item that lacks one of the numbers, or is not there."""
        watermark, below = bound
        clauses = _clauses(tuple(self.attributes), tuple(self._added), watermark)
        return {
            "Statement": f"UPDATE {_quoted(table_name)} {clauses}",
            "Parameters": [*self.attributes.values(), *self._added.values(), *typed_key(self.key).values(), below],
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }


class PageUpdate(Update):
    """Adds measures to groups in their page, on condition that it is at the level that is known of it."""

    def __init__(self, layout: ItemLayout, page: Page, groups: Mapping[GroupKey, Mapping[str, Number] | None]) -> None:
        assert layout.pages is not None
        self.key, self._page = layout.pages.key(page), page
        added: dict[str, Number] = {VERSION: 1}
        for group, measures in groups.items():
            # Not even 0 is added to a group that can take nothing.
            if measures is not None:
                added |= layout.pages.added(group, measures)
        # A group's first number is there even if it is 0: its name is the group's text.
        self._added = {name: typed_number(number) for name, number in added.items()}
        self.added: Mapping[str, Number] = added
        # All that a page has that never splits fits into one.
        requests = max(len(added) / _MOST_ADDED, sum(map(len, added)) / _MOST_CHARACTERS)
        self.requests = 1.0 if layout.pages.is_whole else requests
        # All groups of a page agree in these.
        self.attributes = layout.attributes(next(iter(groups)), {**self.key, PK: page.pk})
        if page.is_lost:
            self.attributes[LEVEL] = {"N": str(page.level)}

    def request(self, table_name: str, bound: Bound | None = None) -> dict[str, Any]:
        missing, same, level = "attribute_not_exists(#level)", "#level = :level", self._page.level
        own = f"({missing} OR {same})" if self._page.is_lost else same if level else missing
        values = {":level": {"N": str(level)}} if level else {}
        return schema.conditional(super().request(table_name, bound), own, {"#level": LEVEL}, values)
