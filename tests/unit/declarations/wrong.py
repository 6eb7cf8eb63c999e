"""Wrong declarations: what one might write, and the error that says how to fix it.

One per line, as in the documentation.
"""

# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

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
    Items,
    Percentiles,
    Ranking,
    Sum,
    TableKeys,
    Threshold,
    TimeWeighted,
    Window,
)
from dynamodb_counters._declarations import flatten, require_consistent

PATH = Event("path", pk="PLAYER#{player}", sk="PATH#{path}")
TYPED = Event("typed", pk="T#{user}", sk="T", attributes={"user": str, "plan": Attribute(str, one_of=["free", "pro"])})
PLAYERS = Aggregate("players", PATH, pk="PLAYER#{player}", sk="STATISTICS", measures={"paths": Count()})


@dataclass(frozen=True)
class Wrong:
    mistake: str
    make: Callable[[], object]
    argument: str
    value: str
    expected: str


def _any(value: Any) -> Any:
    return value


def _aggregate(name: str = "a", source: Any = PATH, **changes: Any) -> Aggregate:
    arguments: dict[str, Any] = {"pk": "A", "sk": "ALL", "measures": {"n": Count()}}
    return Aggregate(name, source, **{**arguments, **changes})


def _together(*declared: Any) -> Callable[[], object]:
    return lambda: require_consistent(flatten(declared))


def _a(**changes: Any) -> Callable[[], object]:
    return lambda: _aggregate(**changes)


def _bins(**bins: Any) -> Callable[[], object]:
    return lambda: Histogram("paths", **bins)


_SHARDED = _aggregate("sharded", write_shards=4)
_RANKED = _aggregate("ranked", pk="R#{player}", ranking=Ranking(measure="n", leaderboard="PLAYERS"))

WRONG = [
    Wrong("a source by its name", _a(source="path"), "source", "'path'", "an Event, Items or Aggregate"),
    Wrong("a source that is not declared", _together(_aggregate(source=PLAYERS)), "source", "'players'", "a declared aggregate; declare it together with 'a'"),
    Wrong("two of one name", _together(_aggregate(), _aggregate(pk="B")), "name", "'a'", "one declaration per name; rename one of the two"),
    Wrong("two that write one item", _together(_aggregate("a", pk="A#{player}"), _aggregate("b", pk="A#TOTAL")), "sk", "'ALL'", "a key that cannot match items of 'a'; change pk or sk of 'b'"),
    Wrong("one that could write an event", _together(_aggregate(pk="PLAYER#{player}", sk="PATH#{x}")), "sk", "'PATH#{x}'", "a key that cannot match items of 'path'; change pk or sk of 'a'"),
    Wrong("a key of the quarantine", _together(_aggregate(pk="QUARANTINE#{player}")), "pk", "'QUARANTINE#{player}'", "a key that cannot match the reserved 'QUARANTINE#{number}'"),
    Wrong("a key of checkpoints and of the registry", _together(_aggregate(pk="CHECKPOINT#{player}")), "pk", "'CHECKPOINT#{player}'", "a key that cannot match the reserved 'CHECKPOINT#{number}'"),
    Wrong("a name of the runtime", _a(name="quarantine"), "name", "'quarantine'", "a letter, then up to 63 letters, digits, '-' or '_'; not 'quarantine'"),
    Wrong("a name with a tilde", _a(name="a~1"), "name", "'a~1'", "a letter, then up to 63 letters, digits, '-' or '_'; not 'quarantine'"),
    Wrong("a group by a reserved attribute", _a(pk="A#{ttl}"), "pk", "'A#{ttl}'", "fields that are not reserved (pk, sk, ttl, _…)"),
    Wrong("a measure of a reserved name", _a(measures={"ttl": Count()}), "measures", "'ttl'", "names of letters, digits, '-' and '_' that are not reserved"),
    Wrong("a sum over the members of a list", lambda: Sum("lines[].quantity"), "attribute", "'lines[].quantity'", "an attribute of the item, not of a list's members"),
    Wrong("a filter on the members of a list", _a(where=Attr("tags[]").eq("a")), "where", "'tags[]'", "an attribute of the item, not of a list's members"),
    Wrong("a window's time in a list", lambda: Window("w", PATH, time="lines[].at"), "time", "'lines[].at'", "an attribute of the item, not of a list's members"),
    Wrong("a sum of bookkeeping", lambda: Sum("_w:123"), "attribute", "'_w:123'", "an attribute name that is not reserved (pk, sk, ttl, _…)"),
    Wrong("a filter on bookkeeping", _a(where=Attr("_type").eq("path")), "where", "'_type'", "attribute names that do not start with '_'"),
    Wrong("a group by what the source lacks", _a(source=PLAYERS, pk="A#{team}"), "pk", "'team'", "attributes of 'players': player, paths"),
    Wrong("a group by a measure of the source", _a(source=PLAYERS, pk="A#{paths}"), "pk", "'paths'", "a string; 'paths' is a number"),
    Wrong("a measure of what the source lacks", _a(source=PLAYERS, measures={"n": Sum("points")}), "measures", "'points'", "attributes of 'players': player, paths"),
    Wrong("a measure of a field, which is text", _a(source=PLAYERS, measures={"n": Sum("player")}), "measures", "'player'", "a number; 'player' is a string"),
    Wrong("a filter that never holds", _a(source=PLAYERS, where=Attr("paths").ge("3")), "where", "'3'", "what 'paths' can be compared with: it is a number"),
    Wrong("an aggregate over one with several write shards", _a(source=_SHARDED), "source", "'sharded'", "an aggregate with write_shards=1"),
    Wrong("a ranking by a histogram", _a(measures={"h": Histogram("n", exactly=[1])}, ranking=Ranking(measure="h", leaderboard="B")), "ranking", "'h'", "a Count or Sum of the aggregate"),
    Wrong("a leaderboard by what is not of the group", _a(ranking=Ranking(measure="n", leaderboard="B#{team}")), "ranking", "'B#{team}'", "fields of the group: none"),
    Wrong("two on one leaderboard", _together(_RANKED, _aggregate("b", pk="B#{player}", ranking=Ranking(measure="n", leaderboard="PLAYERS"))), "leaderboard", "'PLAYERS'", "a leaderboard that cannot hold groups of 'ranked'"),
    Wrong("a ranked group with several write shards", _a(write_shards=4, ranking=Ranking(measure="n", leaderboard="B")), "write_shards", "4", "1 for a ranked aggregate; set write_shards of its Ranking instead"),
    Wrong("a cap that is not exact", lambda: Sum("paths", cap=_any(0.1)), "cap", "0.1", "an int or Decimal (floats are not exact)"),
    Wrong("bins out of order", _bins(bounds=[5, 1]), "bounds", "(5, 1)", "1 to 100 ascending numbers"),
    Wrong("too many bins", _bins(exactly=range(101)), "exactly", "(0, 1, 2, 3,", "1 to 100 ascending numbers"),
    Wrong("no bins", _bins(), "exactly", "()", "bins for only one of exactly, at_least and bounds"),
    Wrong("two kinds of bins", _bins(exactly=[1], at_least=[1]), "exactly", "(1,)", "bins for only one of exactly, at_least and bounds"),
    Wrong("bins that are not a sequence", _bins(at_least=5), "at_least", "5", "a sequence of numbers"),
    Wrong("no measures", _a(measures={}), "measures", "{}", "at least one measure, such as {'views': Count()}"),
    Wrong("a measure by its name", _a(measures={"n": "count"}), "measures", "'count'", "one of Count, Sum, Average, Histogram"),
    Wrong("too many attributes in one item", _a(measures={"a": Histogram("n", exactly=range(100)), "b": Histogram("n", exactly=range(50))}), "measures", "['a', 'b']", "at most 120 attributes in total"),
    Wrong("a filter that is text", _a(where="paths > 3"), "where", "'paths > 3'", "a Condition such as Attr('status').eq('paid')"),
    Wrong("a filter of members that is text", lambda: Distinct("d", PATH, member="player", where=_any("paths > 3")), "where", "'paths > 3'", "a Condition such as Attr('status').eq('paid')"),
    Wrong("a template that cannot be read back", _a(pk="A#{player}!"), "pk", "'A#{player}!'", "text after a field that starts with '#'"),
    Wrong("an unknown expiry policy", _a(on_expiry="forget"), "on_expiry", "'forget'", "one of 'keep', 'subtract'"),
    Wrong("a counter of attributes", lambda: Counter("stock", total=Sum("total")), "measures", "Sum(attribute='total'", "a Count: no item has attributes to look at"),
    Wrong("a counter of the members of a list", lambda: Counter("stock", by="tags[]"), "by", "'tags[]'", "an attribute of the item, not of a list's members"),
    Wrong("an event key from a list", lambda: Event("e", pk="TAG#{tags[]}", sk="E"), "pk", "'TAG#{tags[]}'", "fields that are plain attributes, not parts of maps, list members or derived fields"),
    Wrong("items without a condition", lambda: Items("i", where=_any(Any)), "where", "typing.Any", "a Condition such as Attr('status').eq('paid')"),
    Wrong("a sort key's form without a sort key", lambda: Items("i", sk="ORDER#{order}", keys=TableKeys("id")), "sk", "'ORDER#{order}'", "None: keys= names no sort_key"),
    Wrong("a field in both keys", lambda: Items("i", pk="A#{x}", sk="B#{x}"), "sk", "'B#{x}'", "fields that pk does not have"),
    Wrong("keys by their names", lambda: Items("i", keys=_any("id")), "keys", "'id'", "a TableKeys, or None for the keys 'pk' and 'sk'"),
    Wrong("two keys of one name", lambda: TableKeys("id", "id"), "sort_key", "'id'", "a different attribute for each key and the TTL"),
    Wrong("no partition key", lambda: TableKeys(""), "partition_key", "''", "an attribute name"),
    Wrong("no name of the TTL", lambda: TableKeys("id", ttl=""), "ttl", "''", "an attribute name"),
    Wrong("items of two tables", _together(_aggregate("a", source=Items("i", keys=TableKeys("id"))), _aggregate("b", pk="B", source=Items("j", keys=TableKeys("key")))), "keys", "TableKeys(partition_key='key', sort_key=None, ttl=None)", "those of 'i', which lies in the same table"),
    Wrong("members that are the group", lambda: Distinct("d", PATH, pk="D#{player}", sk="D", member="player"), "member", "'player'", "an attribute that is not part of the group's key"),
    Wrong("a retention of groups without a time", lambda: Distinct("d", PATH, pk="D", sk="D", member="player", retention=timedelta(days=1)), "retention", "datetime.timedelta(days=1)", "None, or exactly one time that groups, such as at:day"),
    Wrong("a retention of groups with two times", lambda: Distinct("d", PATH, pk="D#{at:month}", sk="D#{at:day}", member="player", retention=timedelta(days=1)), "retention", "datetime.timedelta(days=1)", "None, or exactly one time that groups, such as at:day"),
    Wrong("a time among the members that is to end a retention", lambda: Distinct("d", PATH, pk="D", sk="D", member="at:day", retention=timedelta(days=1)), "retention", "datetime.timedelta(days=1)", "None, or exactly one time that groups, such as at:day"),
    Wrong("a retention that is none", lambda: Distinct("d", PATH, pk="D", sk="D#{at:day}", member="player", retention=timedelta(0)), "retention", "datetime.timedelta(0)", "a timedelta of 1 second or more, or None"),
    Wrong("members that expire, and are subtracted", lambda: Distinct("d", PATH, pk="D", sk="D#{at:day}", member="player", on_expiry="subtract", retention=timedelta(days=1)), "on_expiry", "'subtract'", "'keep' with a retention: its counts stay"),
    Wrong("percentiles of no error", lambda: Percentiles("p", PATH, attribute="ms", error=0), "error", "0", "a number from 0.001 to 0.5"),
    Wrong("percentiles of an error that is none", lambda: Percentiles("p", PATH, attribute="ms", error=_any("1%")), "error", "'1%'", "a number from 0.001 to 0.5"),
    Wrong("percentiles of groups", lambda: Percentiles("p", _any(PLAYERS), attribute="paths"), "source", "Aggregate('players', …)", "an Event or Items"),
    Wrong("percentiles to the second", lambda: Percentiles("p", PATH, attribute="ms", time="at", precision=timedelta(seconds=1)), "precision", "datetime.timedelta(seconds=1)", "1 minute, 1 hour or 1 day"),
    Wrong("percentiles of a group that is their time", lambda: Percentiles("p", PATH, by="at:hour", attribute="ms", time="at"), "by", "('at:hour',)", "fields other than 'at:hour', which the time is"),
    Wrong("percentiles of a bookkeeping attribute", lambda: Percentiles("p", PATH, attribute="_ms"), "attribute", "'_ms'", "an attribute name that is not reserved (pk, sk, ttl, _…)"),
    Wrong("a threshold over a rolling window", lambda: Threshold("plan", _any(Window("w", PATH, pk="P#{player}", time="at")), at=[1]), "aggregate", "Window('w', …)", "an Aggregate or Distinct, whose items show each change; instead of a Window, one by at:month"),
    Wrong("a threshold over active members", lambda: Threshold("busy", _any(ActiveMembers("a", PATH, member="player", time="at")), at=[1]), "aggregate", "ActiveMembers('a', …)", "an Aggregate or Distinct, whose items show each change; instead of a Window, one by at:month"),
    Wrong("a threshold over write shards", lambda: Threshold("plan", Aggregate("hot", PATH, by="player", write_shards=4), at=[1]), "aggregate", "'hot'", "one with write_shards=1: a group is one item"),
    Wrong("a threshold without levels", lambda: Threshold("plan", PLAYERS, at=[]), "at", "[]", "1 to 20 ascending numbers"),
    Wrong("a threshold with a level twice", lambda: Threshold("plan", PLAYERS, at=[1, 1]), "at", "[1, 1]", "1 to 20 ascending numbers"),
    Wrong("a threshold at a float", lambda: Threshold("plan", PLAYERS, at=[_any(0.8)]), "at", "0.8", "an int or Decimal (floats are not exact)"),
    Wrong("a threshold at one number", lambda: Threshold("plan", PLAYERS, at=_any(10)), "at", "10", "a sequence of numbers"),
    Wrong("a threshold of a measure that is not there", lambda: Threshold("plan", PLAYERS, at=[1], measure="units"), "measure", "'units'", "a Count, Sum or Average of 'players': paths"),
    Wrong("a threshold in a direction that is none", lambda: Threshold("plan", PLAYERS, at=[1], direction=_any("above")), "direction", "'above'", "one of 'up', 'down', 'both'"),
    Wrong("two thresholds of one name", lambda: flatten([PLAYERS, Threshold("plan", PLAYERS, at=[1]), Threshold("plan", PLAYERS, at=[2])]), "name", "'plan'", "one threshold per name"),
    Wrong("a threshold over what is not declared", lambda: flatten([Threshold("plan", PLAYERS, at=[1])]), "aggregate", "'players'", "a declared aggregate; declare it together with 'plan'"),
    Wrong("active members of the group", lambda: ActiveMembers("m", PATH, by="player", member="player", time="at"), "member", "'player'", "an attribute other than 'gap' and those of `by`"),
    Wrong("active members over a span that is too long", lambda: ActiveMembers("m", PATH, member="player", time="at", longest=timedelta(days=187)), "longest", "datetime.timedelta(days=187)", "1 to 186 times the precision, 1 day, 0:00:00"),
    Wrong("active members over parts of a day", lambda: ActiveMembers("m", PATH, member="player", time="at", longest=timedelta(hours=36)), "longest", "datetime.timedelta(days=1, seconds=43200)", "1 to 186 times the precision, 1 day, 0:00:00"),
    Wrong("active members of a day", lambda: ActiveMembers("m", PATH, by="at:day", member="player", time="at"), "by", "('at:day',)", "fields other than 'gap' and 'at:day'"),
    Wrong("a level that forgets", lambda: Window("w", PATH, time="at", measure=TimeWeighted("seats"), retention=timedelta(days=9)), "retention", "datetime.timedelta(days=9)", "None: a level is the sum of all changes before"),
    Wrong("an aggregate of a level", _a(measures={"seats": _any(TimeWeighted("seats"))}), "measures", "TimeWeighted(attribute='seats', default=None)", "one of Count, Sum, Average, Histogram"),
    Wrong("an event without its key's fields", lambda: Event("e", pk="E#{id}", sk="E", attributes={"ide": str}), "pk", "'id'", "attributes of 'e': ide"),
    Wrong("a group by what the event lacks", _a(source=TYPED, pk="A#{usr}"), "pk", "'usr'", "attributes of 'typed': user, plan"),
    Wrong("a sum of text", _a(source=TYPED, measures={"n": Sum("user")}), "measures", "'user'", "a number; 'user' is a string"),
    Wrong("a filter for what no event has", _a(source=TYPED, where=Attr("plan").eq("gold")), "where", "'gold'", "what 'plan' can be: one of 'free', 'pro'"),
    Wrong("a type that DynamoDB does not store", lambda: Attribute(complex), "type", "<class 'complex'>", "str, int, Decimal, float, bool, bytes, datetime, date, UUID, an Enum or Literal, list, dict or object; a dataclass, TypedDict or pydantic model"),
    Wrong("more write shards than a read can add up", _a(write_shards=1000), "write_shards", "1000", "an int from 1 to 100"),
    Wrong("more groups of one item than an invocation can write", _a(max_groups=100_000), "max_groups", "100000", "an int from 1 to 10000"),
    Wrong("a name twice in one group", _a(pk="A#{mean.sum}", measures={"mean": Average("n")}), "measures", "'mean.sum'", "attributes that are not fields of the key"),
]  # fmt: skip
"""At least twenty."""
