"""Deployments: which declarations hold for which records, as the table keeps it. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from dynamodb_counters._declarations import Declaration
from dynamodb_counters._declarations.codec import decode, encode
from dynamodb_counters._declarations.generations import definition
from dynamodb_counters._items.bookkeeping import bookkeeping_item, bookkeeping_key
from dynamodb_counters._items.table_schema import DEPLOYMENT_PREFIX
from dynamodb_counters.errors import InvalidArgumentError

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
