"""Groups in pages by the unit of time, such as a page per day: one Query over the pages of a span."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dynamodb_counters._declarations import Aggregate
from dynamodb_counters._declarations.groups import values_of
from dynamodb_counters._fold.item_layout import ItemLayout
from dynamodb_counters._fold.page_layout import Page
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.decimals import Number, read_number
from dynamodb_counters._items.table_schema import PK, SK
from dynamodb_counters._reads.page_reads import walk
from dynamodb_counters._reads.table_reads import query
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.intervals import Interval


def numbers_by_unit(
    table: Table, aggregate: Aggregate, values: Mapping[str, object], span: Interval, *, consistent: bool
) -> Iterator[tuple[int, dict[str, Number]]]:
    """Each unit of a span that is there, with what its groups count by the text of their last field."""
    layout, field, tier = ItemLayout(aggregate).pages, aggregate._listed_by[-1], aggregate._tier
    assert layout is not None
    pk = aggregate._pk_template.render(values)
    ends = [tier.text(tier.locate(moment)[0]) for moment in (span.start, span.end - 1)]
    first, last = (layout.key(Page(layout.shelf(pk, [text]))) for text in ends)
    for item in query(table, first[PK], (first[SK], last[SK]), consistent=consistent):
        page, found = layout.page_of(item), layout.groups(item)
        if page is None or page.first:
            continue
        if page.level:
            shelf = {**values, field: page.shared}
            found = [group for _, group in walk(table, aggregate, shelf, consistent=consistent)]
        yield tier.parse(page.shared), numbers_of(aggregate, found)


def numbers_of(aggregate: Aggregate, groups: list[Image]) -> dict[str, Number]:
    """The counts of groups by the text of their last field; groups that count nothing are left out."""
    [measure], field = aggregate.measures, aggregate.fields[-1]
    found = {(values_of(aggregate, group) or {})[field]: read_number(group, measure) for group in groups}
    return {text: number for text, number in found.items() if number}
