"""The control of a table: the history of its deployments, its open runs, and which generations readers use.

A declaration that is backfilled or redefined counts into the items of its next generation; readers go on with the one
before until the table says otherwise. A process reads that once a minute. A process that is deployed before the
aggregator has taken over, or after another one has, goes by the definition that the table holds.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar, cast

from dynamodb_counters._assumptions import FRESH
from dynamodb_counters._changes.effective import Past, fingerprint
from dynamodb_counters._control.run_items import RUNS, Run, read_runs, runs_text
from dynamodb_counters._declarations import Aggregate, Declaration
from dynamodb_counters._declarations.codec import decode, encode
from dynamodb_counters._declarations.groups import definition, generation
from dynamodb_counters._items.bookkeeping import bookkeeping_item, bookkeeping_key, put_as_seen, typed_values
from dynamodb_counters._items.table_schema import CHECKPOINT, CHECKPOINT_PREFIX, DEPLOYMENT_PREFIX, SK, TYPE
from dynamodb_counters._table import Remembered, Table
from dynamodb_counters.errors import CountersError, IncompleteError, InvalidArgumentError, UncountedError

FOLD_VERSION: Final = 2
"""Raise it when the same declarations come to count an image otherwise: what one version began, another cannot end."""

UNKNOWN: Final = "?"
"""Stands for a deployment that is unknown by now."""

FOLDED: Final = "folded"
"""Attribute of a deployment by which the table is, or was, counted, and not only until a takeover that was to come."""

HISTORY: Final = "history"

_ERA: Final = re.compile(r"(\d{1,12}):([0-9a-f]{16}|\?)(?::([0-9a-z]{1,40}))?")


@dataclass(frozen=True, slots=True)
class Era:
    """Records created from `valid_from` on, in seconds since 1970, are folded by the declarations of a deployment."""

    valid_from: int
    deployment: str
    run: str = ""
    """The backfill that opened it: its cut says where in each shard it begins."""


@dataclass(frozen=True, slots=True)
class History:
    """The eras of a table, in order; of two that begin at the same time, the later one holds."""

    eras: tuple[Era, ...]

    @property
    def last(self) -> Era:
        return self.eras[-1]

    def at(self, created: float, sequence: str = "", cuts: Mapping[str, str] = MappingProxyType({})) -> Era:
        """The era of a record; `cuts` are the first records of eras that backfills opened."""
        for era in reversed(self.eras):
            if cuts[era.run] <= sequence if era.run in cuts else era.valid_from <= created:
                return era
        return self.eras[0]

    def since(self, created: float) -> History:
        """The eras that records created then, or later, belong to."""
        first = self.eras.index(self.at(created))
        return History(self.eras[first:])

    def text(self) -> str:
        return " ".join(f"{era.valid_from}:{era.deployment}{era.run and f':{era.run}'}" for era in self.eras)


def read_history(item: Mapping[str, Any]) -> History | None:
    """The history that an item holds; None if there is none, or what is there cannot be read."""
    text = item.get(HISTORY, {}).get("S", "")
    found = [_ERA.fullmatch(part) for part in text.split(" ")]
    eras = tuple(Era(int(match[1]), match[2], match[3] or "") for match in found if match)
    return History(eras) if len(eras) == len(found) else None


def deployment_id(declarations: tuple[Declaration, ...]) -> str:
    """The same for deployments that fold the same, in any order of declarations, and require the same of events."""
    # A deployment that is folded requires nothing, and so keeps its id when that alone changes.
    return hashlib.sha256(f"{FOLD_VERSION} {_text(declarations)}".encode()).hexdigest()[:16]


def history_key() -> dict[str, Any]:
    return bookkeeping_key("DEPLOYMENTS")


def deployment_key(deployment: str) -> dict[str, Any]:
    return bookkeeping_key(DEPLOYMENT_PREFIX + deployment)


def deployment_item(declarations: tuple[Declaration, ...], *, folded: bool = True) -> dict[str, Any]:
    """The item of a deployment by which a table is counted; or, not `folded`, of what a stack has only declared."""
    values = {"version": FOLD_VERSION, "declarations": _text(declarations), **({FOLDED: True} if folded else {})}
    return bookkeeping_item(deployment_key(deployment_id(declarations)), values)


def read_deployment(item: Mapping[str, Any]) -> tuple[Declaration, ...] | None:
    """The declarations of a deployment; None if this version cannot fold by them."""
    return decoded(item) if item.get("version", {}).get("N") == str(FOLD_VERSION) else None


def decoded(item: Mapping[str, Any]) -> tuple[Declaration, ...] | None:
    """The declarations of a deployment, whatever version folded by it; None if they cannot be read."""
    try:
        return decode(item["declarations"]["S"])
    except (LookupError, InvalidArgumentError):
        return None


def changes_between(before: tuple[Declaration, ...], after: tuple[Declaration, ...]) -> str:
    """Changes of a deployment, in words."""
    old, new = ({declaration.name: declaration for declaration in declared} for declared in (before, after))
    kinds = {
        "adds": new.keys() - old.keys(),
        "removes": old.keys() - new.keys(),
        "changes": {name for name in old.keys() & new.keys() if old[name] != new[name]},
    }
    return ", ".join(f"{kind} {' '.join(sorted(names))}" for kind, names in kinds.items() if names) or "nothing else"


def _text(declarations: tuple[Declaration, ...]) -> str:
    return encode(tuple(sorted(map(definition, declarations), key=lambda each: each.name)), attributes=True)


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
            if found.name == own.name and isinstance(found, Aggregate) == isinstance(own, Aggregate):
                return cast("Declared", found)
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
