"""Handlers that are broken on purpose: their traces must not pass for behaviors of the specification."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final
from unittest.mock import patch

from dynamodb_counters._fold.updates import Update
from dynamodb_counters._stream import batch, deployments
from dynamodb_counters._stream.batch import Aggregator
from dynamodb_counters._stream.checkpoint_items import Checkpoint
from dynamodb_counters._stream.commit import Committer
from dynamodb_counters._stream.deployment_items import History

_commit = Committer.commit


def _all_but_one(self: Committer, deltas: Any, part: Any) -> Any:
    return _commit(self, deltas[1:], part)


BROKEN: Final[dict[str, Callable[[], AbstractContextManager[Any]]]] = {
    "updates have no condition": lambda: patch.object(Update, "require_unset_or_below", lambda *_: None),
    "the last item of a batch is not committed": lambda: patch.object(Committer, "commit", _all_but_one),
    "a checkpoint settles at once": lambda: patch.object(
        Checkpoint, "settled_through", lambda self, _: self.applied_through
    ),
    "stamps are the clock's, not the deadline": lambda: patch.object(
        Aggregator, "_deadline", lambda self, _: self._table.clock()
    ),
    "a deployment is in force at once": lambda: patch.multiple(deployments, FRESH=-900, SKEW=0),
    "a record is folded by the last deployment": lambda: patch.object(History, "at", lambda self, _: self.last),
    "checkpoints are not heeded": lambda: patch.object(batch, "_after", lambda _, records: records),
}
"""What is wrong, and a context in which it is."""
