"""Which runs the page offers: seeds whose faults show something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

BRANCH_EVERY: Final = 4
"""After every so many steps, faults may be injected."""


@dataclass(frozen=True, slots=True)
class Story:
    """A run by its seed, the faults it has, and what there is to see."""

    name: str
    about: str
    seed: int
    faults: tuple[str, ...]


STORIES: Final = (
    Story("Killed mid-batch", "An invocation dies with only some of its counts written.", 62, ("kill",)),
    Story("A zombie", "An invocation that Lambda gave up on goes on beside its retry.", 18, ("zombie",)),
    Story("Delivered again", "The stream goes back and delivers what was counted already.", 39, ("redeliver",)),
    Story("A lost answer", "An update is applied, but nobody hears so.", 1, ("lost",)),
    Story(
        "A shard split",
        "A shard is closed, its children take over; later the stream goes back.",
        100,
        ("split", "redeliver"),
    ),
    Story(
        "All at once",
        "Kill, zombie, split, lost answer and redelivery.",
        4,
        ("kill", "zombie", "split", "lost", "redeliver"),
    ),
)
