"""Sources of declarations: events this package writes, and items that other code writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, InitVar, dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any, cast

from dynamodb_counters._declarations.attribute_checks import KnownAttributes
from dynamodb_counters._declarations.checks import (
    require_attribute,
    require_duration,
    require_key,
    require_name,
    require_where,
)
from dynamodb_counters._declarations.default_keys import Fields, fields_instead, named_key
from dynamodb_counters._declarations.event_attributes import Attribute, AttributeTypes, attributes_of, json_schema
from dynamodb_counters._declarations.frozen import shown
from dynamodb_counters._declarations.packed import Packed
from dynamodb_counters._declarations.table_keys import OURS, TableKeys
from dynamodb_counters._items.conditions import Condition
from dynamodb_counters._items.key_templates import KeyTemplate, key_template
from dynamodb_counters._items.table_schema import MAX_PK_BYTES, MAX_SK_BYTES, TYPE
from dynamodb_counters.errors import InvalidArgumentError


@dataclass(frozen=True)
class Event:
    """Something that happens and is counted once.

    Parameters
    ----------
    name : str
        A letter, then up to 63 letters, digits, ``-`` or ``_``; unique in a table.
    key : str or sequence of str, optional
        The event key: the attributes that make an event unique. The first one is the partition key, so put first what
        you mostly count by; with a `version`, have in it only what no correction changes. Items are named after the
        event: ``view#{url}`` and ``view#{time}#{clientId}``.
    pk, sk : str, optional
        Key templates instead of `key`, if you care how items are named. Their fields together are the event key.
    retention : timedelta or None, optional
        How long an accepted event is remembered so that its repetition is recognized. Default None: for good.
    version : str or None, optional
        A number or string attribute by which a source corrects itself: an event with a greater version replaces the one
        before of the same key. Default None: the first one stands.
    packed : Packed or None, optional
        Keeps many events in one item, at a fraction of a write unit each. Events older than the retention are refused
        then. Default None: an item per event.
    attributes : mapping of str to type or Attribute, optional
        Rules for its attributes; or a dataclass, TypedDict or pydantic model. An event that does not fit is rejected,
        whoever sends it; a declaration may name no other attribute. Events may have more. Default None: any.

    Examples
    --------
    >>> from decimal import Decimal
    >>> from dynamodb_counters import Aggregate, Sum
    >>> sale = Event("sale", key="id", attributes={"id": str, "shop": str, "price": Decimal})
    >>> Aggregate("shops", sale, by="store", taken=Sum("price"))
    Traceback (most recent call last):
    ...
    dynamodb_counters.errors.InvalidArgumentError: invalid by='store': expected attributes of 'sale': id, shop, price
    """

    name: str
    _: KW_ONLY
    key: InitVar[Fields | None] = None
    pk: str = ""
    sk: str = ""
    retention: timedelta | None = None
    version: str | None = None
    packed: Packed | None = None
    attributes: AttributeTypes | None = field(default=None, hash=False, repr=False)

    __repr__ = shown

    def __post_init__(self, key: Fields | None) -> None:
        require_name(self.name)
        fields = fields_instead(self.name, "key", key, plain=True, pk=self.pk, sk=self.sk)
        if fields is not None:
            if not fields:
                raise InvalidArgumentError("key", key, "at least one attribute")
            object.__setattr__(self, "pk", named_key(self.name, fields[:1]))
            object.__setattr__(self, "sk", named_key(self.name, fields[1:]))
        require_key("pk", self.pk, plain=True)
        require_key("sk", self.sk, plain=True)
        require_duration("retention", self.retention)
        if self.version is not None:
            require_attribute("version", self.version)
        self._require_packable()
        if self.attributes is not None:
            object.__setattr__(self, "attributes", attributes_of(self.attributes))
        self._known.require_key("pk" if key is None else "key", self._pk_template.fields)
        self._known.require_key("sk" if key is None else "key", self._sk_template.fields)
        if self.version is not None:
            self._known.require("version", self.version, "a string or number")
        if self.packed is not None:
            self._known.require("time", self.packed.time, "a time")

    @property
    def _declared_attributes(self) -> Mapping[str, Attribute] | None:
        """The attributes that are declared, by name; None if any are allowed."""
        return cast("Mapping[str, Attribute] | None", self.attributes)

    @property
    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema (draft 7) of an event as clients send it: of its attributes, else of its key.

        Examples
        --------
        >>> Event("view", key=("url", "time")).json_schema["required"]
        ['url', 'time']
        """
        known = self._declared_attributes
        return json_schema(dict.fromkeys(self.fields, Attribute(object)) if known is None else known)

    def _canonical(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values with the texts that keys have for those of declared types."""
        known, declared = self._known, self._declared_attributes or {}
        return {
            name: known.key_text(name, value) if isinstance(value, str) and name in declared else value
            for name, value in values.items()
        }

    @property
    def _known(self) -> KnownAttributes:
        """Attributes that declarations over it may name."""
        return KnownAttributes(self.name, self._declared_attributes, (*self.fields, self.version))

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The attributes of its key."""
        return tuple(dict.fromkeys((*self._pk_template.fields, *self._sk_template.fields)))

    @cached_property
    def _pk_template(self) -> KeyTemplate:
        return key_template(self.pk, MAX_PK_BYTES, "pk")

    @cached_property
    def _sk_template(self) -> KeyTemplate:
        return key_template(self.sk, MAX_SK_BYTES, "sk")

    def _require_packable(self) -> None:
        if self.packed is None:
            return
        if not isinstance(self.packed, Packed):
            raise InvalidArgumentError("packed", self.packed, "a Packed, or None")
        for argument in ("time", "partition_by", "tenant"):
            name = getattr(self.packed, argument)
            if name is not None and name not in self.fields:
                allowed = f"a field of the event's key, which makes it unique: {', '.join(self.fields) or 'none'}"
                raise InvalidArgumentError(argument, name, allowed)


@dataclass(frozen=True)
class Items:
    """Items that other code writes: those whose keys match, and that satisfy a condition.

    They lie in the table of the counts, or in a source table of their own (``source_table`` of the `StreamAggregator`).

    Parameters
    ----------
    name : str
        A letter, then up to 63 letters, digits, ``-`` or ``_``; unique in a table.
    where : Condition, optional
        Their mark among the table's other items, such as ``Attr("user_submitted_path").exists()``; may test
        fields of the keys. In the table of the counts, an item with the attribute ``_type`` counts only if it names
        that: ``Attr("_type").eq("User")``. Default: all whose keys match.
    pk, sk : str, optional
        Templates of the partition and the sort key, such as ``"ACCOUNT#{account}"``: only keys of this form match. The
        fields, which hold no ``#``, count like attributes, as text and as number; they come before attributes of the
        same name. Default: any key.
    keys : TableKeys, optional
        Names of the keys and the TTL of the source table; `where` may then test attributes that start with ``_``.
        Default: ``pk``, ``sk`` and ``ttl``.

    Examples
    --------
    >>> from dynamodb_counters import Attr, TableKeys
    >>> Items("path", where=Attr("user_submitted_path").exists()).name
    'path'
    >>> Items("order", pk="CUSTOMER#{customer}", sk="ORDER#{order}", keys=TableKeys("id", "range")).fields
    ('customer', 'order')
    """

    name: str
    _: KW_ONLY
    where: Condition | None = None
    pk: str | None = None
    sk: str | None = None
    keys: TableKeys | None = None

    def __post_init__(self) -> None:
        require_name(self.name, generations=True)
        if self.keys is not None and not isinstance(self.keys, TableKeys):
            raise InvalidArgumentError("keys", self.keys, "a TableKeys, or None for the keys 'pk' and 'sk'")
        require_where(self.where, bookkeeping=self.keys is not None, allowed=(TYPE,))
        for argument, text in (("pk", self.pk), ("sk", self.sk)):
            if text is not None:
                require_key(argument, text, plain=True)
        if self.sk is not None and self._table_keys.sort_key is None:
            raise InvalidArgumentError("sk", self.sk, "None: keys= names no sort_key")
        if len(self.fields) < sum(len(template.fields) for _, template in self._templates):
            raise InvalidArgumentError("sk", self.sk, "fields that pk does not have")

    @property
    def _table_keys(self) -> TableKeys:
        return self.keys or OURS

    @property
    def _templates(self) -> tuple[tuple[str, KeyTemplate], ...]:
        """The key attributes that must have a form, each with it."""
        pk = () if self.pk is None else ((self._table_keys.partition_key, key_template(self.pk, MAX_PK_BYTES, "pk")),)
        if self.sk is None or self._table_keys.sort_key is None:
            return pk
        return (*pk, (self._table_keys.sort_key, key_template(self.sk, MAX_SK_BYTES, "sk")))

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The fields of its keys."""
        return tuple(dict.fromkeys(name for _, template in self._templates for name in template.fields))
