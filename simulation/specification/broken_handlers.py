"""Handlers that are broken on purpose: their traces must not pass for behaviors of the specification."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final
from unittest.mock import patch

from dynamodb_counters._commit import batch
from dynamodb_counters._commit.checkpoints import Checkpoint, Checkpoints
from dynamodb_counters._commit.commit import Committer
from dynamodb_counters._control.counted_names import CountedNames
from dynamodb_counters._fold import updates
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters.exactly_once import update_request

_commit = Committer.commit
_advance = Checkpoints.advance


def unguarded(*arguments: Any, is_common: bool) -> dict[str, Any]:
    """Return the request of an update, whatever the item has counted."""
    return update_request(*arguments[:4], is_common=is_common)


def _all_but_one(self: Committer, deltas: Any, part: Any) -> Any:
    return _commit(self, deltas[1:], part)


def _stamped_by_clock(self: Checkpoints, shard: str, last: str, _: float) -> float:
    return _advance(self, shard, last, self._table.clock())


def _heedless(self: batch.Aggregator, event: Any, deadline: float) -> batch.Report:
    changes = batch.intake(event["Records"], self._origins)
    report, shard = batch.Report(records=len(changes)), self._shard(event)
    self._refresh(report)
    self._quarantine.leave_aside(shard, changes)
    self._count(shard, changes, deadline, report)
    return report


BROKEN: Final[dict[str, Callable[[], AbstractContextManager[Any]]]] = {
    "updates have no condition": lambda: patch.object(updates, "update_request", unguarded),
    "the last item of a batch is not committed": lambda: patch.object(Committer, "commit", _all_but_one),
    "a checkpoint settles at once": lambda: patch.object(
        Checkpoint, "settled_through", lambda self, _: self.applied_through
    ),
    "stamps are the clock's, not the deadline": lambda: patch.object(Checkpoints, "advance", _stamped_by_clock),
    "names that wait are folded": lambda: patch.object(
        CountedNames, "_plan", lambda self, _: Plan(self.registry.declarations)
    ),
    "a record is folded by the code that delivers it": lambda: patch.object(
        CountedNames, "_plan", lambda self, _: Plan(self._own)
    ),
    "checkpoints are not heeded": lambda: patch.object(batch.Aggregator, "_batch", _heedless),
}
"""Contexts in which handlers are broken, by what is wrong."""
