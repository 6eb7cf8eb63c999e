"""The leaderboard: three ADDs and a query per record, or aggregates over a per-player count; and ranks of all players.

The former are those of reference 004: Building aggregations with DynamoDB Streams (2023).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any, Final

from benchmarks import workloads
from benchmarks.databases import TABLE, MemoryDatabase, memory, per_event, read_usage, since
from benchmarks.designs.ours import Ours
from benchmarks.queue_and_stream import Stream, chunks, deliver_steadily
from dynamodb_counters import Aggregate, Count, Counters, Event, Histogram, Ranks, Sum
from dynamodb_counters import Counter as Direct
from dynamodb_counters._writes.accept import accept_many

_MOST_PATHS: Final = 12
_PATH = Event("path", pk="USER#{user}", sk="PATH#{path}")
_PER_PLAYER = Aggregate("per_player", _PATH, pk="USER#{user}", sk="COUNT", measures={"paths": Count()})
_PLAYERS = Aggregate(
    "players",
    _PER_PLAYER,
    pk="AGGREGATES",
    sk="ALL",
    measures={
        "players": Count(),
        "total": Sum("paths", cap=_MOST_PATHS),
        "found": Histogram("paths", exactly=range(1, _MOST_PATHS + 1)),
    },
)


_MOST_POINTS: Final = 9_999_999
_POINTS = Direct("points", by="player")
_BOARD = Ranks("board", _POINTS, score="points", least=0, most=_MOST_POINTS)


class _OursOnPaths(Ours):
    declarations = (_PER_PLAYER, _PLAYERS)


class _OursOnPoints(Ours):
    declarations = (_POINTS, *_BOARD._parts)


def three_adds(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the reference's way: batches of 10, for each record a query and two or three updates."""
    database = memory()
    client = database.client

    def add(sk: str) -> None:
        client.update_item(
            TableName=TABLE,
            Key={"pk": {"S": "AGGREGATES"}, "sk": {"S": sk}},
            UpdateExpression="ADD data_value :d",
            ExpressionAttributeValues={":d": {"N": "1"}},
            ReturnValues="UPDATED_NEW",
        )

    def aggregate(records: Sequence[Mapping[str, Any]]) -> None:
        for record in records:
            if record["eventName"] == "INSERT" and "user_submitted_path" in record["dynamodb"]["NewImage"]:
                paths = client.query(
                    TableName=TABLE,
                    KeyConditionExpression="pk = :pk",
                    ExpressionAttributeValues={":pk": record["dynamodb"]["Keys"]["pk"]},
                )["Count"]
                if paths <= _MOST_PATHS:
                    add("TOTAL_PATHS_FOUND")
                    add(f"{paths}_PATHS_FOUND")
                    if paths == 1:
                        add("TOTAL_PLAYERS")

    # The stream is behind by a batch: a query sees what is in the table at that time.
    stream = Stream(database, TABLE, 10)
    for part in chunks(pairs, 10):
        for user, path in part:
            item = {"pk": {"S": f"USER#{user}"}, "sk": {"S": f"PATH#{path}"}, "user_submitted_path": {"S": path}}
            client.put_item(TableName=TABLE, Item=item)
        stream.drain(aggregate)
    values = {item["sk"]["S"]: int(item["data_value"]["N"]) for item in database.items(TABLE) if "data_value" in item}
    # Its "X paths" counts players that found at least X.
    at_least = [values.get(f"{number}_PATHS_FOUND", 0) for number in range(1, _MOST_PATHS + 1)]
    return _figures(database, pairs, [values["TOTAL_PLAYERS"], values["TOTAL_PATHS_FOUND"], *at_least])


def ours(pairs: Sequence[tuple[str, str]], batch: int) -> dict[str, Any]:
    """Declare aggregates, as this project does, and count while events keep coming."""
    counting = _OursOnPaths(database := MemoryDatabase())
    deliver_steadily(
        lambda part: accept_many(counting.table, _PATH, [{"user": user, "path": path} for user, path in part]),
        Stream(database, TABLE, batch),
        counting.aggregate,
        pairs,
    )
    [item] = [item for item in database.items(TABLE) if item["pk"]["S"] == "AGGREGATES"]
    counted = Counter({name: int(value["N"]) for name, value in item.items() if "N" in value})
    exactly = [counted[f"found.{number}"] for number in range(1, _MOST_PATHS + 1)]
    more = counted["players"] - sum(exactly)
    at_least = [sum(exactly[index:]) + more for index in range(_MOST_PATHS)]
    return _figures(database, pairs, [counted["players"], counted["total"], *at_least])


def measure(players: int, batch: int) -> dict[str, Any]:
    pairs = workloads.leaderboard(players)
    return {"three_adds": three_adds(pairs), "accept_and_watermark": ours(pairs, batch)}


def ranks(members: int, batches: Sequence[int]) -> dict[str, Any]:
    """Units and calls of a score that changes, beside its own update, by batch; and of each question."""
    rows = {}
    for batch in batches:
        rng, counting = random.Random(7), _OursOnPoints(database := MemoryDatabase())
        counters, stream = Counters(TABLE, client=database.client, clock=database.clock), Stream(database, TABLE, batch)

        def increment(player: int, amount: int, counters: Counters = counters) -> None:
            counters.increment(_POINTS, player=f"p{player}", amount=amount)

        for player in range(members):
            increment(player, min(_MOST_POINTS // 2, int(rng.lognormvariate(10, 1.5)) + 1))
        stream.drain(counting.aggregate)
        before, changes = copy(database.usage), 2 * batch
        for _ in range(changes):
            increment(rng.randrange(members), rng.randrange(1, 5_000))
        stream.drain(counting.aggregate)
        usage = since(before, database.usage)
        units, calls = usage.writes / changes - 1, usage.calls / changes - 1
        rows[f"a change, in batches of {batch:,}"] = {"units": units, "calls": calls}
    asked: dict[str, Any] = {
        "the rank of a score": partial(counters.rank, _BOARD, score=50_000),
        "the rank of a member": partial(counters.rank, _BOARD, player="p7"),
        "the score of a rank": partial(counters.at, _BOARD, rank=members // 2),
        **{
            f"how many from 1,000 to {high:,}": partial(counters.between, _BOARD, low=1_000, high=high)
            for high in (1_999, 50_000)
        },
    }
    counters.rank(_BOARD, score=1)  # Reads which names are counted, once a minute.
    return {**rows, **{name: read_usage(database.usage, read) for name, read in asked.items()}}


def _figures(database: MemoryDatabase, pairs: Sequence[tuple[str, str]], counted: list[int]) -> dict[str, Any]:
    """Compare players, paths and players per number of paths with the truth."""
    paths = Counter(user for user, _ in set(pairs))
    at_least = [sum(count >= number for count in paths.values()) for number in range(1, _MOST_PATHS + 1)]
    right = [len(paths), sum(min(count, _MOST_PATHS) for count in paths.values()), *at_least]
    wrong = sum(abs(actual - expected) for actual, expected in zip(counted, right, strict=True))
    return {**per_event(database.usage, len(pairs)), "exact": wrong == 0, "error_percent": 100 * wrong / sum(right)}
