"""Splits: a page that has grown too large becomes two, in one transaction, each with all watermarks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._declarations.groups import Key, typed_key
from dynamodb_counters._fold.item_layout import GroupKey, ItemLayout
from dynamodb_counters._fold.page_layout import BITS, Page, is_full
from dynamodb_counters._items.bookkeeping import put_as_seen
from dynamodb_counters._items.table_schema import LEVEL, PK, SK, VERSION
from dynamodb_counters._pages import PageLevels
from dynamodb_counters._table import Table

_MOST_REMEMBERED: Final = 20_000

_FEW: Final = 8
"""Groups of a page in one update: where it has more, both halves of the page would be written as often."""

LARGE: Final = 4.0
"""Write units up to which such a page stays whole: it still takes half a unit to read."""

_MOST_HALVINGS: Final = 6
"""A transaction has at most 100 items."""


class PageSplits:
    """Splits the pages of one table."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._levels = PageLevels.of_table(table)
        self._seen: dict[tuple[str, str], float] = {}
        """By key: the write units of a page when it was last looked at."""

    def grown(self, layout: ItemLayout, page: Page, units: float, item: Mapping[str, Any] | None, groups: int) -> float:
        """Split a page that an update of so many `groups` has brought to so many units; return the units of that."""
        # The page is read if `item` is not what the update has returned of it.
        if layout.pages is None or layout.pages.is_whole:
            return 0.0
        place = (page.shelf, f"{layout.name}{page.first}")
        least = LARGE if groups > _FEW else 1.0
        if len(self._seen) >= _MOST_REMEMBERED:
            self._seen.clear()
        if item is None and units <= (most := max(least, self._seen.get(place, 1.0))):
            self._seen[place] = most
            return 0.0
        # A later update tries again if this fails.
        with suppress(ClientError, BotoCoreError, TimeoutError):
            spent = self._split(layout, page, item or self._table.read_item(self._key(layout, page)), units, least)
            self._seen[place] = 1.0 if spent else units
            return spent
        return 0.0

    def make_room(self, layout: ItemLayout, page: Page, group: GroupKey, parts: float) -> None:
        """Split a page of which a batch touches so many times the groups of one request, one `group` among them."""
        key = self._key(layout, page)
        item = self._table.read_item(key)
        if self._levels.learn(layout.name, page, item):
            attributes = layout.attributes(group, {PK: page.pk, SK: key[SK]["S"]})
            # A page that is lost is of a level.
            item = item or {**key, **attributes, LEVEL: {"N": str(page.level)}}
            self._divide(layout, item, min(_MOST_HALVINGS, math.ceil(math.log2(parts))))

    def _split(self, layout: ItemLayout, page: Page, item: Mapping[str, Any], units: float, least: float) -> float:
        left, spent = [(page, item)] if self._levels.learn(layout.name, page, item) else [], 0.0
        while left:
            page, item = left.pop()
            if item and is_full(item, least) and page.level < BITS:
                spent += 4 * units
                left += self._divide(layout, item)
        return spent

    def _divide(
        self, layout: ItemLayout, item: Mapping[str, Any], times: int = 1
    ) -> list[tuple[Page, Mapping[str, Any]]]:
        """Halve a page that is as it was read, and its halves; nothing if it is not."""
        assert layout.pages is not None
        halves = [item]
        for _ in range(times):
            halves = [half for one in halves for half in layout.pages.halves(one)]
        stays = put_as_seen(self._table.name, halves[0], item if VERSION in item else {}, (VERSION,))
        # The new pages are not there, or are what a restore has left of a split.
        goes = [{"TableName": self._table.name, "Item": half} for half in halves[1:]]
        puts = [{"Put": put} for put in (stays, *goes)]
        if not self._table.write_together(puts):
            return []
        found = [(half_page, half) for half in halves if (half_page := layout.pages.page_of(half))]
        for half_page, half in found:
            self._levels.learn(layout.name, half_page, half)
        return found

    def _key(self, layout: ItemLayout, page: Page) -> Key:
        assert layout.pages is not None
        return typed_key(layout.pages.key(page))
