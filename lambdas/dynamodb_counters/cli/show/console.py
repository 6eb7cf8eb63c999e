"""The console of every command: text that anybody may have posted is shown, and does nothing.

A control character could clear the screen, fill the clipboard or forge a line, one that turns text around could make it
read as another. `str.isprintable` says which do not just print, as for Python's own `repr`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any, Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

_PLAIN_WIDTH: Final = 100
_LIKELY: Final = re.compile(r"[^ -~]")
"""All but the ASCII that prints: few characters are left to look at."""


def visible(text: str) -> str:
    r"""Text with what does not just print escaped.

    >>> print(visible("/é\x1b]0;x\x07\n"))
    /é\x1b]0;x\x07\n
    """
    return _LIKELY.sub(lambda one: one[0] if one[0].isprintable() else one[0].encode("unicode_escape").decode(), text)


class SafeConsole(Console):
    """A console that takes text as it is, names hold brackets, and shows it escaped: each text is one line."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **settings)

    def render_str(self, text: str, **settings: Any) -> Text:
        """Before anything measures the text."""
        return super().render_str(visible(text), **settings)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """All output comes through here, also what lies within it."""
        return super().render(_escaped(renderable) if isinstance(renderable, Text) else renderable, options)


def make_console(*, stderr: bool = False) -> SafeConsole:
    stream = sys.stderr if stderr else sys.stdout
    return SafeConsole(stderr=stderr, width=None if stream.isatty() else _PLAIN_WIDTH)


def _escaped(text: Text) -> Text:
    found = [place for place, one in enumerate(text.plain) if not one.isprintable()]
    if not found:
        return text
    parts = text.divide([end for place in found for end in (place, place + 1)])
    for part in parts:
        part.plain = visible(part.plain)
    return text.blank_copy().append_text(Text().join(parts))
