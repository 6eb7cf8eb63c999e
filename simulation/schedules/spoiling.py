"""Bookkeeping that is edited by hand: entries of the quarantine, watermarks, definitions."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

from simulation.oracle.registrations import UNREADABLE, is_entry
from simulation.oracle.truth import Entry, entry_of, is_image, is_waiting
from simulation.schedules.backend import Backend

_NONSENSE: Final[tuple[dict[str, Any], ...]] = (
    {"S": "?"},
    {"N": "7"},
    {"B": b"\x00\xff"},
    {"BOOL": True},
    {"NULL": True},
    {"M": {}},
)


class Spoiler:
    """Spoils items of a table, and remembers which groups' items and which entries of the quarantine."""

    def __init__(self, backend: Backend, rng: random.Random) -> None:
        self._backend = backend
        self._random = rng
        self.groups: set[tuple[str, str, str]] = set()
        self.entries: set[Entry] = set()

    def spoil(self) -> str | None:
        """Spoil one item, if there is one, and return its kind."""
        items = sorted(self._backend.items(), key=lambda item: (item["pk"]["S"], item["sk"]["S"]))
        kinds = {
            "quarantine entry": [item for item in items if is_waiting(item)],
            "watermark": [item for item in items if _watermarks(item) and not item["pk"]["S"].startswith("CHECK")],
            "definition": _countless([item for item in items if is_entry(item)]),
        }
        kind = self._random.choice(sorted(name for name, found in kinds.items() if found) or [""])
        if not kind:
            return None
        item = dict(self._random.choice(kinds[kind]))
        if kind == "watermark":
            self.groups.add((item["_type"]["S"], item["pk"]["S"].partition("#~")[0], item["sk"]["S"]))
            self._edit(item, self._random.choice(_watermarks(item)))
        elif kind == "quarantine entry":
            if is_image(item["sk"]["S"]):
                self.entries.add(entry_of(item["sk"]["S"]))
            self._edit(item, self._random.choice([name for name in ("record", "names", "sum") if name in item]))
        else:
            self._put({**item, "definition": {"S": UNREADABLE}})
        return kind

    def _edit(self, item: Mapping[str, Any], name: str) -> None:
        # A binary watermark is of the right type, and a false one looks like a true one.
        nonsense = [value for value in _NONSENSE if value.keys() != item[name].keys() or "S" in value]
        self._put({**item, name: self._random.choice(nonsense)})

    def _put(self, item: Mapping[str, Any]) -> None:
        self._backend.client.put_item(TableName=self._backend.name, Item=item)


def _countless(entries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those that nothing else counts: a version reads what counts another only if it reads that, too."""
    texts = [item["definition"]["S"] for item in entries]
    names = [f'"{item["sk"]["S"].rpartition("#")[2]}"' for item in entries]
    return [item for item, name in zip(entries, names, strict=True) if sum(name in text for text in texts) < 2]


def _watermarks(item: Mapping[str, Any]) -> list[str]:
    return sorted(name for name in item if name.startswith("_w"))
