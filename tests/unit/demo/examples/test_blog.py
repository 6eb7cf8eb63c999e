from __future__ import annotations

import pytest

from demo.examples.blog.example import Blog
from demo.examples.blog.traffic import View
from tests.unit.demo.fakes import NOW, finding

SENT = [View("/a", "2026-11-20T09:30:15+00:00", client) for client in ("c1", "c2", "c1")]
HOSTILE = View("/\x1b[31m" + "x" * 99, "2026-11-20T09:30:15+00:00", "c1")
BLOG = Blog([*SENT, HOSTILE], NOW, 7)
COUNTS = {
    "all views": {"the site": 3},
    "views": {"/a": 2, HOSTILE.url: 1},
    "requests": {"c1": 2, "c2": 1},
    "views in 24 h": {"/a": 2, HOSTILE.url: 1},
}


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"views": {"/a": 3, HOSTILE.url: 1}}, "views of /a: 3, must be 2"),
        ({"views": {"/a": 2, HOSTILE.url: 1, "/b": 1}}, "views of /b: 1, must be 0"),
        ({"requests": {"c1": 2}}, "requests of c2: 0, must be 1"),
        ({"all views": {"the site": 4}}, "all views of the site: 4, must be 3"),
        ({"views in 24 h": {"/a": 1, HOSTILE.url: 1}}, "views in 24 h of /a: 1, must be 2"),
    ],
)
def test_what_is_wrong_is_reported(changes: dict[str, dict[str, int]], line: str) -> None:
    assert finding(BLOG, COUNTS | changes).differences() == [f"blog: {line}"]
