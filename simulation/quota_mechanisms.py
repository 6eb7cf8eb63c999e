"""The safety mechanisms of quotas: how to switch each one off, and which test must notice."""

from __future__ import annotations

from typing import Final

from simulation.mechanisms import Mutation

_SCHEDULES: Final = "test_quotas.py::test_no_limit_is_exceeded_and_nothing_is_lost_whatever_goes_wrong"
_GUARDS: Final = "test_quotas.py::"
_HOLDINGS: Final = "_writes/holdings.py"
_LEASES: Final = "_writes/leases.py"

QUOTA_MUTATIONS: Final = (
    Mutation(
        "a limit is asked of less than the trailing time",
        "_timeline/intervals.py",
        "cls(ending.start - precision, ending.end)",
        "ending",
        "test_window_limits.py::test_no_trailing_time_holds_more_than_the_limit",
    ),
    Mutation(
        "a portion is reserved whatever the limit",
        _HOLDINGS,
        "#reserved <= :room)",
        "#reserved <= :room OR #reserved > :room)",
        _SCHEDULES,
    ),
    Mutation(
        "a portion may begin where the limit is reached",
        _HOLDINGS,
        "self._quota.limit - units",
        "self._quota.limit",
        _SCHEDULES,
    ),
    Mutation(
        "what is given back is subtracted as often as it is sent",
        _HOLDINGS,
        "client.update_item(**once(self._request(units), nonce), ReturnValues",
        "client.update_item(**(self._request(units) if units < 0 else once(self._request(units), nonce)), ReturnValues",
        _SCHEDULES,
    ),
    Mutation(
        "what was not answered is sent as something new",
        _HOLDINGS,
        "self._send(*self._pending)",
        "self._change(self._pending[0])",
        _SCHEDULES,
    ),
    Mutation(
        "what was not answered is forgotten",
        _HOLDINGS,
        "        if self._pending is not None:\n",
        "        if False:\n",
        _GUARDS + "test_a_portion_whose_answer_is_lost_is_asked_for_again_not_anew",
    ),
    Mutation(
        "calls are granted while they are given back",
        _HOLDINGS,
        "units, self.units = self.units, 0\n",
        "units = self.units\n",
        _SCHEDULES,
    ),
    Mutation(
        "what is reserved expires with the period's beginning",
        _HOLDINGS,
        "self.period.end + KEPT_LONGER",
        "self.period.start",
        _SCHEDULES,
    ),
    Mutation(
        "clocks are taken to be right",
        _LEASES,
        "for moment in (now - self._error, now + self._error)",
        "for moment in (now,)",
        _SCHEDULES,
    ),
    Mutation(
        "a call between two periods counts in the first alone",
        _LEASES,
        "for holding in current:\n",
        "for holding in current[:1]:\n",
        _SCHEDULES,
    ),
    Mutation(
        "what is held is forgotten at each call",
        _LEASES,
        "if held.period.end <= now - self._error]",
        "]",
        _SCHEDULES,
    ),
    Mutation(
        "a release gives nothing back",
        _LEASES,
        "                holding.give_back()\n",
        "                pass\n",
        _SCHEDULES,
    ),
    Mutation(
        "a child of a process grants what its parent holds",
        _LEASES,
        "        if self._pid != os.getpid():\n            # A child",
        "        if False:\n            # A child",
        _GUARDS + "test_a_forked_process_grants_nothing_of_what_its_parent_holds",
    ),
    Mutation(
        "threads grant the same call",
        _LEASES,
        "self._lock = threading.Lock()",
        "self._lock = threading.Semaphore(9)",
        _GUARDS + "test_threads_never_grant_the_same_call",
    ),
    Mutation(
        "an item of a quota has no type",
        _HOLDINGS,
        'values |= {":type": {"S": QUOTA}',
        'names["#type"] = "type"\n            values |= {":type": {"S": QUOTA}',
        _GUARDS + "test_what_is_reserved_is_no_item_of_other_code",
    ),
)
