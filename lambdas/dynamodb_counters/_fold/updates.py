"""Update requests: what to add to an item, told once for the stream, transactions and plain increments."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from dynamodb_counters._fold.compiler import Program
from dynamodb_counters._fold.contributions import GroupKey
from dynamodb_counters._items.decimals import Number, typed_number
from dynamodb_counters._items.table_schema import LEADERBOARD, PK, SCORE, SK, TTL, TYPE


class Update:
    """An UpdateItem request in the making.

    Parameters
    ----------
    program : Program
        The declaration the item belongs to.
    group : tuple
        The item's group.
    measures : mapping of str to int or Decimal
        What to add; zeros are left out.
    feed : str
        Where the numbers come from: a stream shard, or anything that varies. Decides which item of a spread group it
        is.
    """

    def __init__(self, program: Program, group: GroupKey, measures: Mapping[str, Number], feed: str) -> None:
        self.key = program.key(group, feed)
        self._added = {name: typed_number(number) for name, number in measures.items() if number}
        self._set = {TYPE: {"S": program.name}}
        self._below: dict[str, dict[str, str]] = {}
        ranked = program.board(group, self.key)
        if ranked is not None:
            board, by = ranked
            self._set[LEADERBOARD] = {"S": board}
            self._added[SCORE] = typed_number(measures.get(by, 0))
        for name, text in program.unparsed(group, self.key).items():
            self._set[name] = {"S": text}
        expires_at = program.expires_at(group)
        if expires_at is not None:
            self._set[TTL] = {"N": str(expires_at)}

    def set(self, name: str, value: dict[str, str]) -> None:
        """Set an attribute to a typed value.

        Parameters
        ----------
        name : str
            Attribute name.
        value : dict
            Typed value.
        """
        self._set[name] = value

    def require_unset_or_below(self, name: str, value: dict[str, str]) -> None:
        """Write only if an attribute is missing or less than a value.

        Parameters
        ----------
        name : str
            Attribute name.
        value : dict
            Typed value.
        """
        self._below[name] = value

    def request(self, table_name: str) -> dict[str, Any]:
        """Give the request's arguments.

        Parameters
        ----------
        table_name : str
            The table to write to.

        Returns
        -------
        dict
            Arguments of UpdateItem, or of ``Update`` in a transaction.
        """
        arguments, words = _wording(tuple(self._set), tuple(self._added), tuple(self._below))
        values = (*self._set.values(), *self._added.values(), *self._below.values())
        request = arguments.copy()
        request["TableName"] = table_name
        request["Key"] = {PK: {"S": self.key[PK]}, SK: {"S": self.key[SK]}}
        request["ExpressionAttributeValues"] = dict(zip(words, values, strict=True))
        return request


@lru_cache(maxsize=1024)
def _wording(
    to_set: tuple[str, ...], to_add: tuple[str, ...], below: tuple[str, ...]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Put an update into words: arguments, and what stands for its values. All items of an aggregate share a few."""
    names: dict[str, str] = {name: f"#n{place}" for place, name in enumerate(dict.fromkeys(to_set + to_add + below))}
    values = tuple(f":v{place}" for place in range(len(to_set) + len(to_add) + len(below)))
    words = iter(values)
    update = "SET " + ", ".join([f"{names[name]} = {next(words)}" for name in to_set])
    if to_add:
        update += " ADD " + ", ".join([f"{names[name]} {next(words)}" for name in to_add])
    arguments: dict[str, Any] = {
        "UpdateExpression": update,
        "ExpressionAttributeNames": {word: name for name, word in names.items()},
    }
    if below:
        conditions = [f"(attribute_not_exists({names[name]}) OR {names[name]} < {next(words)})" for name in below]
        arguments["ConditionExpression"] = " AND ".join(conditions)
    return arguments, values
