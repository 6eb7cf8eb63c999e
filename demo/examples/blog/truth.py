"""The blog's counts, computed from the events alone; shares no code with the runtime, and must not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from demo.check.intervals import Timeline
from demo.examples.blog.traffic import View


class BlogTruth(Timeline):
    """Each distinct view once, by url and by client."""

    def __init__(self, sent: Iterable[View]) -> None:
        distinct = frozenset(sent)
        super().__init__((view.url, datetime.fromisoformat(view.time)) for view in distinct)
        self.visitors = Counter(view.client for view in distinct)
