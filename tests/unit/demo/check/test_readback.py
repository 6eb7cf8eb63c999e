from __future__ import annotations

from datetime import timedelta

import pytest

from demo.check.readback import read_groups, read_rolling
from examples.blog.declarations import ROLLING, VIEWS
from tests.unit.demo.fakes import NOW, name_lengths, silent

MINUTE = timedelta(minutes=1)


def test_groups_are_read_by_name() -> None:
    assert read_groups(name_lengths(), VIEWS, "url", ["/a", "/bcd"]) == {"/a": 2, "/bcd": 4}
    assert read_groups(name_lengths(), VIEWS, "url", []) == {}


@pytest.mark.parametrize("groups", [100, 0])
def test_windows_state_their_interval(groups: int) -> None:
    urls = [f"/{'x' * size}" for size in range(groups)]

    counts, interval = read_rolling(name_lengths(), ROLLING, "url", urls, as_of=NOW, progress=silent())

    assert counts == {url: len(url) for url in urls}
    assert interval == (NOW + MINUTE - timedelta(hours=24), NOW + MINUTE)


def test_windows_of_different_intervals_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="too many values to unpack"):
        read_rolling(name_lengths(uneven=True), ROLLING, "url", ["/a", "/bc"], as_of=NOW, progress=silent())
