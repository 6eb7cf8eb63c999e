"""Deltas: what a batch of stream records comes to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from dynamodb_counters._fold.compiler import Program
from dynamodb_counters._fold.contributions import GroupKey
from dynamodb_counters._fold.records import Record
from dynamodb_counters._items.decimals import Number

Origin: TypeAlias = tuple[str, GroupKey]
"""Names an item before its key is rendered: declaration and group."""


class Delta:
    """What a batch adds to one item, and which records it comes from.

    Attributes
    ----------
    program : Program
        The compiled declaration the item belongs to.
    group : str or tuple
        The item's group.
    first, last : str
        Padded sequence numbers of the first and last record that contribute.
    measures : dict of str to int or Decimal
        What to add.
    """

    __slots__ = ("first", "group", "last", "measures", "program")

    def __init__(self, program: Program, group: GroupKey, sequence: str) -> None:
        self.program = program
        self.group = group
        self.first = sequence
        self.last = sequence
        self.measures: dict[str, Number] = {}

    @property
    def origin(self) -> Origin:
        """Declaration and group."""
        return self.program.name, self.group


@dataclass(frozen=True, slots=True)
class Unfoldable:
    """An image that could not be folded.

    Parameters
    ----------
    sequence : str
        The padded sequence number of its record.
    side : str
        Which image of the record it is: ``NewImage`` or ``OldImage``.
    record : mapping
        The record, with this image only.
    reason : str
        What is wrong with it.
    """

    sequence: str
    side: str
    record: Record
    reason: str

    @property
    def place(self) -> str:
        """What tells it from others of its shard."""
        return f"{self.sequence}#{self.side}"


@dataclass(slots=True)
class Folded:
    """What a batch comes to.

    Parameters
    ----------
    deltas : list of Delta
        One an item.
    unfoldable : list of Unfoldable
        Images for quarantine; none of their contributions is in `deltas`.
    late : int
        Contributions dropped because their bucket's retention is over.
    """

    deltas: list[Delta] = field(default_factory=list)
    unfoldable: list[Unfoldable] = field(default_factory=list)
    late: int = 0
