"""Inserts events once, adds up a batch and writes each counter by one plain UpdateItem, without looking back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.designs.base import TABLE, Design, increment, inserted, views_by_url
from demo.examples.blog.traffic import View


class Coalescing(Design):
    name = "coalescing"
    title = "coalescing stream aggregator"
    source = "common practice, e.g. https://github.com/zeroae/zae-limiter (aggregator)"
    streamed = TABLE

    def take(self, view: View) -> None:
        self.insert(view)

    def aggregate(self, records: Sequence[Mapping[str, Any]]) -> None:
        for url, number in views_by_url(inserted(records)).items():
            self.client.update_item(**increment(url, number))
