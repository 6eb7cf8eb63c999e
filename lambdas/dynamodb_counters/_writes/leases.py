"""Leases: a process reserves portions of a quota, and grants calls from them without asking the table.

The period's item has one number, `reserved`: what processes were granted and have not given back. A portion is added on
condition that it stays within the limit, so nothing but a portion that is subtracted twice could exceed it. Each update
is sent once, so none is. Where its answer is lost, its calls are given up: too little is granted then, never too much.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping
from datetime import datetime
from typing import Final, Self

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._assumptions import KEPT_LONGER, LEASE_CLOCKS, TRIES
from dynamodb_counters._declarations.checks import require_count
from dynamodb_counters._declarations.quotas import MOST_CALLS, Quota, QuotaPeriod
from dynamodb_counters._items.schema import PK, QUOTA, SK, TTL, TYPE, typed_values
from dynamodb_counters._table import Table, item_of
from dynamodb_counters._tiers import utc
from dynamodb_counters.errors import InDoubtError, InvalidArgumentError, UnavailableError

RESERVED: Final = "reserved"
_SHARE: Final = 8
"""A portion is at most this part of what remains, so that the last calls are not all held by the first to come."""
_PAUSE: Final = 1.0
"""For how long a process that was refused does not ask again, in seconds: refused updates cost units, too."""


class Holding:
    """The calls of one period that one process may grant without asking."""

    def __init__(self, table: Table, quota: Quota, pk: str, period: QuotaPeriod) -> None:
        self.period, self.units = period, 0
        self._table, self._quota = table, quota
        self._key = {PK: {"S": pk}, SK: {"S": period.sk}}
        self._free = quota.limit  # What no process holds, as the last answer says.
        self._size = 1  # The next portion: doubled each time, so that about as many calls are held as were made.
        self._refused_at = -math.inf

    def reserve(self, n: int) -> bool:
        """Ask once to hold `n` calls or more; False if the limit does not leave so many."""
        missing, now = n - self.units, self._table.clock()
        if missing > self._free and now < self._refused_at + _PAUSE:
            return False
        units = max(missing, min(self._size, self._free // _SHARE))
        # One whose answer is lost is given up, and so may be the next: it asks for no more than is missing.
        size, self._size = min(2 * self._size, self._quota._portion_size), 1
        if self._add(units, "reserved"):
            self.units, self._size = self.units + units, size
        else:
            self._refused_at = now
        return True

    def give_back(self) -> None:
        units, self.units = self.units, 0
        try:
            if units:
                self._add(-units, "given back")
        except (ClientError, BotoCoreError, UnavailableError) as error:
            self.units = 0 if isinstance(error, InDoubtError) else units
            raise

    def _add(self, units: int, verb: str) -> bool:
        """Add to what the period's item says is reserved, within the limit, or subtract; return whether it took it."""
        if units > 0:
            condition, bound = "attribute_not_exists(#reserved) OR #reserved <= :bound", self._quota.limit - units
        else:
            condition, bound = "#reserved >= :bound", -units
        numbers = {":units": units, ":bound": bound, ":ttl": self.period.end + KEPT_LONGER}
        request = {
            "TableName": self._table.name,
            "Key": self._key,
            "UpdateExpression": "ADD #reserved :units SET #type = :type, #ttl = :ttl",
            "ConditionExpression": condition,
            "ExpressionAttributeNames": {"#reserved": RESERVED, "#type": TYPE, "#ttl": TTL},
            "ExpressionAttributeValues": typed_values({**numbers, ":type": QUOTA}),
        }
        try:
            item, is_added = self._table.update_once(request, verb), True
        except self._table.client.exceptions.ConditionalCheckFailedException as refusal:
            item, is_added = item_of(refusal), False
        self._free = self._quota.limit - int(item.get(RESERVED, {"N": "0"})["N"])
        return is_added


class Leases:
    """Calls that this process may make under a quota. Made by `Counters.leases`.

    A refusal may come early, by what other processes hold. Threads may share an object. As a context manager it
    releases at the end.

    Examples
    --------
    >>> leases = counters.leases(CALLS, customer="c1")  # doctest: +SKIP
    >>> leases.take()  # doctest: +SKIP
    True
    >>> leases.release()  # doctest: +SKIP
    """

    def __init__(self, table: Table, quota: Quota, values: Mapping[str, object]) -> None:
        if not isinstance(quota, Quota):
            raise InvalidArgumentError("quota", quota, "a Quota")
        if set(values) != set(quota.by):
            raise InvalidArgumentError("values", values, f"values for {', '.join(quota.by) or 'no field'}")
        self._table, self._quota = table, quota
        self._pk = quota._pk_template.render(values)
        self._forget()

    def take(self, n: int = 1) -> bool:
        """Take `n` calls, all or none; return whether they may be made, and are counted.

        They are taken of what the process holds; if that is too little, a few writes reserve more.

        Parameters
        ----------
        n : int, optional
            How many calls. Default 1.

        Raises
        ------
        UnavailableError, ClientError, BotoCoreError
            DynamoDB refused to the end, or its answer is lost. Nothing was granted; in the second case, the calls that
            the request asked for count as used.
        """
        require_count("n", n, MOST_CALLS)
        with self._own_lock():
            for _ in range(TRIES):
                current = self._current()
                if not (short := [holding for holding in current if holding.units < n]):
                    for holding in current:
                        holding.units -= n
                    return True
                # Writing takes time: whether it is still the same period is asked again.
                if n > self._quota.limit or not all(holding.reserve(n) for holding in short):
                    break
        return False

    def release(self) -> None:
        """Give back the calls that are reserved and unused, so that others can make them, as when the process ends.

        An error of DynamoDB is raised; releasing again completes it. Where an answer is lost, what it gave back may
        count as used.
        """
        with self._own_lock():
            self._current()
            for holding in self._holdings.values():
                holding.give_back()

    @property
    def resets_at(self) -> datetime:
        """When the current period ends and the whole quota is there again, in UTC."""
        return utc(self._quota._period(self._table.clock()).end)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _forget(self) -> None:
        self._pid, self._lock, self._holdings = os.getpid(), threading.Lock(), dict[str, Holding]()

    def _own_lock(self) -> threading.Lock:
        if self._pid != os.getpid():
            # A child must not grant what its parent holds.
            self._forget()
        return self._lock

    def _current(self) -> list[Holding]:
        """Return the holdings of the periods that it may be now: two, near the end of a period."""
        moment = self._table.clock()
        earliest, latest = moment - LEASE_CLOCKS, moment + LEASE_CLOCKS
        # Calls left of a period that is over for all are of no use.
        self._holdings = {sk: holding for sk, holding in self._holdings.items() if holding.period.end > earliest}
        periods = dict.fromkeys(map(self._quota._period, (earliest, latest)))
        holdings = (Holding(self._table, self._quota, self._pk, period) for period in periods)
        return [self._holdings.setdefault(holding.period.sk, holding) for holding in holdings]
