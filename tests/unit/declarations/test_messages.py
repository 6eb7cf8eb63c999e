"""Refusals name the attribute, and the value as it was sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from dynamodb_counters import ActiveMembers, Aggregate, Attribute, Distinct, Event, InvalidArgumentError, Window
from dynamodb_counters._declarations.sources import Event as Source
from dynamodb_counters.testing import QuarantinedRecordsError
from simulation.counters_in_memory import counters_in_memory

EVENT: Final = Event("event", key="id")
_PAIR: Final[Any] = ("a", "b")
WINDOW: Final = Window("window", EVENT, time="at")


def _count(declared: Any, **values: Any) -> Callable[[], Any]:
    def counted() -> None:
        with counters_in_memory([declared]) as counters:
            counters.accept(EVENT, {"id": "1", **values})

    return counted


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (_count(WINDOW, at=None), "window: null is not a time: expected a string or a number"),
        (_count(WINDOW, at=[1]), "window: [1] is not a time"),
        (_count(WINDOW, at=False), "window: False is not a time"),
        (_count(WINDOW, at="2016-12-31T23:59:60Z"), "'2016-12-31T23:59:60Z' is a leap second"),
        (_count(Aggregate("a", EVENT, by="s:class"), s=None), "a: null is no number that is one of '1xx'"),
        (_count(Aggregate("a", EVENT, by="s:1,2"), s="x"), "a: 'x' is no number that is one of '..1'"),
        (_count(Aggregate("a", EVENT, by="s:log0.1"), s={"x": None}), "a: {'x': None} is no number"),
        (
            lambda: Distinct("d", EVENT, member=_PAIR),
            "invalid member=('a', 'b'): expected an attribute",
        ),
        (
            lambda: ActiveMembers("d", EVENT, member=_PAIR, time="at"),
            "invalid member=('a', 'b'): expected an attribute",
        ),
        (lambda: Source("e", key="id", attributes={"id": str, "x": complex}), "invalid type of 'x'=<class 'complex'>"),
        (lambda: Source("e", key="id", attributes={"id": str, "x": list[complex]}), "invalid type of 'x'="),
        (
            lambda: Source("e", key="id", attributes={"id": str, "x": Attribute(dict, attributes={"y": int | str})}),
            "invalid type of 'y'=int | str: expected str",
        ),
    ],
)
def test_refusals_name_what_was_sent(refused: Callable[[], Any], message: str) -> None:
    with pytest.raises((InvalidArgumentError, QuarantinedRecordsError)) as error:
        refused()
    assert message in str(error.value)


def test_a_small_z_is_a_time_of_rfc_3339() -> None:
    with counters_in_memory([WINDOW], now=datetime(2026, 1, 1, 1, tzinfo=UTC)) as counters:
        counters.accept(EVENT, {"id": "1", "at": "2026-01-01T00:30:00Z"})
        counters.accept(EVENT, {"id": "2", "at": "2026-01-01t00:30:00z"})
        assert counters.window(WINDOW).last(timedelta(hours=1)).count == 2


@dataclass
class Purchase:
    id: str
    total: int | None = None


class Model:
    """Stands for one of pydantic."""

    def model_dump(self) -> dict[str, Any]:
        return asdict(Purchase("1", 5))


def test_an_instance_of_the_declared_class_is_refused_with_what_to_pass() -> None:
    event = Event("purchase", key="id", attributes=Purchase)
    with counters_in_memory([Aggregate("all", event)]) as counters:
        for values, advice in ((Purchase("1"), "dataclasses.asdict(…)"), (Model(), "its model_dump()")):
            for call in (counters.accept, counters.retract):
                with pytest.raises(ValueError, match="mapping of attribute names to values") as refused:
                    call(event, values)  # type: ignore[arg-type]
                assert str(refused.value).endswith(advice)
        assert counters.accept(event, asdict(Purchase("1"))).status == "accepted"
