"""Sources of declarations: events this package writes, packed or not, and items that other code writes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any, Final, cast

from dynamodb_counters._declarations import checks, event_attributes
from dynamodb_counters._declarations.checks import Fields, named_key, require
from dynamodb_counters._declarations.event_attributes import Attribute, AttributeTypes, Vocabulary
from dynamodb_counters._declarations.measures import call_text
from dynamodb_counters._items.chunks import Chunk
from dynamodb_counters._items.conditions import Condition, Image, text_reader
from dynamodb_counters._items.keys import KeyTemplate, key_template
from dynamodb_counters._items.schema import MAX_PK_BYTES, MAX_SK_BYTES, PK, SK, TTL, TYPE, is_reserved
from dynamodb_counters.errors import InvalidArgumentError

_SECOND: Final = timedelta(seconds=1)
DIGEST_BYTES: Final = 16  # Of an event: two of a billion in one bucket share a digest with a probability of 10^-21.


@dataclass(frozen=True, slots=True)
class Packed:
    """Keeps an event's occurrences in chunks, many per item, so that accepting one costs a fraction of a write unit.

    All but `chunk_bytes` and `future_tolerance`, and the event's retention, never changes: a table refuses others.

    Parameters
    ----------
    time : str
        Field of the event's key that holds its time: ISO 8601 with an offset, or epoch seconds or milliseconds.
    bucket : timedelta, optional
        Whole seconds, from 1 second to 1 day; about 10,000 events in a bucket are best. Default 10 minutes.
    parts : int, optional
        Partitions that share the events, 1 to 256: one per 1,000 write units per second. Default 1.
    partition_by : str, optional
        A field of the event's key whose text decides the part. Default: the whole key decides.
    tenant : str, optional
        A field of the event's key, each text of which has chunks of its own; reads of events name it. Default: none.
    chunk_bytes : int, optional
        About how long a chunk may become before the next one is begun, 1,024 to 131,072 bytes. Default 16,384.
    future_tolerance : timedelta or None, optional
        An event further ahead of the writer's clock is rejected; None accepts any. Default 15 minutes.
    """

    time: str
    bucket: timedelta = timedelta(minutes=10)
    parts: int = 1
    partition_by: str | None = None
    tenant: str | None = None
    chunk_bytes: int = 16_384
    future_tolerance: timedelta | None = timedelta(minutes=15)

    def __post_init__(self) -> None:
        checks.require_arguments(self)
        checks.require_attribute("time", self.time)
        bucket: Any = self.bucket
        is_fit = isinstance(bucket, timedelta) and _SECOND <= bucket <= timedelta(days=1) and not bucket % _SECOND
        require(is_fit, "bucket", bucket, "a timedelta of whole seconds, from 1 second to 1 day")
        for argument, name in (("partition_by", self.partition_by), ("tenant", self.tenant)):
            if name is not None:
                checks.require_attribute(argument, name)

    @property
    def _bucket_seconds(self) -> int:
        return self.bucket // _SECOND

    @property
    def _tenants(self) -> tuple[str, ...]:
        return () if self.tenant is None else (self.tenant,)


@dataclass(frozen=True, slots=True)
class TableKeys:
    """The attributes that a table keeps its keys and its TTL in.

    Parameters
    ----------
    partition_key : str
        The partition key, of any type.
    sort_key : str or None, optional
        The sort key, of any type. Default None: the table has none.
    ttl : str or None, optional
        When DynamoDB may delete an item, in seconds since 1970. Default None: the table has no TTL.
    """

    partition_key: str
    sort_key: str | None = None
    ttl: str | None = None

    def __post_init__(self) -> None:
        keys = {"partition_key": self.partition_key, "sort_key": self.sort_key, "ttl": self.ttl}
        names = {argument: name for argument, name in keys.items() if name is not None or argument == "partition_key"}
        for argument, name in names.items():
            require(isinstance(name, str) and name, argument, name, "an attribute name")
        if len({*names.values()}) < len(names):
            raise InvalidArgumentError("sort_key", self.sort_key, "a different attribute for each key and the TTL")


OURS: Final = TableKeys(PK, SK, TTL)  # Of the tables that this package makes.


class Keyed:
    """What has items of its own, and by which templates their keys are made."""

    pk: Any
    sk: Any
    __repr__ = call_text

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The attributes that make up its key, in their order: of what is counted, its group."""
        names = dict.fromkeys((*self._pk_template.fields, *self._sk_template.fields))
        return tuple(name for name in names if not is_reserved(name))

    @cached_property
    def _pk_template(self) -> KeyTemplate:
        return key_template(self.pk, MAX_PK_BYTES, "pk")

    @cached_property
    def _sk_template(self) -> KeyTemplate:
        return key_template(self.sk, MAX_SK_BYTES, "sk")


@dataclass(frozen=True, repr=False)
class Event(Keyed):
    """Something that happens and is counted once.

    Parameters
    ----------
    name : str
        A letter, then up to 63 letters, digits, ``-`` or ``_``; unique in a table.
    key : str or sequence of str, optional
        The event key: the attributes that make an event unique. The first one is the partition key, so put first what
        you mostly count by; with a `version`, have in it only what no correction changes.
    pk, sk : str, optional
        Key templates instead of `key`, if you care how items are named. Their fields together are the event key.
    retention : timedelta or None, optional
        How long an accepted event is remembered so that its repetition is recognized. Default None: for good.
    version : str or None, optional
        A number or string attribute: an event with a greater one replaces the one before of the same key. Not for
        packed events. Default None: the first one stands.
    packed : Packed or None, optional
        Keeps many events in an item, at a fraction of a unit each; refuses those beyond the retention. Default None.
    attributes : mapping of str to type or Attribute, optional
        Rules for its attributes; or a dataclass, TypedDict or pydantic model. An event that does not fit is rejected,
        and a declaration may name no other attribute. Events may have more. Default None: any.
    """

    name: str
    _: KW_ONLY
    key: InitVar[Fields | None] = None
    pk: str = ""
    sk: str = ""
    retention: timedelta | None = None
    version: str | None = None
    packed: Packed | None = None
    attributes: AttributeTypes | None = field(default=None, hash=False)

    def __post_init__(self, key: Fields | None) -> None:
        checks.require_arguments(self)
        fields = checks.fields_instead(self.name, "key", key, self.pk, self.sk, plain=True)
        if fields is not None:
            require(fields, "key", key, "at least one attribute")
            object.__setattr__(self, "pk", named_key(self.name, fields[:1]))
            object.__setattr__(self, "sk", named_key(self.name, fields[1:]))
        checks.require_key("pk", self.pk, plain=True)
        checks.require_key("sk", self.sk, plain=True)
        if self.attributes is not None:
            object.__setattr__(self, "attributes", event_attributes.attributes_of(self.attributes))
        self._vocabulary.require_key("pk" if key is None else "key", self._pk_template.fields)
        self._vocabulary.require_key("sk" if key is None else "key", self._sk_template.fields)
        if self.version is not None:
            checks.require_attribute("version", self.version)
            self._vocabulary.require("version", self.version, "a string or number")
        if self.packed is not None:
            self._require_packable(self.packed)

    @property
    def _declared_attributes(self) -> Mapping[str, Attribute] | None:
        return cast("Mapping[str, Attribute] | None", self.attributes)

    @property
    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema (draft 7) of an event as clients send it: of its attributes, else of its key."""
        return event_attributes.json_schema(self._declared_attributes or dict.fromkeys(self.fields, Attribute(object)))

    def _canonical(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return values with the texts that keys have for those of declared types."""
        vocabulary, attributes = self._vocabulary, self._declared_attributes or {}
        texts = {name: text for name, text in values.items() if isinstance(text, str) and name in attributes}
        return {**values, **{name: vocabulary.key_text(name, text) for name, text in texts.items()}}

    @property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary(self.name, self._declared_attributes, (*self.fields, self.version))

    def _require_packable(self, packed: Any) -> None:
        require(isinstance(packed, Packed), "packed", packed, "a Packed, or None")
        require(self.version is None, "version", self.version, "None: a packed event has no version")
        allowed = f"a field of the event's key, which makes it unique: {', '.join(self.fields) or 'none'}"
        for argument in ("time", "partition_by", "tenant"):
            name = getattr(packed, argument)
            require(name is None or name in self.fields, argument, name, allowed)
        self._vocabulary.require("time", packed.time, "a time")


@dataclass(frozen=True, slots=True)
class Direct:
    """The source of a `Counter`: calls, and no items of the table."""

    name: str = "~direct"


@dataclass(frozen=True)
class Items:
    """Items that other code writes: those whose keys match, and that satisfy a condition.

    Parameters
    ----------
    name : str
        A letter, then up to 63 letters, digits, ``-`` or ``_``; unique in a table.
    where : Condition, optional
        Their mark among the table's other items; may test fields of the keys. In the table of the counts, an item with
        the attribute ``_type`` counts only if it names that: ``Attr("_type").eq("User")``. Default: all.
    pk, sk : str, optional
        Templates of the keys, such as ``"ACCOUNT#{account}"``: only keys of this form match. The fields, which hold no
        ``#``, count like attributes, and before those of the same name. Default: any key.
    keys : TableKeys, optional
        Keys and TTL of the source table; `where` may then test its ``_…``. Default: ``pk``, ``sk`` and ``ttl``.
    """

    name: str
    _: KW_ONLY
    where: Condition | None = None
    pk: str | None = None
    sk: str | None = None
    keys: TableKeys | None = None

    def __post_init__(self) -> None:
        checks.require_arguments(self)
        if self.keys is not None and not isinstance(self.keys, TableKeys):
            raise InvalidArgumentError("keys", self.keys, "a TableKeys, or None for the keys 'pk' and 'sk'")
        checks.require_where(self.where, bookkeeping=self.keys is not None, allowed=(TYPE,))
        for argument, text in (("pk", self.pk), ("sk", self.sk)):
            if text is not None:
                checks.require_key(argument, text, plain=True)
        require(self.sk is None or self._table_keys.sort_key, "sk", self.sk, "None: keys= names no sort_key")
        if len(self.fields) < sum(len(template.fields) for _, template in self._templates):
            raise InvalidArgumentError("sk", self.sk, "fields that pk does not have")

    @property
    def _table_keys(self) -> TableKeys:
        return self.keys or OURS

    @property
    def _templates(self) -> tuple[tuple[str, KeyTemplate], ...]:
        pk = () if self.pk is None else ((self._table_keys.partition_key, key_template(self.pk, MAX_PK_BYTES, "pk")),)
        if self.sk is None or self._table_keys.sort_key is None:
            return pk
        return (*pk, (self._table_keys.sort_key, key_template(self.sk, MAX_SK_BYTES, "sk")))

    @cached_property
    def fields(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for _, template in self._templates for name in template.fields))


class EventIdentity:
    """Identities of a declaration's events, whatever else they hold."""

    def __init__(self, event: Event) -> None:
        self._pk, self._sk = event._pk_template, event._sk_template
        self._readers = {name: text_reader(name, literal=True) for name in event.fields}

    def digest(self, values: Image) -> bytes:
        texts = {name: read(values) for name, read in self._readers.items()}
        return digest_of(self._pk.render(texts), self._sk.render(texts))

    def digests(self, chunk: Chunk) -> list[bytes]:
        """Return the identity of each row, by the columns of the key alone."""
        texts, keys = {name: self._texts(chunk, name) for name in self._readers}, list[list[str]]()
        for template in (self._pk, self._sk):
            columns = [texts[name] for name in template.fields]
            rows = zip(*columns, strict=True) if columns else [()] * chunk.rows
            keys.append([template.render_texts(list(row)) for row in rows])
        return list(map(digest_of, *keys))

    def _texts(self, chunk: Chunk, name: str) -> Sequence[str]:
        kind, cells = chunk.columns.get(name, ("", ()))
        if kind == "S" and None not in cells:
            return cells
        read = self._readers[name]
        return [read({} if value is None else {name: value}) for value in chunk.typed(name)]


def digest_of(pk: str, sk: str) -> bytes:
    # Rendered keys hold no control characters.
    return hashlib.blake2b(f"{pk}\0{sk}".encode(), digest_size=DIGEST_BYTES).digest()
