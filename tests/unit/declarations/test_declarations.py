"""A wrong value of any argument of a declaration is refused, naming argument, value and what is allowed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Attr, Count, Distinct, Event, InvalidArgumentError, Sum, Window

_VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}")

_RIGHT: dict[type, dict[str, Any]] = {
    Event: {"name": "event", "pk": "A#{a}", "sk": "B#{b}"},
    Aggregate: {"name": "views", "source": _VIEW, "pk": "URL#{url}", "sk": "STATISTICS", "measures": {"n": Count()}},
    Window: {"name": "recent", "source": _VIEW, "pk": "URL#{url}", "time": "time"},
    Sum: {"attribute": "bytes"},
}

_NAMES: list[Any] = ["", None, 5, True, "1a", "-a", "a b", "a#b", "a.b", "é", "a\n", "a" * 65, "quarantine", ["a"]]
_TEMPLATES: list[Any] = [
    *("", None, 5, [], {}, "{", "{}", "{a}{b}", "A#{a}x", "A#{a}#{a}", "100%", "x" * 2048),
    *(f"A#{{{reserved}}}" for reserved in ("pk", "sk", "ttl", "_type", "_bucket", "_shard")),
]
_DURATIONS: list[Any] = [timedelta(0), timedelta(milliseconds=999), timedelta(days=-1), 7, 7.5, "7d", True]
_MEASURES: list[Any] = [
    *({}, [], [Count()], "n"),
    *({"n": measure} for measure in (1, Window, "count")),
    *({name: Count()} for name in ("", "1n", "n m", "pk", "ttl", "_n", "url", 5)),
]
_CONDITIONS: list[Any] = [True, "status = paid", {"status": "paid"}, Attr("status"), len]
_SOURCES: list[Any] = [None, "view", Event, Count()]
_ATTRIBUTES: list[Any] = ["", None, 5, ["bytes"]]
_CHOICES: list[Any] = [None, "", "KEEP", "forget", True, ["keep"]]

_WRONG: dict[tuple[type, str], list[Any]] = {
    (Event, "name"): _NAMES,
    (Event, "pk"): _TEMPLATES,
    (Event, "sk"): _TEMPLATES,
    (Event, "retention"): _DURATIONS,
    (Aggregate, "name"): _NAMES,
    (Aggregate, "source"): _SOURCES,
    (Aggregate, "pk"): _TEMPLATES,
    (Aggregate, "sk"): _TEMPLATES,
    (Aggregate, "measures"): _MEASURES,
    (Aggregate, "where"): _CONDITIONS,
    (Aggregate, "on_expiry"): _CHOICES,
    (Window, "name"): _NAMES,
    (Window, "source"): _SOURCES,
    (Window, "pk"): [*filter(None, _TEMPLATES), "A#{total}", "A#{m00}"],
    (Window, "time"): _ATTRIBUTES,
    (Window, "retention"): _DURATIONS,
    (Window, "measure"): [None, Count, "count", {"n": Count()}, 1],
    (Window, "where"): _CONDITIONS,
    (Window, "late"): _CHOICES,
    (Window, "future_tolerance"): [timedelta(seconds=-1), 15, "15m"],
    (Window, "on_expiry"): _CHOICES,
    (Sum, "attribute"): _ATTRIBUTES,
}
_CASES = [(kind, argument, value) for (kind, argument), values in _WRONG.items() for value in values]


@pytest.mark.parametrize(
    ("kind", "argument", "value"),
    _CASES,
    ids=[f"{kind.__name__}-{argument}-{n}" for n, (kind, argument, _) in enumerate(_CASES)],
)
def test_a_wrong_argument_is_refused_by_name_and_value(kind: type, argument: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        kind(**{**_RIGHT[kind], argument: value})

    error = refused.value
    assert error.argument == argument
    assert error.value == value or (isinstance(value, dict) and error.value in [*value, *value.values()])
    assert error.expected
    assert str(error) == f"invalid {argument}={error.value!r:.120}: expected {error.expected}" or "…" in str(error)
    assert isinstance(error, ValueError)


def test_a_declaration_without_fields_and_keys_has_one_group() -> None:
    for declared in (
        Aggregate("all", _VIEW),
        Distinct("all", _VIEW, member="a"),
        Window("all", _VIEW, time="at"),
    ):
        parts = declared._parts if isinstance(declared, Distinct) else (declared,)
        assert {part.pk for part in parts} == {"all"}


def test_measures_have_names_by_keyword_or_in_one_mapping() -> None:
    declare: Any = Aggregate
    measures: dict[str, Any] = {"n": Count(), "paid": Sum("cents")}
    assert declare("views", _VIEW, by="url", **measures) == declare("views", _VIEW, by="url", measures=measures)
    assert declare("views", _VIEW, by="url").measures == {"views": Count()}
    with pytest.raises(InvalidArgumentError, match=r"invalid measures=.*keyword arguments or one mapping, not both"):
        declare("views", _VIEW, by="url", measures=measures, more=Count())
    with pytest.raises(InvalidArgumentError, match="invalid gy='url': expected a measure such as Count"):
        declare("views", _VIEW, gy="url")


def test_the_group_is_the_fields_of_both_keys_in_their_order() -> None:
    aggregate = Aggregate("a", _VIEW, pk="X#{b}#{a}", sk="Y#{a}#{c}", measures={"n": Count()})

    assert aggregate.fields == ("b", "a", "c")
