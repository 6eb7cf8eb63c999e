"""Numbers held against what they must be, and names fit for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_SHOWN_CHARACTERS: Final = 60


def differing(what: str, found: Mapping[str, int], expected: Mapping[str, int]) -> list[str]:
    """Tell which numbers are not as they must be.

    Parameters
    ----------
    what : str
        What was counted.
    found, expected : mapping of str to int
        By what it was counted for. What is missing is 0.

    Returns
    -------
    list of str
        A line for each.

    Examples
    --------
    >>> differing("views", {"/": 2}, {"/": 3})
    ['views of /: 2, must be 3']
    """
    return [
        f"{what} of {printable(name)}: {found.get(name, 0):,}, must be {expected.get(name, 0):,}"
        for name in sorted(expected.keys() | found.keys())
        if found.get(name, 0) != expected.get(name, 0)
    ]


def printable(text: str) -> str:
    r"""Shorten and escape a text for the terminal, which what a client has sent must not be able to command.

    Parameters
    ----------
    text : str
        Anything.

    Returns
    -------
    str
        One line.

    Examples
    --------
    >>> printable("/\x1b[31m")
    '/\\x1b[31m'
    """
    shown = text if text.isprintable() else text.encode("unicode_escape").decode()
    return shown if len(shown) <= _SHOWN_CHARACTERS else f"{shown[: _SHOWN_CHARACTERS - 1]}…"
