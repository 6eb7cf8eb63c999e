"""Handlers that are broken on purpose: their traces must not pass for behaviors of the specification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import replace
from itertools import count
from typing import Any, Final
from unittest.mock import patch

from dynamodb_counters._commit import batch
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._commit.checkpoint_items import Checkpoint
from dynamodb_counters._commit.checkpoints import Checkpoints
from dynamodb_counters._commit.commit import Committer
from dynamodb_counters._commit.outbox import put_crossings
from dynamodb_counters._control import deployments
from dynamodb_counters._control.deployments import Deployments
from dynamodb_counters._fold import plan, tallies
from dynamodb_counters._fold.crossings import Crossing, crossings
from dynamodb_counters._fold.plan import Plan, Source
from dynamodb_counters._fold.updates import Update
from dynamodb_counters._table import Table
from dynamodb_counters._writes import increments
from dynamodb_counters.handlers import notifier

_commit = Committer.commit
_advance = Checkpoints.advance
_compiled, _carried = plan._compiled, plan._carried
_commit_part, _item, _send = Aggregator._commit, Crossing.item, notifier._put


def _all_but_one(self: Committer, deltas: Any, part: Any) -> Any:
    return _commit(self, deltas[1:], part)


def _stamped_by_clock(self: Checkpoints, shard: str, last: str, created: float, _: float) -> float:
    return _advance(self, shard, last, created, self._table.clock())


def _as_any_source(layout: Any, carry: Any) -> Source:
    return replace(_carried(layout, carry), carries=False)


@contextmanager
def _put_late() -> Iterator[None]:
    held: dict[int, Sequence[Crossing]] = {}

    def commit(self: Aggregator, *arguments: Any, **options: Any) -> None:
        _commit_part(self, *arguments, **options)
        put_crossings(self._table, held.pop(id(self._table)))

    with (
        patch.object(batch, "put_crossings", lambda table, found: held.update({id(table): found})),
        patch.object(Aggregator, "_commit", commit),
    ):
        yield


def _put_always(table: Table, found: Sequence[Crossing]) -> None:
    for each in found:
        table.write("put_item", Item=each.item())


def _of_all(folded: Plan, changes: Any, skipped: Counter[str]) -> list[Crossing]:
    every = copy(folded)
    every.armed = {each.layout.name: each.layout for each in folded.programs.values()}
    return crossings(every, changes, skipped)


@contextmanager
def _with_new_ids() -> Iterator[None]:
    numbers = count()
    with patch.object(Crossing, "item", lambda self: {**_item(self), "id": {"S": str(next(numbers))}}):
        yield


def _unheeded(refused: Any, table_arn: str) -> list[str]:
    return [""] * len(_send(refused, table_arn))


BROKEN: Final[dict[str, Callable[[], AbstractContextManager[Any]]]] = {
    "updates have no condition": lambda: patch.object(Update, "_require_below", lambda *_: None),
    "the last item of a batch is not committed": lambda: patch.object(Committer, "commit", _all_but_one),
    "a checkpoint settles at once": lambda: patch.object(
        Checkpoint, "settled_through", lambda self, _: self.applied_through
    ),
    "stamps are the clock's, not the deadline": lambda: patch.object(Checkpoints, "advance", _stamped_by_clock),
    "a deployment is in force at once": lambda: patch.multiple(deployments, FRESH=-900, SKEW=0),
    "a record is folded by the deployment that delivers it": lambda: patch.object(
        Deployments, "plan_of", lambda self, _: self._own_plan
    ),
    "checkpoints are not heeded": lambda: patch.object(batch, "uncounted", lambda changes, _: changes),
}
"""Contexts in which handlers are broken, by what is wrong."""

BROKEN_TALLIES: Final[dict[str, Callable[[], AbstractContextManager[Any]]]] = {
    "an erasure is tallied by both generations, and carried": lambda: patch.object(
        plan, "_compiled", lambda declaration, _: _compiled(declaration, [])
    ),
    "a group that is deleted takes its tally along": lambda: patch.object(plan, "_carried", _as_any_source),
    "increments leave no tally": lambda: patch.object(increments, "TALLY_PREFIX", "_other_"),
}
"""The same of what becomes of tallies."""

BROKEN_CROSSINGS: Final[dict[str, Callable[[], AbstractContextManager[Any]]]] = {
    "crossings are put after the checkpoint has moved": _put_late,
    "a put has no condition": lambda: patch.object(batch, "put_crossings", _put_always),
    "every generation that is folded reports": lambda: patch.object(batch, "crossings", _of_all),
    "an id is another one in each delivery": _with_new_ids,
    "limits are not carried": lambda: patch.object(tallies, "limit_of", lambda _: None),
    "an event that is refused passes for delivered": lambda: patch.object(notifier, "_put", _unheeded),
}
"""The same of crossings."""
