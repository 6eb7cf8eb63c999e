"""Reads that come in parts: what DynamoDB leaves unprocessed is asked for again, and never taken for zero."""

from __future__ import annotations

from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event
from dynamodb_counters._reads.group_reads import GroupReads
from dynamodb_counters._table import Table
from tests.unit.writes.clients import ScriptedClient, scripted_table

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"n": Count()})


class _Reads(GroupReads):
    def __init__(self, table: Table) -> None:
        self._table = table


def _answer(arguments: dict[str, Any], most: int) -> dict[str, Any]:
    """Answer for the first keys: the group 7 has the count 7."""
    keys = arguments["RequestItems"]["table"]["Keys"]
    items = [{**key, "n": {"N": key["pk"]["S"].removeprefix("URL#")}} for key in keys[:most]]
    rest = {"table": {"Keys": keys[most:]}} if keys[most:] else {}
    return {"Responses": {"table": items}, "UnprocessedKeys": rest}


def _groups(count: int) -> list[tuple[Aggregate, dict[str, object]]]:
    return [(_VIEWS, {"url": str(number)}) for number in range(count)]


def test_unprocessed_keys_are_asked_for_again_after_a_pause() -> None:
    client = ScriptedClient(batch_get_item=[lambda arguments: _answer(arguments, 4)] * 3)
    pauses: list[float] = []

    groups = _Reads(scripted_table(client, pauses)).get_many(_groups(10), consistent=False)

    assert [group.measures["n"] for group in groups] == list(range(10))
    assert [len(arguments["RequestItems"]["table"]["Keys"]) for _, arguments in client.calls] == [10, 6, 2]
    assert len(pauses) == 2


def test_keys_that_stay_unprocessed_are_an_error_not_a_zero() -> None:
    client = ScriptedClient(batch_get_item=[lambda arguments: _answer(arguments, 0)] * 50)

    with pytest.raises(Exception, match="2 keys stayed unread"):
        _Reads(scripted_table(client)).get_many(_groups(2), consistent=False)
    assert len(client.calls) < 50


def test_a_call_asks_for_a_hundred_keys_at_most() -> None:
    client = ScriptedClient(batch_get_item=[lambda arguments: _answer(arguments, 100)] * 3)

    groups = _Reads(scripted_table(client)).get_many(_groups(250), consistent=False)

    assert [group.measures["n"] for group in groups] == list(range(250))
    assert sorted(len(arguments["RequestItems"]["table"]["Keys"]) for _, arguments in client.calls) == [50, 100, 100]


def test_a_key_asked_for_twice_is_read_once() -> None:
    client = ScriptedClient(batch_get_item=[lambda arguments: _answer(arguments, 100)])

    groups = _Reads(scripted_table(client)).get_many([*_groups(2), *_groups(2)], consistent=False)

    assert [group.measures["n"] for group in groups] == [0, 1, 0, 1]
    assert len(client.calls[0][1]["RequestItems"]["table"]["Keys"]) == 2


@pytest.mark.parametrize("consistent", [True, False])
def test_reads_are_as_consistent_as_asked(consistent: bool) -> None:
    client = ScriptedClient(get_item=[{}], batch_get_item=[lambda arguments: _answer(arguments, 100)])
    reads = _Reads(scripted_table(client))

    reads.get(_VIEWS, {"url": "1"}, consistent=consistent)
    reads.get_many(_groups(2), consistent=consistent)

    assert client.calls[0][1]["ConsistentRead"] is consistent
    assert client.calls[1][1]["RequestItems"]["table"]["ConsistentRead"] is consistent


def test_no_groups_cause_no_call() -> None:
    assert _Reads(scripted_table(ScriptedClient())).get_many([], consistent=False) == []
