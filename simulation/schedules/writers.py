"""The writers: events accepted and repeated, corrected, deleted by users and by TTL, from a seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from boto3.dynamodb.types import TypeSerializer

from dynamodb_counters._table import Table
from dynamodb_counters._writes.accept import accept, accept_many
from simulation.oracle.specs import BEYOND_ALL_TEXTS, LONGEST_TEXT, MOST_GROUPS, TRADE, Values, escaped
from simulation.oracle.truth import Change
from simulation.schedules.backend import Backend

Key = tuple[str, str]

# Together "a", "b#c" and "a#b", "c" make the same text, unless "#" is escaped.
_REGIONS: Final = ("a", "a#b", "", "50%", "é")
_DESKS: Final = ("b#c", "c", "%23", "x\ny")
_STATUSES: Final = ("open", "settled", "void")
_AMOUNTS: Final = (
    Decimal(1),
    Decimal(-1),
    Decimal(0),
    Decimal("0.1"),
    Decimal("-2.50"),
    Decimal("12345678901234567890123456789.0625"),
    10**30,
)
_TAGS: Final = ("t", "#", "50%")
_HOUR: Final = 3600


class Writers:
    """Writes to a table, and knows what it must hold.

    The share `poison` of all events cannot be counted; events are of that many `books`, each a partition key.

    `live` has the values of the events in the table by key, `expired` those TTL has deleted, `history` every change,
    `left` how many writes are still to come.
    """

    def __init__(
        self, backend: Backend, rng: random.Random, operations: int, poison: float = 0.0, books: int = 4
    ) -> None:
        self._backend = backend
        self._table = Table(backend.name, backend.client, clock=backend.clock, sleep=lambda _: None, jitter=rng.random)
        self._random = rng
        self._poison = poison
        self._serializer = TypeSerializer()
        self._keys = [(str(rng.randrange(books)), number) for number in range(max(3, operations // 2))]
        self.live: dict[Key, dict[str, Any]] = {}
        self.expired: list[dict[str, Any]] = []
        self.history: list[Change] = []
        self.left = operations
        self.accepts = 0
        self.reached: Counter[str] = Counter()
        self.flooded = False

    def move(self, backend: Backend) -> None:
        """Write to another table from now on."""
        self._backend, self._table = backend, replace(self._table, name=backend.name, client=backend.client)

    @property
    def is_busy(self) -> bool:
        """Whether a call is under way, or must be made again."""
        return False

    def step(self) -> None:
        """Let one of the calls under way go on to its next request."""

    def rows(self) -> list[tuple[Values, int, bool]]:
        """Rows that count in the end: values, sign, and whether TTL has deleted them."""
        return [(v, 1, False) for v in self.live.values()] + [(v, 1, True) for v in self.expired]

    def wrong(self) -> list[str]:
        """False answers to the writers."""
        return []

    def write(self) -> None:
        self.left -= 1
        weights = {self._accept: 6, self._accept_many: 1}
        if self._poison and not self.flooded:
            weights[self._flood] = 1
        if self.live:
            weights |= {self._correct: 5, self._touch: 1, self._delete: 2, self._expire: 2}
        [act] = self._random.choices(list(weights), list(weights.values()))
        act()

    def _values(self, book: str, number: int) -> dict[str, Any]:
        draw = self._random
        now = int(self._backend.clock())
        values = {
            "book": book,
            "id": number,
            "region": draw.choice(_REGIONS),
            "desk": draw.choice(_DESKS),
            "status": draw.choice(_STATUSES),
            "amount": draw.choice(_AMOUNTS),
            "at": draw.choice((now, now - draw.randint(0, 5 * _HOUR), now + draw.randint(0, 600))),
            "tags": draw.sample(_TAGS, draw.randint(0, 2)),
            "cats": draw.sample(_TAGS, draw.randint(0, 3)),
        }
        if draw.random() < 0.7:
            values["fee"] = draw.choice(_AMOUNTS)
        if draw.random() < self._poison:
            self._poisoned(values)
        return values

    def _poisoned(self, values: dict[str, Any]) -> None:
        """Make an event one that some declarations cannot count."""
        kind = self._random.randrange(4)
        if kind == 0:
            values.pop("amount", None)
        elif kind == 1:
            values["amount"] = "much"
        elif kind == 2:
            values["desk"] = BEYOND_ALL_TEXTS + LONGEST_TEXT * "x"
        else:
            values["tags"] = values["cats"] = [str(number) for number in range(MOST_GROUPS)]

    def _accept(self) -> None:
        values = self._values(*self._random.choice(self._keys))
        # Sent twice: as a producer does that did not hear of its success.
        for _ in range(self._random.choice((1, 1, 2))):
            self._insert([values])

    def _accept_many(self) -> None:
        self._insert([self._values(*self._random.choice(self._keys)) for _ in range(self._random.randint(1, 4))])

    def _flood(self) -> None:
        """Accept many events that cannot be counted, of new keys."""
        self.flooded = True
        # No more than one request takes: several would be sent side by side.
        batch = [self._values("flood", number) for number in range(self._random.randint(10, 25))]
        for values in batch:
            self._poisoned(values)
        self._insert(batch)

    def _insert(self, batch: Sequence[dict[str, Any]]) -> None:
        one = len(batch) == 1
        outcomes = [accept(self._table, TRADE, batch[0])] if one else accept_many(self._table, TRADE, batch)
        for values, outcome in zip(batch, outcomes, strict=True):
            assert outcome.status in ("accepted", "duplicate", "conflict"), outcome
            if outcome.status == "accepted":
                self._changed(None, values)

    def _correct(self) -> None:
        key = self._random.choice(list(self.live))
        old = self.live[key]
        new = self._values(old["book"], old["id"])
        choices = sorted({*old, *new} - {"book", "id"})
        changed = self._random.sample(choices, self._random.randint(1, len(choices)))
        corrected = {name: (new if name in changed else old).get(name) for name in {**old, **new}}
        self._replace(old, {name: value for name, value in corrected.items() if value is not None})

    def _touch(self) -> None:
        # The change concerns no count: no aggregate may be written for it.
        old = self.live[self._random.choice(list(self.live))]
        self._replace(old, dict(old))

    def _delete(self) -> None:
        key = self._random.choice(list(self.live))
        deleted = self._backend.delete(_typed_key(key))
        # A deletion after the TTL is an expiry, whoever makes it: so look those of another Region's TTL process.
        expired = float(deleted["ttl"]["N"]) <= int(self._backend.clock())
        if expired:
            self.expired.append(self.live[key])
        self._changed(self.live[key], None, by_ttl=expired)

    def _expire(self) -> None:
        self._backend.clock.advance(self._random.choice((60, 900, 1800)))
        if self._random.random() < 0.25:
            self._delete()
            return
        for item in self._backend.expire(self._random.randint(1, 3)):
            if item["_type"]["S"] == TRADE.name:
                old = self.live[item["pk"]["S"], item["sk"]["S"]]
                self.expired.append(old)
                self._changed(old, None, by_ttl=True)

    def _replace(self, old: dict[str, Any] | None, values: dict[str, Any]) -> None:
        item = {
            **{name: self._serializer.serialize(value) for name, value in values.items()},
            **_typed_key(key_of(values)),
            "_type": {"S": TRADE.name},
            "ttl": {"N": str(int(self._backend.clock() + self._random.randint(60, 2400)))},
            # No write without a change, so that every one of the history has its record.
            "revision": {"N": str(len(self.history))},
        }
        self._put(item)
        self._changed(old, values)

    def _put(self, item: dict[str, Any]) -> None:
        self._backend.client.put_item(TableName=self._backend.name, Item=item)

    def _changed(self, old: dict[str, Any] | None, new: dict[str, Any] | None, *, by_ttl: bool = False) -> None:
        self.history.append((old, new, by_ttl))
        if new is not None:
            self.live[key_of(new)] = new
        elif old is not None:
            del self.live[key_of(old)]


def key_of(values: dict[str, Any]) -> Key:
    return f"BOOK#{escaped(values['book'])}", f"TRADE#{values['id']}"


def _typed_key(key: Key) -> dict[str, Any]:
    return {"pk": {"S": key[0]}, "sk": {"S": key[1]}}
