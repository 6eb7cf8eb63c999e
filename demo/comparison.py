"""Numbers held against what they must be or against each other, and names fit for a terminal."""

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


def highest(counts: Mapping[str, int], most: int) -> list[str]:
    """Give what was counted most often.

    Parameters
    ----------
    counts : mapping of str to int
        By what it was counted for.
    most : int
        How many to give.

    Returns
    -------
    list of str
        Highest first, equals by name.

    Examples
    --------
    >>> highest({"/c": 1, "/b": 2, "/a": 2}, 2)
    ['/a', '/b']
    """
    return sorted(counts, key=lambda name: (-counts[name], name))[:most]


def printable(text: str, most: int = _SHOWN_CHARACTERS) -> str:
    r"""Shorten and escape a text for the terminal, which what a client has sent must not be able to command.

    Parameters
    ----------
    text : str
        Anything.
    most : int, optional
        How many characters to show. Default 60.

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
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"
