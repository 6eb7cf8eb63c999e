"""Orders: items of other code, which inserts, corrects and deletes them."""

from __future__ import annotations

import random
from typing import Any, Final

from simulation.schedules.backend import Backend

_CUSTOMERS: Final = ("ann", "bob", "c#d")
_SPOILED: Final = 0.4
"""Share of prices that are none, and of tags that are no list, if orders are spoiled."""


class Orders:
    """The orders of a table, changed at random."""

    def __init__(self, backend: Backend, rng: random.Random, *, spoils: bool) -> None:
        self._backend = backend
        self._random = rng
        self._spoils = spoils

    def touch(self) -> None:
        """A change that is sure to have a record."""
        self._put("ORDER#touch", self._order_values())

    def change(self) -> None:
        """Insert, correct or delete an order."""
        draw = self._random
        pk = f"ORDER#{draw.randrange(7)}"
        key = {"pk": {"S": pk}, "sk": {"S": "ORDER"}}
        client, name = self._backend.client, self._backend.name
        found = client.get_item(TableName=name, Key=key, ConsistentRead=True).get("Item")
        chance = draw.random()
        if found and chance < 0.3:
            client.delete_item(TableName=name, Key=key)
        elif found and chance < 0.6:
            # A correction in place; often it moves the item to another group.
            attribute, value = draw.choice(list(self._order_values().items()))
            client.update_item(
                TableName=name,
                Key=key,
                UpdateExpression="SET #a = :v",
                ExpressionAttributeNames={"#a": attribute},
                ExpressionAttributeValues={":v": value},
            )
        else:
            self._put(pk, self._order_values())

    def _put(self, pk: str, values: dict[str, Any]) -> None:
        item = {"pk": {"S": pk}, "sk": {"S": "ORDER"}, **values}
        if self._random.random() < 0.1:
            # No order, as long as it stays so.
            del item["customer"]
        self._backend.client.put_item(TableName=self._backend.name, Item=item)

    def _order_values(self) -> dict[str, Any]:
        draw = self._random
        expires_at = {"N": str(int(self._backend.clock()) + draw.choice((300, 1800, 10**7)))}
        values = {
            "customer": {"S": draw.choice(_CUSTOMERS)},
            "shop": {"S": draw.choice("xyz")},
            "price": {"S": "dear"} if self._is_spoiled() else {"N": str(draw.randint(1, 9))},
            "size": {"N": str(draw.randint(1, 5))},
            "tags": {"N": "1"}
            if self._is_spoiled()
            else {"L": [{"S": tag} for tag in draw.sample("pqr", draw.randint(0, 3))]},
        }
        return {**values, "ttl": expires_at}

    def _is_spoiled(self) -> bool:
        return self._spoils and self._random.random() < _SPOILED
