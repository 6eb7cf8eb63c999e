"""Which groups are asked for: one, all that have some fields, or the buckets of a window's span."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dynamodb_counters._declarations import Declaration, Window
from dynamodb_counters._declarations.groups import typed_key
from dynamodb_counters._fold.expiry import begin_of
from dynamodb_counters._fold.item_layout import GroupKey, ItemLayout, group_items, group_of_item
from dynamodb_counters._items.decimals import Number
from dynamodb_counters._items.derived_fields import parts_of, tier_of
from dynamodb_counters._items.escaping import LAST_CHARACTER
from dynamodb_counters._items.table_schema import PAGE_PREFIX, PK, TYPE
from dynamodb_counters._reads.group_reads import sort_key_range
from dynamodb_counters._reads.table_reads import Item, query
from dynamodb_counters._reads.window_counts import add_up
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.intervals import Interval, Span, plan_queries
from dynamodb_counters._timeline.tiers import TOTAL
from dynamodb_counters.errors import InvalidArgumentError


@dataclass(frozen=True)
class Asked:
    """Groups of a generation whose fields have these texts, and that lie in an interval."""

    declaration: Declaration
    texts: Mapping[str, str]
    interval: Interval | None = None
    layout: ItemLayout = field(init=False)
    spans: Mapping[tuple[str, int], Span] = field(init=False, default_factory=dict)
    """Of a window: which part of which bucket counts a moment."""

    def __post_init__(self) -> None:
        declared = self.declaration
        object.__setattr__(self, "layout", ItemLayout(declared))
        if isinstance(declared, Window):
            if self.interval is None:
                raise InvalidArgumentError("start", None, f"a start and an end: {declared.name!r} counts over time")
            spans = plan_queries(declared._kept_tiers, self.interval)
            each = {(one.tier.letter, at): one for one in spans for at in range(one.buckets[0], one.buckets[1] + 1)}
            object.__setattr__(self, "spans", each)
        needed = [name for name in declared._pk_template.fields if name in declared.fields]
        if missing := [name for name in needed if name not in self.texts]:
            raise InvalidArgumentError("values", dict(self.texts), f"values for {', '.join(missing)}")

    @property
    def is_one(self) -> bool:
        return not self.spans and self.texts.keys() >= set(self.declaration.fields)

    def holds(self, group: GroupKey) -> bool:
        fields = self.declaration.fields
        if any(self.texts.get(name, text) != text for name, text in zip(fields, group, strict=False)):
            return False
        if self.spans:
            return group[-2:] in self.spans
        begin = None if self.interval is None else begin_of(self.declaration, group)
        return begin is None or self.interval is None or self.interval.start <= begin < self.interval.end

    def counted(self, group: GroupKey, numbers: Mapping[str, Number]) -> dict[str, Number]:
        """The part of a group's numbers that is asked for."""
        if self.spans:
            numbers = {TOTAL: add_up(self.spans[group[-2:]], [(group[-1], numbers)])}
        return {name: number for name, number in numbers.items() if number}

    def groups(self, table: Table) -> Iterator[GroupKey]:
        """Those that are there now; one that is named alone may not be."""
        fixed = [self.texts[name] for name in self.declaration.fields if name in self.texts]
        if self.is_one:
            yield tuple(fixed)
        elif self.spans:
            yield from ((*fixed, *place) for place in self.spans)
        else:
            for item in group_images(table, self.declaration, self.texts):
                for one in group_items(self.declaration, item):
                    group = group_of_item(self.declaration, one)
                    if group is not None and self.holds(group):
                        yield group

    @property
    def plain(self) -> dict[str, str]:
        """The attributes of the source that are known as they are."""
        return {name: text for name, text in self.texts.items() if parts_of(name) == (name, "", None)}

    def time(self) -> str | None:
        """The attribute with the time that the groups are of."""
        if isinstance(self.declaration, Window):
            return self.declaration.time
        return next((parts_of(name)[0] for name in self.declaration.fields if tier_of(name)), None)

    def span(self) -> tuple[float, float] | None:
        """In which times all lies that counts in the groups, if they say so."""
        if self.interval is not None:
            return self.interval.start, self.interval.end
        for name, text in self.texts.items():
            if (tier := tier_of(name)) is not None:
                bucket = tier.parse(text)
                return tier.start(bucket), tier.end(bucket)
        return None


def group_images(table: Table, over: Declaration, texts: Mapping[str, str]) -> Iterator[Item]:
    """The items of the groups of one partition, or their pages."""
    key = typed_key({PK: over._pk_template.render(texts), "sk": ""})[PK]["S"]
    if getattr(over, "pages", False):
        prefix = f"{PAGE_PREFIX}{over.name}#"
        ranges = [(f"{key}#~{digit:x}", (prefix, prefix + LAST_CHARACTER)) for digit in range(16)]
    else:
        ranges = [(key, sort_key_range([over]))] if not isinstance(over, Window) else []
    for pk, sort_keys in ranges:
        for item in query(table, pk, sort_keys, consistent=True):
            if item.get(TYPE, {}).get("S") == over.name:
                yield item
