"""Calls of a quota that are taken request by request: nothing is held, so each is a transaction.

A lease is an item per period, next to the period's own, and both are changed together. So a request that is sent again,
or lands late, finds what the first one did: a lease is added once and subtracted once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._assumptions import KEPT_LONGER
from dynamodb_counters._clients import may_pass
from dynamodb_counters._declarations.quotas import Quota, QuotaPeriod
from dynamodb_counters._items.bookkeeping import typed_values, update_as_seen
from dynamodb_counters._items.table_schema import PK, QUOTA, SK, TTL, TYPE
from dynamodb_counters._table import Table
from dynamodb_counters._writes.holdings import RESERVED, reservation
from dynamodb_counters.errors import UnavailableError

CALLS: Final = "calls"
GIVEN_BACK: Final = "given_back"
_BUSY: Final = "the quota did not change: other requests came first, or there was no answer"


class Lease(NamedTuple):
    """Calls that were taken together, and how many were given back; None if that was not done."""

    calls: int
    given_back: int | None = None


class QuotaCalls:
    def __init__(self, table: Table, quota: Quota, values: Mapping[str, object]) -> None:
        self._table, self._quota, self._pk = table, quota, quota._pk_template.render(values)

    def take(self, lease: str, n: int) -> Lease | None:
        """The lease, taken now or before in each period that it may be; None if one of them leaves too little."""
        taken: set[QuotaPeriod] = set()
        # Writing takes time: whether it is still the same period is asked again.
        while missing := [period for period in self._quota._periods(self._table.clock()) if period not in taken]:
            if (found := self._take(missing[0], lease, n)) != Lease(n):
                return found
            taken.add(missing[0])
        return Lease(n)

    def give_back(self, lease: str, n: int | None) -> Lease | None:
        """The lease with `n` calls given back, or all, unless it has given back others; None if there is no lease."""
        periods = self._quota._periods(self._table.clock())
        found = [one for period in periods if (one := self._give_back(period, lease, n)) is not None]
        return found[-1] if found else None

    def reserved(self, period: QuotaPeriod) -> int:
        """How many calls of a period processes and leases hold or have made."""
        return int(self._table.read_item(self._key(period)).get(RESERVED, {"N": "0"})["N"])

    def _take(self, period: QuotaPeriod, lease: str, n: int) -> Lease | None:
        new = typed_values({CALLS: n, TYPE: QUOTA, TTL: period.end + KEPT_LONGER})
        for _ in self._table.tries():
            # Read before the lease, which may be what has used the quota up. A refusal costs no write.
            is_full = self.reserved(period) + n > self._quota.limit
            if (found := self._lease(period, lease)) is not None or is_full:
                return found
            if self._write(period, lease, new, {CALLS: None}, n):
                return Lease(n)
        raise UnavailableError(_BUSY)

    def _give_back(self, period: QuotaPeriod, lease: str, n: int | None) -> Lease | None:
        for _ in self._table.tries():
            found = self._lease(period, lease)
            if found is None or found.given_back is not None or (n or 0) > found.calls:
                return found
            units = n or found.calls
            new, seen = typed_values({GIVEN_BACK: units}), {**typed_values({CALLS: found.calls}), GIVEN_BACK: None}
            if self._write(period, lease, new, seen, -units):
                return Lease(found.calls, units)
        raise UnavailableError(_BUSY)

    def _lease(self, period: QuotaPeriod, lease: str) -> Lease | None:
        item = self._table.read_item(self._key(period, lease))
        return Lease(*(int(item[name]["N"]) for name in (CALLS, GIVEN_BACK) if name in item)) if item else None

    def _key(self, period: QuotaPeriod, *lease: str) -> dict[str, Any]:
        return {PK: {"S": self._pk}, SK: {"S": "#".join([period.sk, *lease])}}

    def _write(
        self, period: QuotaPeriod, lease: str, new: Mapping[str, Any], seen: Mapping[str, Any], units: int
    ) -> bool:
        """Change a lease and its period together; False if others came first, or it is unknown."""
        one = update_as_seen(self._table.name, self._key(period, lease), new, seen)
        both = [one, reservation(self._table, self._quota, self._key(period), period, units)]
        try:
            return self._table.write_together([{"Update": update} for update in both])
        except (ClientError, BotoCoreError) as error:
            if not may_pass(error):
                raise
            return False
