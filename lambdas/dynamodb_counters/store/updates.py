"""Update requests: what to add to an item, told once for the stream, transactions and plain increments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynamodb_counters.compiler import Program
from dynamodb_counters.contributions import GroupKey
from dynamodb_counters.decimals import Number
from dynamodb_counters.schema import BOARD, SCORE, TTL, TYPE
from dynamodb_counters.store.items import typed_number


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
        self._names: dict[str, str] = {}
        self._values: dict[str, dict[str, str]] = {}
        self._set: list[str] = []
        self._add: list[str] = []
        self._conditions: list[str] = []
        for name, number in measures.items():
            if number:
                self._add.append(f"{self._name(name)} {self._value(typed_number(number))}")
        ranked = program.board(group, self.key)
        if ranked is not None:
            board, by = ranked
            self.set(BOARD, {"S": board})
            self._add.append(f"{self._name(SCORE)} {self._value(typed_number(measures.get(by, 0)))}")
        self.set(TYPE, {"S": program.name})
        for name, text in program.unparsed(group, self.key).items():
            self.set(name, {"S": text})
        expires_at = program.expires_at(group)
        if expires_at is not None:
            self.set(TTL, {"N": str(expires_at)})

    def set(self, name: str, value: dict[str, str]) -> None:
        """Set an attribute to a typed value.

        Parameters
        ----------
        name : str
            Attribute name.
        value : dict
            Typed value.
        """
        self._set.append(f"{self._name(name)} = {self._value(value)}")

    def require_unset_or_below(self, name: str, value: dict[str, str]) -> None:
        """Write only if an attribute is missing or less than a value.

        Parameters
        ----------
        name : str
            Attribute name.
        value : dict
            Typed value.
        """
        placeholder = self._name(name)
        self._conditions.append(f"(attribute_not_exists({placeholder}) OR {placeholder} < {self._value(value)})")

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
        clauses = ["SET " + ", ".join(self._set)]
        if self._add:
            clauses.append("ADD " + ", ".join(self._add))
        request: dict[str, Any] = {
            "TableName": table_name,
            "Key": {name: {"S": text} for name, text in self.key.items()},
            "UpdateExpression": " ".join(clauses),
            "ExpressionAttributeNames": {placeholder: name for name, placeholder in self._names.items()},
            "ExpressionAttributeValues": self._values,
        }
        if self._conditions:
            request["ConditionExpression"] = " AND ".join(self._conditions)
        return request

    def _name(self, name: str) -> str:
        return self._names.setdefault(name, f"#n{len(self._names)}")

    def _value(self, value: dict[str, str]) -> str:
        placeholder = f":v{len(self._values)}"
        self._values[placeholder] = value
        return placeholder
