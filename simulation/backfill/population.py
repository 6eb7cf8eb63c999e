"""Writers of backfill schedules: items of other code, plain and packed events; inserted, changed, deleted, expired."""

from __future__ import annotations

import random
from typing import Any

from dynamodb_counters._table import Table
from dynamodb_counters._writes.accept import accept, accept_many, retract
from simulation.backfill.subjects import TAP, VISIT
from simulation.faults.disorder import in_disorder
from simulation.schedules.backend import Backend

_CUSTOMERS = ("ann", "bob", "c#d")
_SPOILED = 0.4
"""Share of prices that are none, and of tags that are no list, if orders are spoiled."""


class Population:
    """What a seed makes of a table's items; each call is one change, `left` says how many are to come."""

    def __init__(
        self, backend: Backend, rng: random.Random, operations: int, *, expires: bool = True, spoils: bool = False
    ) -> None:
        self._backend = backend
        self._spoils = spoils
        self._random = rng
        self._table = Table(backend.name, backend.client, "put", backend.clock, jitter=rng.random)
        self._table.__dict__["side_by_side"] = in_disorder(rng)
        self._taps: list[dict[str, Any]] = []
        self._expires = expires
        self.left = operations

    def write(self) -> None:
        """One random change."""
        self.left -= 1
        draw = self._random
        kind = draw.choice((self._order, self._order, self._order, self._visit, self._visit, self._tap))
        kind()

    def expire(self) -> None:
        self._backend.expire(self._random.randint(1, 3))

    def touch(self) -> None:
        """A change that the stream is sure to tell."""
        self._put("ORDER#touch", self._order_values())

    def _order(self) -> None:
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
        return {**values, "ttl": expires_at} if self._expires else values

    def _is_spoiled(self) -> bool:
        return self._spoils and self._random.random() < _SPOILED

    def _visit(self) -> None:
        draw = self._random
        values: dict[str, Any] = {"page": draw.choice("ab"), "id": str(draw.randrange(6))}
        chance = draw.random()
        if chance < 0.2:
            retract(self._table, VISIT, values)
            return
        values |= {"client": draw.choice("uvw"), "weight": draw.randint(1, 5), "at": self._time()}
        outcome = accept(self._table, VISIT, values)
        if outcome.status in ("duplicate", "conflict") and chance < 0.7:
            self._replace(values)

    def _replace(self, values: dict[str, Any]) -> None:
        """Replace an event whole, as other code may."""
        key = {"pk": {"S": f"PAGE#{values['page']}"}, "sk": {"S": f"VISIT#{values['id']}"}}
        client, name = self._backend.client, self._backend.name
        found = client.get_item(TableName=name, Key=key, ConsistentRead=True).get("Item")
        if found:
            new = {
                "client": {"S": values["client"]},
                "weight": {"N": str(values["weight"])},
                "at": {"N": str(values["at"])},
            }
            client.put_item(TableName=name, Item={**found, **new})

    def _time(self) -> int:
        return int(self._backend.clock()) - self._random.choice((0, 60, 600, 3000))

    def _tap(self) -> None:
        draw = self._random
        if self._taps and draw.random() < 0.15:
            retract(self._table, TAP, draw.choice(self._taps))
            return
        events = []
        for _ in range(draw.randint(1, 4)):
            if self._taps and draw.random() < 0.4:
                event = dict(draw.choice(self._taps))
                event["version"] += draw.randint(0, 1)
            else:
                event = {"device": draw.choice("kl"), "id": draw.randrange(1000), "at": self._time(), "version": 1}
            event["force"] = draw.randint(1, 5)
            events.append(event)
        self._taps += events
        accept_many(self._table, TAP, events)
