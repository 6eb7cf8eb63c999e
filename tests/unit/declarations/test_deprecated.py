"""Old names of arguments still work, warn and name the new one; the two together are refused."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event, InvalidArgumentError, Ranking, Window
from dynamodb_counters._declarations.codec import decode, encode

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_VIEWS: dict[str, Any] = {"name": "views", "source": _VIEW, "pk": "SITE", "sk": "VIEWS", "measures": {"n": Count()}}
_RANKING: dict[str, Any] = {"by": "n", "leaderboard": "PAGES"}


def _aggregate(**named: Any) -> Any:
    return Aggregate(**_VIEWS, **named)


def _ranking(**named: Any) -> Any:
    return Ranking(**{**_RANKING, **named})


def _named_board(**named: Any) -> Any:
    return Ranking(by="n", **named)


_ALIASES = [
    (_aggregate, "spread", "write_shards", 4),
    (_ranking, "spread", "write_shards", 4),
    (_named_board, "board", "leaderboard", "URLS"),
]
_aliases = pytest.mark.parametrize(("make", "old", "new", "value"), _ALIASES)


@_aliases
def test_an_old_keyword_works_and_names_the_new_one(make: Callable[..., Any], old: str, new: str, value: Any) -> None:
    with pytest.warns(DeprecationWarning, match=f"{old!r} is deprecated, use {new!r}") as warned:
        made = make(**{old: value})

    assert made == make(**{new: value})
    assert getattr(made, new) == value
    assert [warning.filename for warning in warned] == [__file__]


@_aliases
def test_an_old_attribute_reads_the_new_one(make: Callable[..., Any], old: str, new: str, value: Any) -> None:
    made = make(**{new: value})

    with pytest.warns(DeprecationWarning, match=f"{old!r} is deprecated, use {new!r}") as warned:
        assert getattr(made, old) == value
    assert [warning.filename for warning in warned] == [__file__]


@_aliases
def test_both_names_together_are_refused(make: Callable[..., Any], old: str, new: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^invalid {old}=.*expected {new} alone"):
        make(**{old: value, new: value})


def test_both_names_together_are_refused_by_position_too() -> None:
    ranking: Any = Ranking

    with pytest.raises(InvalidArgumentError, match=r"^invalid board='B': expected leaderboard alone"):
        ranking("n", "PAGES", board="B")


@_aliases
def test_a_wrong_value_under_an_old_name_is_refused(make: Callable[..., Any], old: str, new: str, value: Any) -> None:
    del value
    with (
        pytest.warns(DeprecationWarning, match=new),
        pytest.raises(InvalidArgumentError, match=rf"^invalid {new}=\[\]: expected"),
    ):
        make(**{old: []})


@_aliases
def test_a_copy_is_changed_by_the_new_name_only(make: Callable[..., Any], old: str, new: str, value: Any) -> None:
    made = make(**{new: value})
    other = 3 if isinstance(value, int) else "OTHER"

    # It passes the unchanged value under the new name, too.
    with pytest.raises(InvalidArgumentError, match=rf"^invalid {old}=.*: expected {new} alone"):
        replace(made, **{old: other})
    assert getattr(replace(made, **{new: other}), new) == other


def test_new_names_never_warn() -> None:
    with warnings.catch_warnings(action="error"):
        aggregate = _aggregate(ranking=_ranking(write_shards=2))
        copies = [
            copy.deepcopy(aggregate),
            pickle.loads(pickle.dumps(aggregate)),
            replace(aggregate, name="views"),
            *decode(encode((aggregate,))),
        ]

    assert copies == [aggregate] * 4
    assert len({repr(each) for each in [aggregate, *copies]}) == 1
    assert "spread" not in repr(aggregate)


def test_the_cost_estimate_of_a_window_has_an_old_name() -> None:
    window: Any = Window("recent", _VIEW, pk="URL#{url}", time="at")

    with pytest.warns(DeprecationWarning, match="'arithmetic' is deprecated, use 'cost_estimate'"):
        assert window.arithmetic == window.cost_estimate
