"""Leases: a process reserves portions of a quota, and grants calls from them without asking the table."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from datetime import datetime
from typing import Self

from dynamodb_counters._assumptions import TRIES
from dynamodb_counters._declarations import Quota
from dynamodb_counters._declarations.checks import require_count
from dynamodb_counters._declarations.quotas import MOST_CALLS
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import utc
from dynamodb_counters._writes.holdings import Holding
from dynamodb_counters._writes.update_conditions import watch_for_lost_answers
from dynamodb_counters.errors import InvalidArgumentError


class Leases:
    """Calls that this process may make under a quota. Made by `Counters.leases`.

    All processes together never make more than the quota allows, whatever becomes of processes, answers and clocks. A
    refusal may come early, by what other processes hold at that moment. Threads may share an object. As a context
    manager it releases at the end.

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
            allowed = f"values for {', '.join(quota.by)}" if quota.by else "no values: the quota has one group"
            raise InvalidArgumentError("values", values, allowed)
        self._table, self._quota = table, quota
        self._pk = quota._pk_template.render(values)
        self._error = quota.clock_error.total_seconds()
        watch_for_lost_answers(table)
        self._forget()

    def take(self, n: int = 1) -> bool:
        """Take `n` calls, all or none.

        Most calls are answered by what the process holds; if that is too little, one or a few writes reserve more. A
        process that was refused does not write again for a second.

        Parameters
        ----------
        n : int, optional
            How many calls. Default 1.

        Returns
        -------
        bool
            Whether the calls may be made; they are counted then.

        Raises
        ------
        ClientError, BotoCoreError
            DynamoDB refused or did not answer, after all retries. Nothing was granted; what was reserved is not lost,
            the next call finds it.
        """
        require_count("n", n, MOST_CALLS)
        if self._pid != os.getpid():
            # A child must not grant what its parent holds.
            self._forget()
        with self._lock:
            for _ in range(TRIES):
                current = self._current()
                short = [holding for holding in current if holding.units < n]
                if not short:
                    for holding in current:
                        holding.units -= n
                    return True
                # Writing takes time: whether it is still the same period is asked again.
                if n > self._quota.limit or not all(holding.reserve(n) for holding in short):
                    break
        return False

    def release(self) -> None:
        """Give back the calls that are reserved and unused, so that others can make them.

        Do it when the process ends, or has nothing to do for long. Afterward, calls reserve again. An error of DynamoDB
        is raised; releasing again completes it.
        """
        if self._pid != os.getpid():
            self._forget()
        with self._lock:
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
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._holdings: dict[str, Holding] = {}

    def _current(self) -> list[Holding]:
        """Holdings of the periods that it may be now: two, near the end of one."""
        now = self._table.clock()
        over = [sk for sk, held in self._holdings.items() if held.period.end <= now - self._error]
        for sk in over:
            # Calls left of a period that is over for all are of no use.
            del self._holdings[sk]
        return [
            self._holdings.setdefault(period.sk, Holding(self._table, self._quota, self._pk, period))
            for period in self._quota._periods(now)
        ]
