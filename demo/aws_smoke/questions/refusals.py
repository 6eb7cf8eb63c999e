"""Capacity of writes that DynamoDB refuses, each kind on a table of its own: by its answers, and by CloudWatch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from botocore.exceptions import ClientError

from demo.aws_smoke.deployed import Deployed
from demo.aws_smoke.questions.metrics import metric
from demo.aws_smoke.questions.question import Answer
from dynamodb_counters._items.item_sizes import item_bytes, write_units

_TIMES: Final = 10
_KEY: Final[dict[str, Any]] = {"pk": {"S": "group"}, "sk": {"S": "count"}}
_ITEM: Final[dict[str, Any]] = {**_KEY, "w": {"N": "9"}, "text": {"S": "x" * 2500}}
_OTHER: Final[dict[str, Any]] = {**_KEY, "sk": {"S": "other"}}
_UNITS: Final = write_units(item_bytes(_ITEM))
_METRIC_SECONDS: Final = 400.0
"""Metrics come some minutes after what they measure."""

_Refused = Callable[[Any, str], Any]


def _put(client: Any, table: str) -> Any:
    exists = "attribute_not_exists(pk)"
    return client.put_item(TableName=table, Item=_ITEM, ConditionExpression=exists, ReturnConsumedCapacity="TOTAL")


def _guarded(table: str) -> dict[str, Any]:
    return {
        "TableName": table,
        "Key": _KEY,
        "UpdateExpression": "SET w = :w",
        "ConditionExpression": "w < :w",
        "ExpressionAttributeValues": {":w": {"N": "5"}},
    }


def _update(client: Any, table: str) -> Any:
    return client.update_item(**_guarded(table), ReturnConsumedCapacity="TOTAL")


def _cancel(client: Any, table: str) -> Any:
    writes = [{"Update": _guarded(table)}, {"Put": {"TableName": table, "Item": _OTHER}}]
    return client.transact_write_items(TransactItems=writes, ReturnConsumedCapacity="TOTAL")


def _insert(client: Any, table: str) -> Any:
    values = "{'pk': ?, 'sk': ?, 'w': ?, 'text': ?}"
    statement = {"Statement": f'INSERT INTO "{table}" VALUE {values}', "Parameters": [*_ITEM.values()]}
    return client.batch_execute_statement(Statements=[statement], ReturnConsumedCapacity="TOTAL")


REFUSED: Final[Mapping[str, tuple[_Refused, float]]] = {
    "Put": (_put, _UNITS),
    "Update": (_update, _UNITS),
    "Transaction": (_cancel, 2 * (_UNITS + write_units(item_bytes(_OTHER)))),
    "Insert": (_insert, _UNITS),
}
"""Kinds of refused writes, and the units that each is assumed to consume."""


def in_answers(deployed: Deployed) -> Answer:
    """Store an item on each table, have writes refused, and read the capacity of their answers."""
    client = deployed.account.client("dynamodb")
    found: dict[str, float | None] = {}
    for name, (refused, _) in REFUSED.items():
        table = deployed.outputs[f"Refuses{name}"]
        client.put_item(TableName=table, Item=_ITEM)
        for _ in range(_TIMES):
            found[name] = _capacity(refused, client, table)
    deployed.not_emulated("reports a flat capacity")
    text = ", ".join(f"{name} {'none' if units is None else f'{units:g}'}" for name, units in found.items())
    assumed = {name: _UNITS if name == "Insert" else None for name in REFUSED}
    return Answer(f"write units in the answer: {text}", found == assumed)


def _capacity(refused: _Refused, client: Any, table: str) -> float | None:
    try:
        answer = refused(client, table)
        # A batch of statements is answered, whatever becomes of each.
        assert answer["Responses"][0]["Error"]["Code"] == "DuplicateItem", answer
    except ClientError as error:
        answer = error.response
    capacity = answer.get("ConsumedCapacity")
    return None if not capacity else sum(one["CapacityUnits"] for one in _listed(capacity))


def _listed(capacity: Any) -> list[Any]:
    return capacity if isinstance(capacity, list) else [capacity]


def in_metrics(deployed: Deployed) -> Answer:
    """Read by CloudWatch how much the same writes have consumed."""
    deployed.not_emulated("meters no capacity")
    assumed = {name: units for name, (_, units) in REFUSED.items()}

    def read() -> dict[str, float]:
        return {
            # One more write has stored the item.
            name: (_consumed(deployed, deployed.outputs[f"Refuses{name}"]) - _UNITS) / _TIMES
            for name in REFUSED
        }

    found = deployed.until(read, lambda found: found == assumed, _METRIC_SECONDS)
    shown = ", ".join(f"{name} {units:g} (assumed {assumed[name]:g})" for name, units in found.items())
    return Answer(f"write units of a refused write: {shown}", found == assumed)


def _consumed(deployed: Deployed, table: str) -> float:
    return metric(deployed, "AWS/DynamoDB", "ConsumedWriteCapacityUnits", {"TableName": table})
