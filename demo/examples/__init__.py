"""The examples, a file each: `play` makes the events and the numbers that they must come to, from the events alone.

`demo.example.Example` sends them and reads the numbers back. A further example is one more file.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from demo.example import Example
    from demo.options import Setup


def play(setup: Setup, names: Sequence[str]) -> list[Example]:
    """Make the traffic of some examples and its truth."""
    examples: list[Example] = [import_module(f"{__name__}.{name}").play(setup) for name in names]
    return examples
