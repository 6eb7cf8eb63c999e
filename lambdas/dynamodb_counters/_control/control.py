"""The control of a table: the history of its deployments, its open runs, and which generations readers use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dynamodb_counters._changes.meaning import Past
from dynamodb_counters._control.deployment_items import (
    FOLDED,
    HISTORY,
    History,
    decoded,
    deployment_id,
    deployment_item,
    deployment_key,
    history_key,
    read_deployment,
    read_history,
)
from dynamodb_counters._control.run_items import RUNS, Run, read_runs, runs_text
from dynamodb_counters._control.statuses import COUNTED, STATUS, Status, generations_key, read_statuses, statuses_item
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._items.bookkeeping import put_as_seen
from dynamodb_counters._items.table_schema import CHECKPOINT, CHECKPOINT_PREFIX, DEPLOYMENT_PREFIX, SK, TYPE
from dynamodb_counters._table import Table

DECLARED: Final = "declared"
"""Attribute of the history's item with the deployment that the stack declares."""

SOURCE: Final = "source"
"""Attribute with the ARN of the source table, if the aggregator has one."""

NUMBERED: Final = "generation"
"""Attribute with the number of the last generation of all."""


@dataclass(frozen=True, slots=True)
class Control:
    """The two items of a table's control, as they were read: they are written together, if both still are so."""

    item: Mapping[str, Any] = field(default_factory=dict)
    generations: Mapping[str, Any] = field(default_factory=dict)

    @property
    def history(self) -> History | None:
        """The history; None if there is none, or it cannot be read."""
        return read_history(self.item)

    @property
    def runs(self) -> tuple[Run, ...]:
        return read_runs(self.item)

    @property
    def statuses(self) -> dict[str, Status]:
        return read_statuses(self.generations)

    @property
    def reads(self) -> dict[str, int]:
        """Which generation readers use, by declaration; 0 of those that are not here."""
        return {name: status.reads for name, status in self.statuses.items()}

    @property
    def declared(self) -> str:
        history = self.history
        return str(self.item.get(DECLARED, {}).get("S") or (history.last.deployment if history else ""))

    @property
    def source(self) -> str:
        """The ARN of the aggregator's source table; "" for none."""
        return str(self.item.get(SOURCE, {}).get("S", ""))

    @property
    def numbered(self) -> int:
        return max([int(self.item.get(NUMBERED, {}).get("N", "0")), *self.reads.values()])


def read_control(table: Table) -> Control:
    return Control(table.read_item(history_key()), table.read_item(generations_key()))


def read_declarations(table: Table, deployment: str) -> tuple[Declaration, ...] | None:
    """The declarations of a deployment; None if this version cannot fold by them."""
    return read_deployment(table.read_item(deployment_key(deployment)))


def stored_deployments(table: Table) -> dict[str, Mapping[str, Any]]:
    """The items of all deployments that the table has ever had, by their ids."""
    items = table.partition(CHECKPOINT_PREFIX, DEPLOYMENT_PREFIX)
    return {item[SK]["S"].removeprefix(DEPLOYMENT_PREFIX): item for item in items}


def past_of(stored: Iterable[Mapping[str, Any]], seen: Control) -> Past:
    """Deployments that have folded: those only declared have written nothing, and those passing nothing alone."""
    read = [(item, decoded(item)) for item in stored]
    return Past(tuple(found for item, found in read if FOLDED in item or found is None), seen.numbered)


def write_control(
    table: Table,
    seen: Control,
    history: History,
    *,
    runs: Iterable[Run] | None = None,
    statuses: Mapping[str, Status] | None = None,
    deployments: Iterable[tuple[Declaration, ...]] = (),
    passing: Iterable[tuple[Declaration, ...]] = (),
    attributes: Mapping[str, Any] | None = None,
    also: Iterable[dict[str, Any]] = (),
) -> Control | None:
    """Write what is given, and with it what the history names; None if another process has written meanwhile."""
    # Declarations that are `passing` are only declared, or hold only in eras whose successor is known: they do not
    # show what readers used.
    changed = {TYPE: {"S": CHECKPOINT}, HISTORY: {"S": history.text()}, **(attributes or {})}
    if runs is not None:
        changed[RUNS] = {"S": runs_text(runs)}
    new = Control({**seen.item, **history_key(), **changed}, seen.generations)
    puts = [put_as_seen(table.name, new.item, seen.item, (HISTORY, RUNS, DECLARED))]
    if statuses is not None and dict(statuses) != seen.statuses:
        new = replace(new, generations=statuses_item(statuses, seen.generations))
    if new.generations:
        # Though they stay as they are: takeovers that take turns may have come between the reads of the two items.
        puts.append(put_as_seen(table.name, new.generations, seen.generations, (STATUS, COUNTED)))
    # Together, so that whoever finds the declarations of another deployment knows that there was a history.
    known = {deployment_id(part): deployment_item(part, folded=False) for part in passing}
    known |= {deployment_id(part): deployment_item(part) for part in deployments}
    puts += [{"TableName": table.name, "Item": item} for item in known.values()]
    return new if table.write_together([*({"Put": put} for put in puts), *also]) else None
