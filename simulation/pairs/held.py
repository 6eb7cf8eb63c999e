"""Groups as items hold them: one by itself, or many in a page, read by the documented layout alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from dynamodb_counters._declarations import Aggregate
from dynamodb_counters._declarations.groups import values_of
from dynamodb_counters._items.conversions import unescape
from simulation.oracle.aggregates import Group

Image = Mapping[str, Any]

PAGE: Final = "PAGE#"
_DIGIT: Final = len("#~0")


@dataclass(frozen=True)
class HeldGroup:
    """A group in an item; `names` are those that its measures' attributes have there."""

    declaration: Aggregate
    group: Group
    item: Image
    names: Mapping[str, str]

    @property
    def place(self) -> tuple[str, Group]:
        return self.declaration.name, self.group

    @property
    def key(self) -> dict[str, Any]:
        return {"pk": self.item["pk"], "sk": self.item["sk"]}

    @property
    def measures(self) -> list[str]:
        """The attributes of measures that it has."""
        return [name for name in self.declaration._attributes if self.names[name] in self.item]

    @property
    def is_counted(self) -> bool:
        return any(name in self.item for name in self.names.values())


def is_page(item: Image) -> bool:
    return bool("_type" in item and item["sk"]["S"].startswith(f"{PAGE}{item['_type']['S']}#"))


def _unit(members: Aggregate, stretch: str, code: str) -> str:
    """The unit of time that two digits of a member's page mean: the one of its stretch, or of the one before."""
    seconds = {"minute": 60, "hour": 3600, "day": 86_400}[members.fields[-1].partition(":")[2]]
    begin = datetime.fromisoformat(f"{stretch}{'0001-01-01T00:00'[len(stretch) :]}+00:00").timestamp() // seconds
    [number] = [
        n
        for n in range(int(begin) - members._longest, int(begin) - members._longest + 1296)
        if n % 1296 == int(code, 36)
    ]
    return datetime.fromtimestamp(number * seconds, UTC).isoformat()[: len(stretch)]


def held_groups(declaration: Aggregate, item: Image) -> Iterator[HeldGroup]:
    """The groups of an item of a declaration."""
    if not declaration.pages:
        values = values_of(declaration, item)
        assert values is not None
        group = tuple(values[field] for field in declaration.fields)
        yield HeldGroup(declaration, group, item, {name: name for name in (*declaration._attributes, "_score")})
        return
    shelf = item["sk"]["S"].removeprefix(f"{PAGE}{declaration.name}#").split("#")[: declaration._shelved]
    for text in [name[1:] for name in item if name.startswith("=")]:
        values = declaration._pk_template.parse(item["pk"]["S"][:-_DIGIT])
        texts = [unescape(shelf[0]), _unit(declaration, unescape(shelf[0]), text)] if declaration._longest else None
        texts = texts or [unescape(part) for part in (*shelf, *text.split("#"))]
        values |= zip(declaration._sk_template.fields, texts, strict=True)
        group = tuple(values[field] for field in declaration.fields)
        marks = ["", *(chr(ord("a") + index) for index in range(1, len(declaration._attributes)))]
        names = [f"{mark}={text}" for mark in marks]
        yield HeldGroup(declaration, group, item, dict(zip(declaration._attributes, names, strict=True)))
