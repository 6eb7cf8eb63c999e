"""Price of pages and of an item per group by the number of groups."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count, islice
from typing import Any, Final

from benchmarks.databases import TABLE, MemoryDatabase, since, units
from benchmarks.designs.ours import SHARD, PackedEvents, PagedOnThree
from benchmarks.queue_and_stream import Stream, chunks
from demo.blog.traffic import View
from dynamodb_counters import Aggregate, Counters
from dynamodb_counters._fold.item_layout import ItemLayout
from dynamodb_counters._fold.page_layout import BITS, Page, hash_of, is_full
from dynamodb_counters._fold.records import padded
from dynamodb_counters._items.item_sizes import item_bytes
from dynamodb_counters._items.table_schema import LEVEL, PAGE_PREFIX, SK, TYPE, VERSION
from dynamodb_counters._items.watermarks import Watermark
from dynamodb_counters._pages import PageLevels
from dynamodb_counters._reads.page_reads import walk
from simulation.clock import EPOCH

_VIEWS: Final = PagedOnThree.views
_EVENTS: Final = 6_400
"""Events in a batch: 100 chunks of 64."""

_FEWEST: Final = 64
_BATCHES: Final = 3
_WRITTEN: Final = 10_000
"""The most groups that come by their events; more are put into pages as these would hold them."""

_SHOWN: Final = 100_000
"""The most groups that are put: where there are more, the first pages have them, and get their share of the events."""


def measure(numbers: tuple[int, ...]) -> dict[str, dict[str, float]]:
    """Units per event of batches over so many groups, all equally likely, and what pages and their reads take."""
    return {str(number): _of(number) for number in numbers}


def _of(number: int) -> dict[str, float]:
    zeros = ((number - 1) // _SHOWN).bit_length()
    urls = list(_urls(number, zeros))
    events = max(_FEWEST, _EVENTS * len(urls) // number)
    dice = random.Random(number)
    batches = [dice.choices(urls, k=events) for _ in range(_BATCHES)]
    counting = {"items": _Counting(replace(_VIEWS, pages=False)), "pages": _Counting(_VIEWS)}
    for each in counting.values():
        if number <= _WRITTEN:
            each.count(urls)
        elif each.declared.pages:
            each.put_pages(urls, zeros)
    found = {name: sum(map(each.count, batches)) / (_BATCHES * events) for name, each in counting.items()}
    return {**found, **counting["pages"].sizes(len(urls)), **counting["pages"].reads(urls, number / len(urls))}


def _urls(number: int, zeros: int) -> Iterator[str]:
    """Those of so many groups whose hash begins with so many zeros."""
    for index in range(number):
        url = f"/blog/articles/{index:08d}"
        if not zeros or hash_of(_VIEWS._sk_template.render_texts([url])) >> BITS - zeros == 0:
            yield url


class _Counting:
    """An aggregate over packed views, counted a batch after the other by one process."""

    def __init__(self, declared: Aggregate) -> None:
        self.declared = declared
        self.database = MemoryDatabase()

        class Design(PackedEvents):
            declarations = (declared,)

        self._design = Design(self.database)
        self._stream = Stream(self.database, TABLE, _EVENTS)
        self._clients = count()

    def count(self, urls: Sequence[str]) -> float:
        """Count a view of each; the units of that, without those of accepting them."""
        time = datetime.fromtimestamp(EPOCH, UTC).isoformat()
        for part in chunks([View(url, time, f"c{next(self._clients)}") for url in urls], self._design.events_per_call):
            self._design.accept(part)
        accepted = copy(self.database.usage)
        self._stream.drain(self._design.aggregate)
        return units(since(accepted, self.database.usage))

    def put_pages(self, urls: Sequence[str], zeros: int) -> None:
        """Put groups into pages that have split at a write unit, as they do where updates are small."""
        layout, mark, number = ItemLayout(self.declared).pages, Watermark(SHARD), {"N": "12"}
        assert layout is not None
        image: dict[str, Any] = {name: {"S": text} for name, text in layout.key(Page(self.declared.pk)).items()}
        image |= {TYPE: {"S": self.declared.name}, LEVEL: {"N": str(zeros)}, VERSION: {"N": "12"}}
        [image[mark.name]] = mark.values(padded("1"))
        image |= {name: number for url in urls for name in layout.added([url], {})}
        levels, left = PageLevels.of_table(self._design.table), [image]
        while left:
            image = left.pop()
            if is_full(image):
                left += layout.halves(image)
                continue
            self.database.client.put_item(TableName=TABLE, Item=image)
            page = layout.page_of(image)
            assert page is not None
            levels.learn(self.declared.name, page, image)
        self._stream.drain(lambda _: None)

    def sizes(self, groups: int) -> dict[str, float]:
        items = self.database.items(TABLE)
        sizes = [item_bytes(item) for item in items if item[SK]["S"].startswith(PAGE_PREFIX)]
        return {"groups_per_page": groups / len(sizes), "bytes_per_group": sum(sizes) / groups, "largest": max(sizes)}

    def reads(self, urls: Sequence[str], shares: float) -> dict[str, float]:
        """Units of reading a group by a process that has read others, and again; requests of a listing of all."""
        counters = Counters(TABLE, client=self.database.client, clock=self.database.clock)
        dice, found = random.Random(1), {}
        counters.get_many([(self.declared, {"url": url}) for url in dice.choices(urls, k=1_000)])
        some = dice.choices(urls, k=200)
        for name in ("page_not_known", "page_known"):
            before = copy(self.database.usage)
            for url in some:
                counters.get(self.declared, url=url)
            found[name] = since(before, self.database.usage).reads / len(some)
        before = copy(self.database.usage)
        listed = walk(self._design.table, self.declared, {}, consistent=False)
        assert sum(1 for _ in islice(listed, len(urls))) == len(urls)
        return {**found, "listing_requests": shares * since(before, self.database.usage).calls}
