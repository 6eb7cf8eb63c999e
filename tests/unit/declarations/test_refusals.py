"""Wrong declarations: each is refused by argument and value, with what is allowed."""

# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from dynamodb_counters import (
    ActiveMembers,
    Aggregate,
    Attr,
    Attribute,
    Average,
    Count,
    Counter,
    Distinct,
    Event,
    Histogram,
    InvalidArgumentError,
    Items,
    Packed,
    Percentiles,
    Quota,
    Ranking,
    Ranks,
    Sum,
    TableKeys,
    Threshold,
    TimeWeighted,
    Window,
)
from dynamodb_counters._declarations import flatten, require_consistent
from dynamodb_counters._fold.plan import Plan
from tests.unit.declarations.test_attributes import ORDER

_VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}")

_RIGHT: dict[type, dict[str, Any]] = {
    Event: {"name": "event", "pk": "A#{a}", "sk": "B#{b}"},
    Aggregate: {"name": "views", "source": _VIEW, "pk": "URL#{url}", "sk": "STATISTICS", "measures": {"n": Count()}},
    Window: {"name": "recent", "source": _VIEW, "pk": "URL#{url}", "time": "time"},
    Sum: {"attribute": "bytes"},
    Packed: {"time": "time"},
    Quota: {"name": "calls", "limit": 300, "per": "day"},
}

_NAMES: list[Any] = [
    *("", None, 5, True, "1a", "-a", "a b", "a#b", "a.b", "a~1", "é", "a\n", "a" * 65, "quarantine", ["a"])
]
_TEMPLATES: list[Any] = [
    *("", None, 5, [], {}, "{", "{}", "{a}{b}", "A#{a}x", "A#{a}#{a}", "100%", "x" * 2048),
    *(f"A#{{{reserved}}}" for reserved in ("pk", "sk", "ttl", "_type", "_bucket", "_shard")),
]
_DERIVED: list[Any] = [
    *("{at:week}", "{at:>10}", "{tags[]:day}", "{lines[].at:day}", "{lines[].sku}", "{at!r:day}", "{tags[]:class}"),
    *("{ms:100,1000}", "{ms:1}", "{ms:log}", "{ms:log9}", "{ms:log0.010}", "{at:0m}", "{at:15s}"),
    *("{plan?}", "{plan?a b}", "{plan?a:class}", "{plan?a?b}", "{tags[]?none}"),
]
_DURATIONS: list[Any] = [timedelta(0), timedelta(milliseconds=999), timedelta(days=-1), 7, 7.5, "7d", True]
_MEASURES: list[Any] = [
    *({}, [], [Count()], "n"),
    *({"n": measure} for measure in (1, Window, "count")),
    *({name: Count()} for name in ("", "1n", "n m", "pk", "ttl", "_n", "url", 5)),
]
_CONDITIONS: list[Any] = [True, "status = paid", {"status": "paid"}, Attr("status"), len]
_SOURCES: list[Any] = [None, "view", Event, Count()]
_ATTRIBUTES: list[Any] = ["", None, 5, ["bytes"], "_w:123"]
_CHOICES: list[Any] = [None, "", "KEEP", "forget", True, ["keep"]]

_WRONG: dict[tuple[type, str], list[Any]] = {
    (Event, "name"): _NAMES,
    (Event, "pk"): _TEMPLATES,
    (Event, "sk"): _TEMPLATES,
    (Event, "retention"): _DURATIONS,
    (Aggregate, "name"): _NAMES,
    (Aggregate, "source"): _SOURCES,
    (Aggregate, "pk"): [*_TEMPLATES, *_DERIVED],
    (Aggregate, "sk"): _TEMPLATES,
    (Aggregate, "measures"): _MEASURES,
    (Aggregate, "where"): _CONDITIONS,
    (Aggregate, "on_expiry"): _CHOICES,
    (Aggregate, "pages"): [None, 1],
    (Aggregate, "write_shards"): [0, True, 1.5],
    (Window, "name"): _NAMES,
    (Window, "source"): _SOURCES,
    (Window, "pk"): [*filter(None, _TEMPLATES), "A#{total}", "A#{m00}"],
    (Window, "time"): _ATTRIBUTES,
    (Window, "retention"): _DURATIONS,
    (Window, "measure"): [None, Count, "count", {"n": Count()}, 1],
    (Window, "where"): _CONDITIONS,
    (Window, "late"): _CHOICES,
    (Window, "longest"): [7, 86_400, timedelta(0), timedelta(seconds=59)],
    (Window, "precision"): [timedelta(seconds=30), None, 60],
    (Window, "tz"): ["Mars/Base", "zone"],
    (Window, "anchor"): [0, 32],
    (Window, "future_tolerance"): [timedelta(seconds=-1), 15, "15m"],
    (Window, "on_expiry"): _CHOICES,
    (Sum, "attribute"): _ATTRIBUTES,
    (Packed, "time"): _ATTRIBUTES,
    (Packed, "bucket"): [600, timedelta(seconds=1.5), timedelta(0), timedelta(days=2)],
    (Packed, "parts"): [0, 257],
    (Packed, "partition_by"): [3],
    (Packed, "tenant"): [3],
    (Packed, "chunk_bytes"): [1023, 400_000],
    (Packed, "future_tolerance"): [15],
    (Quota, "name"): _NAMES,
    (Quota, "limit"): [0, 1.5, True],
    (Quota, "per"): ["fortnight", timedelta(seconds=59), timedelta(seconds=60.5), 60],
    (Quota, "by"): [{"customer"}, 3, ("a", "a"), ("a", "b", "c", "d"), ("pk",), ("a.b",), ("time:day",)],
    (Quota, "tz"): ["Europe/Atlantis"],
    (Quota, "portion"): [0, 301],
}


@pytest.mark.parametrize(("kind", "argument"), _WRONG, ids=lambda part: getattr(part, "__name__", part))
def test_a_wrong_argument_is_refused_by_name_and_value(kind: type, argument: str) -> None:
    for value in _WRONG[kind, argument]:
        with pytest.raises(InvalidArgumentError) as refused:
            kind(**{**_RIGHT[kind], argument: value})

        error = refused.value
        parts = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, tuple) else ()
        assert error.argument == argument
        assert error.value == value or error.value in parts
        assert error.expected


PATH = Event("path", pk="PLAYER#{player}", sk="PATH#{path}")
_POINTS = Aggregate("points", PATH, by="player", points=Sum("ms"), mean=Average("ms"))
PLAYERS = Aggregate("players", PATH, pk="PLAYER#{player}", sk="STATISTICS", measures={"paths": Count()})


def _any(value: Any) -> Any:
    return value


def _aggregate(name: str = "a", source: Any = PATH, **changes: Any) -> Aggregate:
    return Aggregate(name, source, **{"pk": "A", "sk": "ALL", "measures": {"n": Count()}, **changes})


def _ranks(source: Any = PATH, name: str = "r", **changes: Any) -> Callable[[], object]:
    arguments: dict[str, Any] = {"score": "ms", "least": 0, "most": 9, **changes}
    return lambda: Ranks(name, source, **arguments)


def _together(*declared: Any, events: Any = ()) -> Callable[[], object]:
    return lambda: require_consistent(flatten(declared), events)


def _a(**changes: Any) -> Callable[[], object]:
    return lambda: _aggregate(**changes)


_o = partial(_a, source=ORDER)


def _packed(packed: Any, **changes: Any) -> Callable[[], object]:
    return lambda: Event("view", key=("url", "time"), packed=packed, **changes)


_UUID = "6f9619ff-8b86-d011-b42d-00cf4fc964ff"
_PLAYERS_AT_HOME = Event("note", pk="PLAYER#{player}", sk="{id}")
_SHARDED = _aggregate("sharded", write_shards=4)
_RANKED = _aggregate("ranked", pk="R#{player}", ranking=Ranking(measure="n", leaderboard="PLAYERS"))

_REFUSED: list[tuple[Callable[[], object], str]] = [
    (_a(source="path"), "source='path': expected an Event or Items or Aggregate"),
    (_together(_aggregate(source=PLAYERS)), "source='players': expected an aggregate that is declared with 'a'"),
    (_together(_aggregate(), _aggregate(pk="B")), "name='a': expected one declaration per name; rename one of the two"),
    (_together(_aggregate(), _aggregate()), "name='a': expected each declaration only once"),
    (lambda: Plan((_aggregate(), _aggregate(pk="B"))), "name='a': expected one declaration per name"),
    (_together(_aggregate(pk="W#{url}", sk="WINDOW#{x}#H#{y}"), Window("w", PATH, pk="W#{url}", time="at")), "pk='W#{url}': expected keys that cannot match"),
    (_together(_aggregate("a", pk="A#{player}"), _aggregate("m", pk="M"), _aggregate("b", pk="A#TOTAL")), "pk='A#TOTAL': expected keys that cannot match items of 'a'; change those of 'b', or its name"),
    (_together(_aggregate(pk="QUARANTINE#{player}")), "pk='QUARANTINE#{player}': expected a key that cannot match the reserved 'QUARANTINE#{number}'"),
    (_together(_aggregate(pk="CHECKPOINT#{player}")), "pk='CHECKPOINT#{player}': expected a key that cannot match the reserved 'CHECKPOINT#{number}'"),
    (lambda: Sum("lines[].quantity"), "attribute='lines[].quantity': expected an attribute of the item, not of a list's members"),
    (_a(where=Attr("tags[]").eq("a")), "where='tags[]': expected an attribute of the item, not of a list's members"),
    (lambda: Window("w", PATH, time="lines[].at"), "time='lines[].at': expected an attribute of the item, not of a list's members"),
    (_a(where=Attr("_type").eq("path")), "where='_type': expected attribute names that do not start with '_'"),
    (_a(source=PLAYERS, pk="A#{paths}"), "pk='paths': expected a string; 'paths' is a number"),
    (_a(source=PLAYERS, measures={"n": Sum("points")}), "measures='points': expected attributes of 'players': player, paths"),
    (_a(source=PLAYERS, measures={"n": Sum("player")}), "measures='player': expected a number; 'player' is a string"),
    (_a(source=_SHARDED), "source='sharded': expected an aggregate with write_shards=1"),
    (_a(measures={"h": Histogram("n", exactly=[1])}, ranking=Ranking(measure="h", leaderboard="B")), "ranking='h': expected a Count or Sum of the aggregate"),
    (_a(ranking=Ranking(measure="n", leaderboard="B#{team}")), "ranking='B#{team}': expected fields of the group: none"),
    (_together(_RANKED, _aggregate("b", pk="B#{player}", ranking=Ranking(measure="n", leaderboard="PLAYERS"))), "leaderboard='PLAYERS': expected a leaderboard that cannot hold groups of 'ranked'"),
    (_a(write_shards=4, ranking=Ranking(measure="n", leaderboard="B")), 'write_shards=4: expected 1, and write_shards of its Ranking instead'),
    (lambda: Sum("paths", cap=_any(0.1)), 'cap=0.1: expected an int or Decimal (floats are not exact)'),
    (lambda: Histogram("paths", bounds=[5, 1]), 'bounds=[5, 1]: expected 1 to 100 ascending numbers'),
    (lambda: Histogram("paths", exactly=[1], bounds=[1]), 'exactly=(1,): expected bins for either exactly or bounds'),
    (lambda: Histogram("paths", bounds=_any(5)), 'bounds=5: expected a sequence of numbers'),
    (lambda: Histogram("paths", bounds=_any({1})), 'bounds={1}: expected a sequence of numbers'),
    (_a(measures={"a": Histogram("n", exactly=range(100)), "b": Histogram("n", exactly=range(50))}), "measures=['a', 'b']: expected at most 120 attributes in total"),
    (lambda: Distinct("d", PATH, member="player", where=_any("paths > 3")), "where='paths > 3': expected a Condition such as Attr('status').eq('paid')"),
    (lambda: Counter("stock", total=Sum("total")), "measures=Sum(attribute='total', cap=None, default=None): expected a Count: no item has attributes to look at"),
    (lambda: Counter("stock", by="tags[]"), "by='tags[]': expected an attribute of the item, not of a list's members"),
    (lambda: Event("e", pk="TAG#{tags[]}", sk="E"), "pk='TAG#{tags[]}': expected fields that are plain attributes, not parts of maps, list members or derived fields"),
    (lambda: Items("i", where=_any(Any)), "where=typing.Any: expected a Condition such as Attr('status').eq('paid')"),
    (lambda: Items("i", sk="ORDER#{order}", keys=TableKeys("id")), "sk='ORDER#{order}': expected None: keys= names no sort_key"),
    (lambda: Items("i", pk="A#{x}", sk="B#{x}"), "sk='B#{x}': expected fields that pk does not have"),
    (lambda: Items("i", keys=_any("id")), "keys='id': expected a TableKeys, or None for the keys 'pk' and 'sk'"),
    (lambda: TableKeys("id", "id"), "sort_key='id': expected a different attribute for each key and the TTL"),
    (lambda: TableKeys("id", ttl=""), "ttl='': expected an attribute name"),
    (_together(_aggregate("a", source=Items("i", keys=TableKeys("id"))), _aggregate("b", pk="B", source=Items("j", keys=TableKeys("key")))), "keys=TableKeys(partition_key='key', sort_key=None, ttl=None): expected those of 'i', which lies in the same table"),
    (lambda: Distinct("d", PATH, pk="D#{player}", sk="D", member="player"), "member='player': expected an attribute that is not part of the group's key"),
    (lambda: Distinct("d", PATH, pk="D#{at:month}", sk="D#{at:day}", member="player", retention=timedelta(days=1)), 'retention=datetime.timedelta(days=1): expected None, or exactly one time that groups, such as at:day'),
    (lambda: Distinct("d", PATH, pk="D", sk="D", member="at:day", retention=timedelta(days=1)), 'retention=datetime.timedelta(days=1): expected None, or exactly one time that groups, such as at:day'),
    (lambda: Distinct("d", PATH, pk="D", sk="D#{at:day}", member="player", on_expiry="subtract", retention=timedelta(days=1)), "on_expiry='subtract': expected 'keep' with a retention: its counts stay"),
    (lambda: Percentiles("p", PATH, attribute="ms", error=0), 'error=0: expected a number from 0.001 to 0.5'),
    (lambda: Percentiles("p", _any(PLAYERS), attribute="paths"), "source=Aggregate('players', …): expected an Event or Items"),
    (lambda: Percentiles("p", PATH, attribute="ms", time="at", precision=timedelta(seconds=1)), 'precision=datetime.timedelta(seconds=1): expected 1 minute, 1 hour or 1 day'),
    (lambda: Percentiles("p", PATH, by="at:hour", attribute="ms", time="at"), "by=('at:hour',): expected fields other than 'at:hour', which the time is"),
    (lambda: Percentiles("p", PATH, attribute="_ms"), "attribute='_ms': expected an attribute name that is not reserved (pk, sk, ttl, _…)"),
    *((_ranks(score=score), f"score={score!r}: expected an attribute name that is not reserved (pk, sk, ttl, _…)") for score in ("", "_ms", 5, ("ms",))),
    (_ranks(score="1a"), "score='1a': expected a field or a sequence of different ones"),
    *((_ranks(score=score), f"score={score!r}: expected an attribute that is not derived, in no list, and has no default") for score in ("at:day", "ms?0", "ms[]")),
    (_ranks(_POINTS, score="mean"), "score='mean': expected a Count or Sum of 'points'"),
    (_ranks(_POINTS, score="player"), "score='player': expected a Count or Sum of 'points'"),
    (_ranks(_POINTS, score="points", by="player"), "by=('player',): expected less than all fields of a member"),
    (_ranks(_POINTS, score="points", by="team"), "pk='team': expected attributes of 'points'"),
    (_ranks(ORDER, score="name"), "score='name': expected a number; 'name' is"),
    (_ranks(source=Window("w", PATH, pk="W", time="at")), "source=Window('w', …): expected an Event or Items or Aggregate"),
    (_ranks(by="ms:digit0.0.9.0"), "by='ms:digit0.0.9.0': expected a field or a sequence of different ones"),
    *((partial(_aggregate, sk=f"R#{{ms:{digit}}}"), f"sk='R#{{ms:{digit}}}': expected") for digit in ("digit0.9.0.0", "digit0.0.99.9", "digit0.00.99.0", "above0.0.99.0")),
    *((partial(_aggregate, "x", **keys), f"sk={keys['sk']!r}: expected no digits of a number, by which Ranks counts") for keys in ({"sk": "x#{ms:digit0.0.99.0}"}, {"pk": "x#{at}", "sk": "x#{ms:digit0.0.99.0}"}, {"pk": "A", "sk": "x#{ms:digit0.0.99.0}", "pages": True}, {"pk": "x", "sk": "x#{ms:above0.0.9999.0}#{ms:digit0.0.9999.0}", "pages": True})),
    (lambda: Distinct("d", PATH, by="player", member="ms:digit0.0.99.0"), "sk='d#MEMBER#{ms:digit0.0.99.0}': expected no digits of a number, by which Ranks counts"),
    (_ranks(by="a b"), "by='a b': expected a field or a sequence of different ones"),
    *((_ranks(places=places), f"places={places!r}: expected an int from 0 to 9") for places in (-1, 10, True, 1.0, "1", None)),
    *((_ranks(least=least), f"least={least if isinstance(least, Decimal) else repr(least)}: expected an int or Decimal from -999999999999999999 to 999999999999999999 with at most 0 decimal places") for least in (0.5, True, "0", None, Decimal("0.5"), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), -(10**18))),
    (_ranks(places=2, least=Decimal("0.001")), "least=0.001: expected an int or Decimal from -9999999999999999.99 to 9999999999999999.99 with at most 2 decimal places"),
    *((_ranks(most=most, least=-5), f"most={most!r}: expected more than least, -5, by less than 10^12 steps of the last decimal place") for most in (-6, -5, 10**12 - 5)),
    (_ranks(most=10**10, places=2), "most=10000000000: expected more than least, 0, by less than 10^12 steps of the last decimal place"),
    (_ranks(retention=timedelta(days=1)), "retention=datetime.timedelta(days=1): expected None, or exactly one time that groups, such as at:day"),
    (_ranks(name="r" * 63, most=100), f"name='{'r' * 63}-1': expected a letter"),
    (_ranks(on_expiry="ignore"), "on_expiry='ignore': expected one of 'keep', 'subtract'"),
    (_ranks(where="ms > 3"), "where='ms > 3': expected a Condition such as Attr('status').eq('paid')"),
    (_together(Ranks("r", PATH, score="ms", least=0, most=100), _aggregate("r-1")), "name='r-1': expected one declaration per name; rename one of the two"),
    (lambda: Threshold("busy", _any(Ranks("r", PATH, score="ms", least=0, most=9)), at=[1]), "aggregate=Ranks('r', …): expected an Aggregate or Distinct, whose items show each change"),
    (lambda: Threshold("busy", _any(ActiveMembers("a", PATH, member="player", time="at")), at=[1]), "aggregate=ActiveMembers('a', …): expected an Aggregate or Distinct, whose items show each change; instead of a Window, one by at:month"),
    (lambda: Threshold("plan", Aggregate("hot", PATH, by="player", write_shards=4), at=[1]), "aggregate='hot': expected one with write_shards=1: a group is one item"),
    (lambda: Threshold("plan", PLAYERS, at=[]), 'at=[]: expected 1 to 20 ascending numbers'),
    (lambda: Threshold("plan", PLAYERS, at=[1, 1]), 'at=[1, 1]: expected 1 to 20 ascending numbers'),
    (lambda: Threshold("plan", PLAYERS, at=[_any(0.8)]), 'at=0.8: expected an int or Decimal (floats are not exact)'),
    *(((lambda level=level: Threshold("plan", PLAYERS, at=[level])), f"at={level}: expected") for level in (Decimal("NaN"), Decimal("1E+126"), Decimal("1E-131"))),
    (lambda: Threshold("plan", PLAYERS, at=[1], burst=_any("most")), "burst='most': expected one of"),
    (lambda: Threshold("plan", PLAYERS, at=[1], once=_any(1)), "once=1: expected True or False"),
    (lambda: Threshold("", PLAYERS, at=[1]), "name='': expected"),
    (lambda: Threshold("plan", PLAYERS, at=[1], measure="units"), "measure='units': expected a Count, Sum or Average of 'players': paths"),
    (lambda: Threshold("plan", PLAYERS, at=[1], direction=_any("above")), "direction='above': expected one of 'up', 'down', 'both'"),
    (_together(_aggregate(pk="PLAYER#{player}", sk="PATH#{x}")), "pk='PLAYER#{player}': expected keys that cannot match items of 'path'; change those of 'a', or its name"),
    (_a(source=PLAYERS, pk="A#{team}"), "pk='team': expected attributes of 'players': player, paths"),
    (_a(source=PLAYERS, where=Attr("paths").ge("3")), "where='3': expected what 'paths' can be: a number"),
    (lambda: Threshold("plan", _any(Window("w", PATH, pk="P#{player}", time="at")), at=[1]), "aggregate=Window('w', …): expected an Aggregate or Distinct, whose items show each change; instead of a Window, one by at:month"),
    (lambda: Threshold("plan", PLAYERS, at=_any(10)), 'at=10: expected a sequence of numbers'),
    (lambda: Window("w", ORDER, pk="W", time="name"), "time='name': expected a time; 'name' is a string"),
    (lambda: Event("view", pk="URL#{url}"), "sk='': expected"),
    (lambda: flatten([PLAYERS, Threshold("plan", PLAYERS, at=[1]), Threshold("plan", PLAYERS, at=[2])]), "name='plan': expected one threshold per name"),
    (lambda: flatten([Threshold("plan", PLAYERS, at=[1])]), "aggregate='players': expected a declared aggregate; declare it together with 'plan'"),
    (lambda: ActiveMembers("m", PATH, by="player", member="player", time="at"), "member='player': expected an attribute other than 'gap' and those of `by`"),
    (lambda: ActiveMembers("m", PATH, member="player", time="at", longest=timedelta(days=187)), 'longest=datetime.timedelta(days=187): expected 1 to 186 times the precision, 1 day, 0:00:00'),
    (lambda: ActiveMembers("m", PATH, member="player", time="at", longest=timedelta(hours=36)), 'longest=datetime.timedelta(days=1, seconds=43200): expected 1 to 186 times the precision, 1 day, 0:00:00'),
    (lambda: ActiveMembers("m", PATH, by="at:day", member="player", time="at"), "by=('at:day',): expected fields other than 'gap' and 'at:day'"),
    (lambda: Window("w", PATH, time="at", measure=TimeWeighted("seats"), retention=timedelta(days=9)), 'retention=datetime.timedelta(days=9): expected None: a level is the sum of all changes'),
    (_a(measures={"seats": _any(TimeWeighted("seats"))}), "measures=TimeWeighted(attribute='seats', default=None): expected a Count(), Sum(…), Average(…) or Histogram(…)"),
    (_a(write_shards=1000), 'write_shards=1000: expected an int from 1 to 100'),
    (_a(max_groups=100_000), 'max_groups=100000: expected an int from 1 to 10000'),
    (_a(pk="A#{mean.sum}", measures={"mean": Average("n")}), "measures='mean.sum': expected attributes that are not fields of the key"),
    (_o(sk="{address.cty}"), "sk='address.cty': expected attributes of 'address': city, zip"),
    (_o(sk="{name.x}"), "sk='name.x': expected a part of a map; 'name' is a string"),
    (_o(pk="{name[]}"), "pk='name[]': expected a list; 'name' is a string"),
    (_o(pk="{tags}"), "pk='tags': expected a string or number; 'tags' is a list of at most 2 members, each a string"),
    (_o(pk="{plan:day}"), "pk='plan:day': expected a time; 'plan' is one of 'free', 'pro'"),
    (_o(pk="{name:class}"), "pk='name:class': expected a number; 'name' is a string"),
    (_o(pk="{grade}"), "pk='grade': expected where=Attr('grade').exists(), or a default"),
    (_o(pk="{rare.code:class}"), "pk='rare.code:class': expected where=Attr('rare').exists(), or a default"),
    (_o(pk="{rare.code}", where=Attr("rare").exists()), "pk='rare.code': expected where=Attr('rare.code').exists(), or a default"),
    (_o(pk="{notes[]}"), "pk='notes[]': expected where=Attr('notes').exists(), or a default"),
    (_o(measures={"n": Sum("score")}), "measures='score': expected where=Attr('score').exists(), or a default"),
    (_o(measures={"n": Sum("score")}, where=Attr("score").exists() | Attr("name").exists()), "measures='score': expected where=Attr('score').exists(), or a default"),
    (_o(measures={"n": Sum("score")}, where=Attr("score").ne(1)), "measures='score': expected where=Attr('score').exists(), or a default"),
    (lambda: Sum("score", default=_any("0")), "default='0': expected an int or Decimal (floats are not exact)"),
    (lambda: Distinct("d", ORDER, pk="D", sk="D", member="grade"), "member='grade': expected where=Attr('grade').exists(), or a default"),
    (lambda: Window("w", ORDER, pk="W", time="seen"), "time='seen': expected where=Attr('seen').exists(), or a default"),
    (lambda: Window("w", ORDER, pk="W", time="at", measure=Sum("score")), "measure='score': expected where=Attr('score').exists(), or a default"),
    (lambda: Window("w", ORDER, pk="{grade}", time="at"), "pk='grade': expected where=Attr('grade').exists(), or a default"),
    (_o(measures={"n": Average("name")}), "measures='name': expected a number; 'name' is a string"),
    (_o(where=Attr("stauts").exists()), "where='stauts': expected attributes of 'order'"),
    (_o(where=Attr("amount").gt("5")), "where='5': expected what 'amount' can be: a number"),
    (_o(where=Attr("amount").eq(True)), "where=True: expected what 'amount' can be: a number"),
    (_o(where=Attr("plan").ne("gold")), "where='gold': expected what 'plan' can be: one of 'free', 'pro'"),
    (_o(where=~Attr("plan").is_in(["free", "gold"])), "where='gold': expected what 'plan' can be: one of 'free', 'pro'"),
    (lambda: Window("w", ORDER, pk="W", time="born"), "time='born': expected a time; 'born' is an ISO 8601 date such as '2026-11-20'"),
    (lambda: Window("w", ORDER, pk="W", time="at", measure=Sum("at")), "measure='at': expected a number; 'at' is an ISO 8601 time"),
    (lambda: replace(ORDER, sk="{line}"), "sk='line': expected attributes of 'order'"),
    (lambda: replace(ORDER, version="test"), "version='test': expected a string or number; 'test' is true or false"),
    (lambda: Event("e", pk="E", sk="E", attributes=_any(["id"])), "attributes=['id']: expected a mapping of names to types or Attribute, or a dataclass, TypedDict or pydantic model"),
    (lambda: Event("e", pk="E", sk="E", attributes={"ttl": int}), "attributes='ttl': expected an attribute name that is not reserved (pk, sk, ttl, _…)"),
    (lambda: Attribute(str, minimum=1), 'minimum=1: expected None for str, not int or Decimal'),
    (lambda: Attribute(str, one_of=["a", 1]), 'one_of=1: expected values of the type str'),
    (lambda: Attribute(str, one_of="ab"), "one_of='ab': expected a sequence of values"),
    (lambda: Attribute(str, format=_any("e-mail")), "format='e-mail': expected one of 'date', 'date-time', 'uuid'"),
    (lambda: Attribute(str, min_length=-1), 'min_length=-1: expected an int of 0 or more'),
    (lambda: Attribute(Decimal, maximum=_any(0.1)), 'maximum=0.1: expected an int or Decimal (floats are not exact)'),
    (lambda: Attribute(str, required=_any("yes")), "required='yes': expected True or False"),
    (_packed("time"), "packed='time': expected a Packed, or None"),
    (_packed(Packed("at")), "time='at': expected a field of the event's key, which makes it unique: url, time"),
    (_packed(Packed("time", partition_by="client")), "partition_by='client': expected a field of the event's key"),
    (_packed(Packed("time", tenant="client")), "tenant='client': expected a field of the event's key"),
    (_packed(Packed("time"), version="n"), "version='n': expected None: a packed event has no version"),
    (lambda: Event("view"), "key=None: expected at least one attribute"),
    (lambda: Event("view", key="url", pk="URL#{url}"), "key='url': expected None where key templates are given"),
    (lambda: Event("view", key=("url", "url")), "key=('url', 'url'): expected"),
    (lambda: Event("view", key="url", attributes={"uri": str}), "key='url': expected attributes of 'view': uri"),
    (lambda: Event("PACK", key="url"), "name='PACK': expected a name other than CHECKPOINT, LEASES, PACK"),
    (lambda: Aggregate("views", _VIEW, by="url", sk="V"), "by='url': expected None where key templates are given"),
    (lambda: Aggregate("views", _VIEW, by="ttl"), "by='ttl': expected"),
    (lambda: Aggregate("views", _VIEW, by=_any({"url"})), "by={'url'}: expected"),
    (lambda: Aggregate("WINDOW", _VIEW, by="url"), "name='WINDOW': expected a name other than"),
    (lambda: Window("hours", _VIEW, by="tags[]", time="time"), "by='tags[]': expected"),
    (lambda: Distinct("d", PATH, member=_any(("a", "b"))), "member=('a', 'b'): expected an attribute"),
    (lambda: Event("e", key="id", attributes={"id": str, "x": complex}), "type of 'x'=<class 'complex'>: expected str, int"),
    (lambda: Event("e", key="id", attributes={"id": str, "x": Attribute(dict, attributes={"y": int | str})}), "type of 'y'=int | str: expected str"),
    (_a(name="views", measures={"n": Count()}, more=Count()), "measures={'n': Count()}: expected keyword arguments or one mapping, not both"),
    (_a(measures=None, gy="url"), "gy='url': expected a measure such as Count"),
    (_a(pk="{at:week}"), "pk='{at:week}': expected parts with '#' between them, each a text without braces, '%' and control characters, a field, or a text and a field; no field twice; fields are {name}, {outer.inner}, {list[]}, {time:day}, {status:class} or {plan?none}"),
    (_a(source=PLAYERS, measures={"n": Sum("paths", default=0)}), "measures=0: expected none: 'players' has its"),
    (lambda: Window("w", PATH, time="at", retention=timedelta(hours=25), longest=timedelta(hours=26)), "longest=datetime.timedelta(days=1, seconds=7200): expected from the precision up to the retention"),
    (lambda: Aggregate("a", ORDER, by="plan", where=Attr("id").eq(_UUID.upper())), f"where={_UUID.upper()!r}: expected {_UUID!r}, as 'id' is stored"),
    (_together(PLAYERS, events=[_PLAYERS_AT_HOME]), "pk='PLAYER#{player}': expected keys that cannot match"),
    (_together(Window("w", PATH, pk="PLAYER#{player}", time="at"), events=[Event("note", pk="PLAYER#{player}", sk="{a}#{b}#{c}#{d}")]), "pk="),
    (_together(PLAYERS, events=[Event("path", pk="V#{url}", sk="{id}")]), "name='path': expected"),
    (_together(PLAYERS, events=[Event("players", pk="V#{url}", sk="{id}")]), "name='players': expected"),
    (_together(events=[_PLAYERS_AT_HOME, Event("memo", pk="PLAYER#{player}", sk="{memo}")]), "pk="),
    (_together(events=[Event("forger", pk="{a}#{b}", sk="{c}#{d}")]), "pk="),
    *(((lambda pk=pk: require_consistent((), [Event("forged", pk=pk, sk="SK")])), f"pk={pk!r}: expected a key that cannot match the reserved 'LEASES#") for pk in ("LEASES#{name}", "LEASES#{name}#{customer}", "LEASES#calls#a#b#{d}")),
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), _REFUSED, ids=lambda part: part if isinstance(part, str) else "")
def test_the_error_names_argument_value_and_what_is_allowed(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        make()

    assert str(refused.value).startswith(f"invalid {message}")
