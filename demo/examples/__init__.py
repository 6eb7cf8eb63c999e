"""The examples, one folder each and all of one shape.

`traffic.py` generates the events, `truth.py` computes the counts from the events alone, without the runtime's code, and
`example.py` reads them back through the runtime. A further example is one more folder.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from demo.example import Example


def load(examples: Sequence[str]) -> list[type[Example]]:
    """Import examples: the class `Blog` of folder `blog`."""
    return [getattr(import_module(f"{__name__}.{name}.example"), name.title()) for name in examples]
