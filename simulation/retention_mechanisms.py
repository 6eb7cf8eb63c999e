"""The safety mechanisms of groups that expire: how to switch each one off, and which test must notice."""

from __future__ import annotations

from typing import Final

from simulation.mechanisms import Mutation

_MEMBERS: Final = "test_expiring_members.py::"
_SCHEDULES: Final = _MEMBERS + "test_every_number_is_exact_whatever_expires_and_comes_late"
_DRIFT: Final = _MEMBERS + "test_a_verification_takes_nothing_that_is_over_for_drift"

RETENTION_MUTATIONS: Final = (
    Mutation(
        "what comes after a group's retention counts",
        "_fold/plan.py",
        "return contribute if declaration.retention is None else until_closed(layout, contribute)",
        "return contribute",
        _SCHEDULES,
    ),
    Mutation(
        "a member is deleted as soon as nothing is in time for it",
        "_fold/item_layout.py",
        "return int(self.closing_time(group) + GROUP_KEPT)",
        "return int(self.closing_time(group))",
        _SCHEDULES,
    ),
    Mutation(
        "what the bucket has of a member that is gone counts",
        "_stream/commit.py",
        "if delta.layout.is_gone(delta.group, self._table.clock()):",
        "if False:",
        _SCHEDULES,
    ),
    Mutation(
        "a redriven delta counts after its group's retention",
        "_fold/fold.py",
        "if is_late(program.layout, group, change.created):",
        "if False:",
        _MEMBERS + "test_what_an_item_could_not_take_is_late_after_the_retention",
    ),
    Mutation(
        "anybody changes a group whose retention is over",
        "_writes/increments.py",
        "    if not is_open:\n",
        "    if False:\n",
        _MEMBERS + "test_nobody_changes_a_group_whose_retention_is_over",
    ),
    Mutation(
        "a backfill that rested adds members that are gone",
        "_backfill/backfill.py",
        "if layout.is_gone(group, self.now()):",
        "if False:",
        _MEMBERS + "test_a_backfill_that_rested_adds_no_member_that_may_be_gone",
    ),
    Mutation(
        "a verification compares members whose retention is over",
        "_backfill/verification.py",
        "layout.closing_time(group) <= self._cut_at:",
        "False:",
        _DRIFT,
    ),
    Mutation(
        "a verification compares numbers whose members are gone",
        "_backfill/verification.py",
        "if counts_gone(layout.declaration, group, self.now()):",
        "if False:",
        _DRIFT,
    ),
)
