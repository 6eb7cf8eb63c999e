"""Different members of each day: a group field that is the day of a time."""

from __future__ import annotations

from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event, InvalidArgumentError
from dynamodb_counters._items.conditions import text_reader
from dynamodb_counters.errors import MalformedImageError

_VIEW = Event("view", pk="VIEW#{id}", sk="VIEW")


@pytest.mark.parametrize(
    ("tier", "text"),
    [("minute", "2026-11-20T10:30"), ("hour", "2026-11-20T10"), ("day", "2026-11-20"), ("month", "2026-11")],
)
def test_a_time_can_stand_for_any_tier(tier: str, text: str) -> None:
    assert text_reader(f"at:{tier}")({"at": {"S": "2026-11-20T12:30:30+02:00"}}) == text


@pytest.mark.parametrize("value", [None, {"S": "2026-11-20"}, {"S": "2026-11-20T10:00:00"}, {"BOOL": True}])
def test_values_that_are_no_moment_stand_for_none(value: Any) -> None:
    with pytest.raises(MalformedImageError):
        text_reader("at:day")({} if value is None else {"at": value})


_WRONG = [
    *("{at:week}", "{at:>10}", "{tags[]:day}", "{lines[].at:day}", "{lines[].sku}", "{at!r:day}", "{tags[]:class}"),
    *("{ms:100,10}", "{ms:10,10}", "{ms:-1}", "{ms:01}", "{ms:1,}", "{ms:1.0}", "{ms:1e3}", "{ms:1_0}", "{ms:nan}"),
    *("{plan?}", "{plan?a b}", "{plan?a:class}", "{plan?a?b}", "{tags[]?none}"),
]


@pytest.mark.parametrize("pk", _WRONG)
def test_other_formats_are_refused(pk: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^invalid pk=.*\{time:day\}"):
        Aggregate("views", _VIEW, pk=pk, sk="VIEWS", measures={"views": Count()})
