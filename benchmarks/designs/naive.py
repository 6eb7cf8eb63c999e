"""One UpdateItem per event adds one to the counter, whatever has happened before."""

from __future__ import annotations

from benchmarks.designs.base import Design, increment
from demo.examples.blog.traffic import View


class Naive(Design):
    name = "naive_increment"
    title = "naive increment"
    source = "reference 000, 'less naive' counter: https://aws-blog.de (M. Borgmeier, 2022)"

    def take(self, view: View) -> None:
        self.client.update_item(**increment(view.url))
