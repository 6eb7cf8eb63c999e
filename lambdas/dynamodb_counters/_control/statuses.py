"""Statuses: which items a declaration's counts are read from, as the table itself holds it.

A declaration that is backfilled or redefined counts into the items of its next generation; readers go on with the one
before until the table says otherwise. A process reads that once a minute. A process that is deployed before the
aggregator has taken over, or after another one has, goes by the definition that the table holds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple, TypeVar

from dynamodb_counters._assumptions import FRESH
from dynamodb_counters._changes.meaning import fingerprint
from dynamodb_counters._control.deployment_items import decoded, deployment_key
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._declarations.generations import generation
from dynamodb_counters._items.bookkeeping import bookkeeping_item, bookkeeping_key, typed_values
from dynamodb_counters._table import Remembered, Table
from dynamodb_counters.errors import CountersError, IncompleteError, UncountedError

STATUS: Final = "status"
"""Attribute of the item with the statuses of what is declared."""

COUNTED: Final = "counted"
"""Attribute with the names that any deployment has ever counted."""

Declared = TypeVar("Declared", bound=Declaration)


@dataclass(frozen=True, slots=True)
class Status:
    """How a declaration stands: readers use generation `reads`, whose definition is in a `deployment`."""

    reads: int = 0
    deployment: str = ""
    whole: bool = True
    """Whether it counts everything there is; else what came since a time, or it is being filled."""
    since: int = 0
    """Seconds since 1970 from which on it counts; 0 from the beginning."""
    definition: str = ""
    """The fingerprint of the definition that readers use."""


class Standing(NamedTuple):
    """Whether what is read counts everything there is, and by the definition that its reader declares."""

    complete: bool = True
    as_declared: bool = True


def generations_key() -> dict[str, Any]:
    return bookkeeping_key("GENERATIONS")


def read_statuses(item: Mapping[str, Any]) -> dict[str, Status]:
    """Statuses by declaration; none if there is no item, or it is spoiled."""
    try:
        return {name: Status(**values) for name, values in json.loads(item[STATUS]["S"]).items()}
    except (LookupError, TypeError, ValueError, AttributeError):
        return {}


def read_counted(item: Mapping[str, Any]) -> frozenset[str]:
    """The names that deployments count, or have counted."""
    names = item.get(COUNTED, {}).get("S", "")
    return frozenset(names.split()) | {name for name, status in read_statuses(item).items() if status.definition}


def statuses_item(statuses: Mapping[str, Status], before: Mapping[str, Any]) -> dict[str, Any]:
    """The item that follows the one `before`, whose names stay counted."""
    text = json.dumps({name: asdict(status) for name, status in sorted(statuses.items())})
    new = bookkeeping_item(generations_key(), {STATUS: text})
    return new | typed_values({COUNTED: " ".join(sorted(read_counted(before) | read_counted(new)))})


class Statuses(Remembered):
    """The generations of one table's declarations, as one process reads them."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._statuses: dict[str, Status] = {}
        self._counted: frozenset[str] = frozenset()
        self._read_at = -math.inf
        self._deployments: dict[str, tuple[Declaration, ...]] = {}
        self._known: dict[str, tuple[Declaration, Status, Any]] = {}
        """Declaration asked for, its status, and the answer, by name: the same is asked for again."""

    def current(self, declaration: Declared) -> Declared:
        """The declaration whose items hold the counts; an error if it is not counted, or not whole and must be."""
        status = self._status(declaration.name)
        if status is None and self._statuses:
            status = self._status(declaration.name, again=True)
            if status is None and self._statuses:
                raise UncountedError(declaration.name, self._statuses)
        if self._table.incomplete == "raise":
            if status is None:
                raise IncompleteError(f"{declaration.name!r} is not counted: no deployment counts the table yet")
            if not status.whole:
                raise IncompleteError(f"{declaration.name!r} counts only what came since {status.since}: backfill it")
        return self._held(declaration, status or Status())

    def standing(self, declaration: Declaration) -> Standing:
        """How complete the counts are; not at all of a table that no deployment counts."""
        status = self._status(declaration.name)
        if status is None:
            return Standing(complete=False)
        return Standing(status.whole, status.definition in ("", fingerprint(declaration)))

    def _held(self, declaration: Declared, status: Status) -> Declared:
        if not status.deployment:
            return declaration
        known = self._known.get(declaration.name)
        if known is None or known[0] is not declaration or known[1] != status:
            known = self._known[declaration.name] = declaration, status, self._found(declaration, status)
        found: Declared = known[2]
        return found

    def counted(self, declaration: Declared) -> Declared:
        """The declaration whose items a direct count changes."""
        # One that no deployment has counted is refused: the next declaration with its keys would take the counts over.
        if not self._is_counted(declaration.name):
            self._status(declaration.name, again=True)
            if not self._is_counted(declaration.name):
                raise UncountedError(declaration.name, self._counted or self._statuses)
        return self._held(declaration, self._status(declaration.name) or Status())

    def _is_counted(self, name: str) -> bool:
        """Whether a deployment counts it, or has; a table without one takes everything."""
        self._status(name)
        return name in self._counted or not (self._counted or self._statuses)

    def _found(self, declaration: Declared, status: Status) -> Declared:
        """The generation that readers use, as it is declared or else as the table holds it."""
        own = generation(declaration, status.reads)
        if status.definition == fingerprint(declaration):
            return own
        for found in self._deployment(status.deployment):
            if found.name == own.name and isinstance(found, type(own)):
                return found
        return own

    def _status(self, name: str, *, again: bool = False) -> Status | None:
        """How a declaration stands, perhaps read `again`; None if the deployment does not count it."""
        now = self._table.clock()
        if again or now >= self._read_at + FRESH:
            answer = self._table.client.get_item(TableName=self._table.name, Key=generations_key())
            item = answer.get("Item", {})
            self._statuses, self._counted, self._read_at = read_statuses(item), read_counted(item), now
        return self._statuses.get(name)

    def _deployment(self, deployment: str) -> tuple[Declaration, ...]:
        if deployment not in self._deployments:
            answer = self._table.client.get_item(TableName=self._table.name, Key=deployment_key(deployment))
            found = decoded(answer.get("Item", {}))
            if found is None:
                raise CountersError(f"this version cannot read the declarations of deployment {deployment}")
            self._deployments[deployment] = found
        return self._deployments[deployment]
